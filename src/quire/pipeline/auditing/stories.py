"""Stories of violations that the task which found them can tell whole: it has seen all that they speak of."""

from __future__ import annotations

from quire.model.messages import MessageId
from quire.pipeline.auditing.memberships import AGAIN, OUTSIDE, SKIPPED
from quire.pipeline.auditing.serialisable import (
    INTERMEDIATE,
    OVERWROTE,
    READ_FROM,
    UNCOMMITTED,
    UNWRITTEN,
    Did,
    SerialisableResult,
    Step,
)
from quire.pipeline.auditing.significant import Began, SignificantResult
from quire.pipeline.auditing.spells import DIFFERENT, Seen, SpellsResult
from quire.pipeline.auditing.verdicts import Place, Witness
from quire.trace.schema import KINDS

Story = tuple[Witness, str]


def tell_spells(found: SpellsResult) -> Story:
    """Why a member's events of a group are no slice of the group's log."""
    first, group = found.seen[0], f"group {found.group}"
    if found.kind == OUTSIDE:
        because = f"member {first.member} {_saw(first)} of {group} at position {first.pos}, outside its membership"
    elif found.kind == AGAIN:
        because = f"member {first.member} joined {group} at position {first.pos}, though it was a member already"
    elif found.kind == SKIPPED:
        because = (
            f"member {first.member} {_saw(first)} of {group} as number {first.seq}, "
            f"though by what it delivered before number {found.expected} was due"
        )
    elif found.kind == DIFFERENT:
        other = found.seen[1]
        because = (
            f"number {first.number} of {group} is {_name(first)} at member {first.member}, "
            f"but {_name(other)} at member {other.member}"
        )
    else:
        other = found.seen[1]
        because = (
            f"member {first.member} delivered {group} up to number {first.number} and never left, "
            f"but it goes on to number {found.expected}, which member {other.member} delivered"
        )
    witness = Witness(
        messages=tuple(_name(seen) for seen in found.seen),
        members=tuple(dict.fromkeys(seen.member for seen in found.seen)),
        positions=tuple(Place(seen.member, seen.kind, _name(seen), seen.pos) for seen in found.seen),
    )
    return witness, because


def tell_significant(found: SignificantResult) -> Story:
    """Which two deliveries are in the wrong order, and why they have one."""
    first, second = found.seen[:2]
    if found.early:
        way = ", then ".join(_id(message) for message in found.chain)
        if first.request:
            because = f"{_at(first)} began {_what(first)} before {_what(second)}, which significantly precedes it: {way}"
        else:
            because = (
                f"instance {first.where} at member {first.member} received {_id(first.message)} "
                f"before {_id(second.message)}, which significantly precedes it: {way}"
            )
    else:
        because = (
            f"{_at(first)} began {_what(first)} before {_what(second)}, "
            f"but {_at(found.seen[2])} began {_what(found.seen[3])} before {_what(found.seen[2])}"
        )
    witness = Witness(
        messages=tuple(dict.fromkeys(_id(each.message) for each in found.seen)),
        members=tuple(dict.fromkeys(each.member for each in found.seen)),
        positions=tuple(Place(each.member, "deliver", _id(each.message), each.pos) for each in found.seen),
        chain=tuple(_id(message) for message in found.chain),
    )
    return witness, because


def tell_serialisable(found: SerialisableResult) -> Story:
    """The smallest circle of transactions, or what no order of them explains."""
    did = list(found.did)
    chain: tuple[str, ...] = ()
    if found.cycle:
        did = [each for step in found.cycle for each in step.did]
        names = [step.first for step in found.cycle]
        chain = tuple(_tell_step(step) for step in found.cycle)
        because = f"{', '.join(names[:-1])} and {names[-1]} come before each other: {', and '.join(chain)}"
    else:
        names = list(dict.fromkeys(each.txn for each in did))
        because = _tell_wrong(found.kind, did[0], did[1:])
    witness = Witness(
        messages=tuple(names),
        members=tuple(dict.fromkeys(each.member for each in did)),
        positions=tuple(Place(each.member, KINDS[each.kind], _id(each.message), each.pos) for each in did),
        chain=chain,
    )
    return witness, because


def _tell_step(step: Step) -> str:
    if step.why == READ_FROM:
        return f"{step.second} read {step.object} as {step.first} had written it"
    if step.why == OVERWROTE:
        return f"{step.second} overwrote {step.object} after {step.first}"
    return f"{step.first} read {step.object} before {step.second} wrote it"


def _tell_wrong(kind: int, first: Did, others: list[Did]) -> str:
    if kind == UNWRITTEN:
        return f"{first.txn} read {first.object} as {_id(first.message)} wrote it, but there is no such write"
    if kind == UNCOMMITTED:
        return f"{first.txn} read {first.object} as {others[0].txn} had written it, which never committed"
    if kind == INTERMEDIATE:
        return f"{first.txn} read {first.object} as {others[0].txn} had written it before it wrote it again"
    return f"{first.txn} committed at member {first.member}, but aborted at member {others[0].member}"


def _at(began: Began) -> str:
    return f"{began.where} at member {began.member}"


def _what(began: Began) -> str:
    return f"{_id(began.message)} ({began.op})"


def _id(message: tuple[int, int]) -> str:
    return str(MessageId(*message))


def _name(seen: Seen) -> str:
    return f"the {seen.what} of member {seen.origin}" if seen.what else _id((seen.origin, seen.seq))


def _saw(seen: Seen) -> str:
    return f"saw {_name(seen)}" if seen.what else f"delivered {_name(seen)}"
