"""Stories of violations that the task which found them can tell whole: it has seen all that they speak of."""

from __future__ import annotations

from quire.model.messages import MessageId
from quire.pipeline.auditing.memberships import AGAIN, OUTSIDE, SKIPPED
from quire.pipeline.auditing.spells import DIFFERENT, Seen, SpellsResult
from quire.pipeline.auditing.verdicts import Place, Witness

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


def _name(seen: Seen) -> str:
    return f"the {seen.what} of member {seen.origin}" if seen.what else str(MessageId(seen.origin, seen.seq))


def _saw(seen: Seen) -> str:
    return f"saw {_name(seen)}" if seen.what else f"delivered {_name(seen)}"
