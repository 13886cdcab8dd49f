"""Memberships: what a member delivers of a group is a slice of the group's one log, from its join to its leave."""

from __future__ import annotations

from quire.model.messages import MessageId
from quire.model.orders import Guarantee
from quire.pipeline.auditing.check import AuditCheck, Need
from quire.pipeline.auditing.checks.hybrid import WITHIN_GROUPS
from quire.pipeline.auditing.explanations import Explanation, Log
from quire.pipeline.auditing.group_history import AGAIN, BLANK, OPS, OUTSIDE, SKIPPED
from quire.pipeline.auditing.group_logs import DIFFERENT, GroupLogsResult, Seen
from quire.pipeline.auditing.in_groups import GroupsResult
from quire.pipeline.auditing.results import Results
from quire.pipeline.auditing.verdicts import LoggedEvent, Witness

VIEWS = Need(
    lambda results: not results.of(GroupsResult).logs.changes,
    "the trace records no joins or leaves (rows of kind view)",
)


def _explain(results: Results, _: Log) -> Explanation:
    """Needs no lookups: the task's result holds the whole counterexample."""
    found = results.of(GroupsResult).logs
    witness = Witness(
        messages=tuple(map(_name, found.seen)),
        members=tuple(dict.fromkeys(seen.member for seen in found.seen)),
        positions=tuple(LoggedEvent(seen.member, seen.kind, _name(seen), seen.pos, _message(seen)) for seen in found.seen),
        names=tuple(dict.fromkeys(message for message in map(_message, found.seen) if message is not None)),
    )
    return Explanation(witness, _because(found))


def _because(found: GroupLogsResult) -> str:
    first, group = found.seen[0], f"group {found.group}"
    if found.kind == OUTSIDE:
        return f"member {first.member} {_saw(first)} of {group} at position {first.pos}, outside its membership"
    if found.kind == AGAIN:
        return f"member {first.member} joined {group} at position {first.pos}, though it was a member already"
    if found.kind == SKIPPED:
        return (
            f"member {first.member} {_saw(first)} of {group} as number {first.seq}, "
            f"though number {found.expected} was due after what it had delivered"
        )
    other = found.seen[1]
    if found.kind == DIFFERENT:
        return (
            f"number {first.number} of {group} is {_name(first)} at member {first.member}, "
            f"but {_name(other)} at member {other.member}"
        )
    return (
        f"member {first.member} delivered {group} up to number {first.number} and never left, "
        f"but the group goes to number {found.expected}, which member {other.member} delivered"
    )


def _message(seen: Seen) -> MessageId | None:
    return None if seen.what else MessageId(seen.origin, seen.seq)


def _name(seen: Seen) -> str:
    if seen.what == OPS[BLANK]:
        return "a blank number"
    return f"the {seen.what} of member {seen.origin}" if seen.what else str(_message(seen))


def _saw(seen: Seen) -> str:
    return f"saw {_name(seen)}" if seen.what else f"delivered {_name(seen)}"


MEMBERSHIPS = AuditCheck(
    guarantee=Guarantee.MEMBERSHIPS,
    holds="every member delivered one slice of each group's log, from its join to its leave",
    needs=(VIEWS,),
    tasks=(WITHIN_GROUPS,),
    count=lambda results: results.of(GroupsResult).logs.violations,
    explain=_explain,
)
