"""Validation of answers from sequencers and the directory: a client refuses those that no correct one gives."""

from __future__ import annotations

from quire.model.messages import NUMBER_MAX
from quire.model.packets import Packet
from quire.protocols.sequencing import packets as wire
from quire.protocols.sequencing.events import Event
from quire.protocols.sequencing.permissions import Permissions


def wrong_reply(packet: Packet, permissions: Permissions) -> str | None:
    """Why no correct sequencer or directory can have sent this, or None."""
    match packet:
        case Event():
            return None if packet.is_sound() else f"this cannot have been numbered: {packet.kind} from {packet.seq} on"
        case wire.Ack(seq=seq):
            return None if 1 <= seq <= NUMBER_MAX // 2 else f"numbers start at 1 and do not reach {seq}"
        case wire.Ready(sequencer=location) | wire.Located(sequencer=location) | wire.NewLocation(sequencer=location):
            known = permissions.is_sequencer(location) or (wire.LOST <= location < 0 and not isinstance(packet, wire.Ready))
            return None if known else f"{location} is not a sequencer"
    return None
