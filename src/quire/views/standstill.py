"""What makes no progress in a view, which members it waits for, and which of them to blame."""

from __future__ import annotations

from collections.abc import Iterable

from quire.model.messages import Run
from quire.views.core import Core
from quire.views.ordering import Ordering
from quire.views.relaying import relays_to_blame, to_blame
from quire.views.waiting_run import WaitingRun


def waiting_runs(core: Core, ordering: Ordering) -> list[WaitingRun]:
    """All messages that are held back here, the members that they wait for, and why."""
    knowledge, me = ordering.knowledge, ordering.rank
    unknown = "its position in the order is unknown without a message from"
    found = [_waiting_run(ordering, each.run, each.members, unknown) for each in ordering.protocol.waiting()]
    for run in ordering.queue:
        lacking = _to_blame(ordering, run.origin, knowledge.lacking(run.origin, run.end))
        found.append(_waiting_run(ordering, run, lacking, "it is not known to be held by a majority without word from"))
    if not ordering.has_room():
        behind = _names(ordering, _to_blame(ordering, me, knowledge.behind(me)))
        why = f"so much is under way that more waits until it is delivered by {', '.join(behind)}"
        first = ordering.operation_before(me, ordering.sent)
        found.append(WaitingRun(core.me.name, first, max(0, core.operations.last - first), behind, why))
    return found


def slow_relays(ordering: Ordering) -> dict[str, int]:
    """The relays that lack some of what this member sent, and how much of it each has taken."""
    me, knowledge = ordering.rank, ordering.knowledge
    late = [rank for rank in knowledge.lacking(me, ordering.sent) if rank != me]
    found = relays_to_blame(ordering.protocol, me, late)
    return {ordering.view.members[rank].name: knowledge.held[rank][me] for rank in found}


def _to_blame(ordering: Ordering, origin: int, ranks: Iterable[int]) -> list[int]:
    return to_blame(ordering.protocol, origin, [rank for rank in ranks if rank != ordering.rank])


def _waiting_run(ordering: Ordering, run: Run, ranks: Iterable[int], why: str) -> WaitingRun:
    names = _names(ordering, ranks)
    first = ordering.operation_before(run.origin, run.first)
    return WaitingRun(ordering.view.members[run.origin].name, first, run.count, names, f"{why} {', '.join(names)}")


def _names(ordering: Ordering, ranks: Iterable[int]) -> tuple[str, ...]:
    return tuple(ordering.view.members[rank].name for rank in ranks if rank != ordering.rank)
