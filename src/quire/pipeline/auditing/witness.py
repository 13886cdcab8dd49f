"""From a violation to a story that a person can check in the logs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec
import numpy as np

from quire.model.messages import MessageId
from quire.model.orders import Guarantee
from quire.pipeline.auditing import kernel
from quire.pipeline.auditing.findings import Findings, Late
from quire.pipeline.auditing.search import Chain, ChainTask, FindTask, Found, FoundEvents, Link, Message, by_message
from quire.pipeline.auditing.stories import Story, tell_serialisable, tell_significant, tell_spells
from quire.pipeline.auditing.tasks import Task
from quire.pipeline.auditing.verdicts import Place, Witness
from quire.pipeline.layout import Layout, overlapping
from quire.pipeline.tasks import Runner
from quire.trace.schema import DELIVER, KINDS, SEND

_ROWS_PER_TASK = 4_000_000


class _Log(msgspec.Struct):
    """The events of the messages that the stories speak of."""

    events: dict[Message, list[Found]]

    def at(self, member: int, kind: int, message: Message) -> list[Found]:
        return [event for event in self.events.get(message, []) if event.process == member and event.kind == kind]

    def first(self, member: int, kind: int, message: Message) -> list[Found]:
        return self.at(member, kind, message)[:1]


def tell(layout: Layout, found: Findings, run: Runner) -> dict[Guarantee, Story]:
    """A story for each check that is violated, from one or two small jobs over the trace."""
    stories: dict[Guarantee, Story] = {}
    if found.spells.violations:
        stories[Guarantee.SPELLS] = tell_spells(found.spells)
    if found.significant.violations:
        stories[Guarantee.SIGNIFICANT] = tell_significant(found.significant)
    if found.serialisable.violations:
        stories[Guarantee.SERIALISABLE] = tell_serialisable(found.serialisable)
    messages = _named(found)
    if not messages:
        return stories
    shares = (np.cumsum([group.rows for group in layout.groups]) - 1) // _ROWS_PER_TASK
    tasks: list[Task] = []
    for share in np.unique(shares):
        groups = tuple(group for group, its in zip(layout.groups, shares, strict=True) if its == share)
        tasks.append(FindTask(layout.world, groups, tuple(sorted(messages))))
    results = run(tasks)
    log = _Log(by_message([event for result in results if isinstance(result, FoundEvents) for event in result.events]))
    if found.first_breach:
        stories[Guarantee.INTEGRITY] = _tell_breach(log, *found.first_breach)
    if found.first_lost:
        stories[Guarantee.AGREEMENT] = _tell_lost(log, layout, *found.first_lost)
    fifo, causal = found.first_late
    if fifo:
        _, origin, seq, _, missed = fifo
        link = f"member {origin} had sent {_id((origin, missed))} before {_id((origin, seq))}"
        stories[Guarantee.FIFO] = _tell_late(log, fifo, [], link)
    if causal:
        links = _chain(layout, found, log, causal, run)
        stories[Guarantee.CAUSAL] = _tell_late(log, causal, links, _tell_chain(links))
    if found.total.disagreement:
        one, other, before, after = found.total.disagreement
        stories[Guarantee.TOTAL] = _tell_cycle(log, ((one, before, after), (other, after, before)))
    if found.total.cycle:
        stories[Guarantee.ACYCLIC] = _tell_cycle(log, found.total.cycle)
    if found.within.disagreement:
        one, other, before, after = found.within.disagreement
        witness, because = _tell_cycle(log, ((one, before, after), (other, after, before)))
        stories[Guarantee.HYBRID] = (witness, f"within group {found.within.group}, {because}")
    elif causal:
        stories[Guarantee.HYBRID] = stories[Guarantee.CAUSAL]
    return stories


def _named(found: Findings) -> set[Message]:
    messages: set[Message] = set()
    if found.first_breach:
        messages.add(found.first_breach[1:3])
    if found.first_lost:
        messages.add(found.first_lost[:2])
    for late in found.first_late:
        if late:
            messages |= {late[1:3], late[3:5]}
    messages |= {message for _, before, after in found.total.cycle for message in (before, after)}
    if found.within.disagreement:
        messages |= set(found.within.disagreement[2:])
    return messages


def _chain(layout: Layout, found: Findings, log: _Log, late: Late, run: Runner) -> Sequence[Link]:
    first, last = late[3:5], late[1:3]
    low = high = None
    if not found.rebuilt:
        sends = [*log.first(first[0], SEND, first), *log.first(last[0], SEND, last)]
        low, high = sends[0].lamport, sends[1].lamport + 1
    result = run([ChainTask(layout.world, overlapping(layout.groups, low, high), first, last, low, high)])[0]
    assert isinstance(result, Chain)
    return result.links


def _tell_breach(log: _Log, process: int, origin: int, seq: int, kind: int) -> Story:
    message = (origin, seq)
    name = _id(message)
    sends, deliveries = log.at(process, SEND, message), log.at(process, DELIVER, message)
    if kind in (kernel.SENT_AGAIN, kernel.MISATTRIBUTED):
        places = sends
    elif kind == kernel.REPEATED:
        places = deliveries
    else:
        places = [*log.first(origin, SEND, message), *deliveries[:1]]
    positions = [event.pos for event in places]
    if kind == kernel.MISATTRIBUTED:
        because = f"member {process} sent {name} at position {positions[0]} in the name of member {origin}"
    elif kind == kernel.SENT_AGAIN:
        because = f"member {process} sent {name} twice, at positions {positions[0]} and {positions[1]}"
    elif kind == kernel.REPEATED:
        because = f"member {process} delivered {name} twice, at positions {positions[0]} and {positions[1]}"
    elif kind == kernel.PHANTOM:
        because = f"member {process} delivered {name} at position {positions[-1]}, though nobody sent it"
    else:
        dests = places[0].dests or ()
        members = f"only to {_members(sorted(set(dests)))}" if dests else "to nobody"
        because = f"member {process} delivered {name} at position {positions[-1]}, though it was addressed {members}"
    return _witness([message], places, members=[process]), because


def _tell_lost(log: _Log, layout: Layout, origin: int, seq: int, process: int) -> Story:
    message = (origin, seq)
    places = [*log.first(origin, SEND, message)]
    because = f"member {process} never delivered {_id(message)}, which member {origin} had sent to it"
    if origin in layout.world.crashed:
        dests = set(places[0].dests or ())
        witness = next(
            event for event in log.events[message]
            if event.kind == DELIVER and event.process not in layout.world.crashed and event.process in dests
        )  # fmt: skip
        places.append(witness)
        because += f" and member {witness.process} delivered"
    return _witness([message], places, members=[process]), because


def _tell_late(log: _Log, late: Late, links: Sequence[Link], though: str) -> Story:
    process, message, missed = late[0], late[1:3], late[3:5]
    delivered = log.first(process, DELIVER, message)
    afterwards = log.first(process, DELIVER, missed)
    what = f"before {_id(missed)}" if afterwards else f"and never {_id(missed)}, which was addressed to it"
    because = f"member {process} delivered {_id(message)} {what}, though {though}"
    places = [*log.first(missed[0], SEND, missed), *log.first(message[0], SEND, message), *delivered, *afterwards]
    chain = tuple(
        f"member {link.member} {'delivered' if link.delivered else 'sent'} {_id(link.message)} at position {link.pos}, "
        f"then sent {_id(link.then)} at position {link.then_pos}"
        for link in links
    )
    between = [link.message for link in links[1:]]
    story = _witness([missed, *between, message], places, members=[process, *(link.member for link in links)])
    return msgspec.structs.replace(story, chain=chain), because


def _tell_chain(links: Sequence[Link]) -> str:
    steps = [
        f"member {link.member} had {'delivered' if link.delivered else 'sent'} {_id(link.message)} "
        f"before it sent {_id(link.then)}"
        for link in links
    ]
    return ", and ".join(steps)


def _tell_cycle(log: _Log, steps: Sequence[tuple[int, Message, Message]]) -> Story:
    places = [event for member, *pair in steps for message in pair for event in log.first(member, DELIVER, message)]
    if len(steps) == 2:
        (one, before, after), (other, *_) = steps
        because = f"member {one} delivered {_id(before)} before {_id(after)}, but member {other} the other way round"
    else:
        because = ", ".join(
            f"member {member} {'delivered ' if index == 0 else ''}{_id(before)} before {_id(after)}"
            for index, (member, before, after) in enumerate(steps)
        )
    return _witness([before for _, before, _ in steps], places, members=[member for member, *_ in steps]), because


def _witness(messages: Iterable[Message], places: Iterable[Found], *, members: Iterable[int]) -> Witness:
    return Witness(
        messages=tuple(_id(message) for message in messages),
        members=tuple(dict.fromkeys(members)),
        positions=tuple(Place(event.process, KINDS[event.kind], _id((event.origin, event.seq)), event.pos) for event in places),
    )


def _id(message: tuple[int, ...]) -> str:
    return str(MessageId(message[0], message[1]))


def _members(members: Sequence[int]) -> str:
    if len(members) == 1:
        return f"member {members[0]}"
    return f"members {', '.join(map(str, members[:-1]))} and {members[-1]}"
