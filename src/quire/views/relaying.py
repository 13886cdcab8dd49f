"""Who is to blame where members pass on what others sent, and some lack it."""

from __future__ import annotations

from collections.abc import Sequence

from quire.protocols.contract import Protocol


def to_blame(protocol: Protocol, source: int, late: Sequence[int]) -> list[int]:
    """Of members that lack what `source` sent, those to whom none of the others has to pass it on."""
    return [one for one in late if not any(protocol.passes(source, one, other) for other in late)]


def relays_to_blame(protocol: Protocol, source: int, late: Sequence[int]) -> list[int]:
    """Of these, those who have to pass it on to others of them."""
    if not protocol.relays:
        return []
    return [one for one in to_blame(protocol, source, late) if any(protocol.passes(source, other, one) for other in late)]
