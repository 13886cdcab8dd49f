"""Which members to blame when messages are relayed from member to member and have not arrived everywhere."""

from __future__ import annotations

from collections.abc import Sequence

from quire.protocols.contract import Protocol


def to_blame(protocol: Protocol, source: int, late: Sequence[int]) -> list[int]:
    """The root causes among the `late` members, which lack messages from `source`: those that do not depend on another late
    member to relay the messages to them."""
    return [one for one in late if not any(protocol.passes(source, one, other) for other in late)]


def relays_to_blame(protocol: Protocol, source: int, late: Sequence[int]) -> list[int]:
    """Those root causes that are themselves relays for other late members; none where the protocol does not relay."""
    if not protocol.relays:
        return []
    return [one for one in to_blame(protocol, source, late) if any(protocol.passes(source, other, one) for other in late)]
