"""Access control of packets: clients cannot impersonate the sequencers, the directory or each other.

The operator of the service runs its sequencers and the directory, but clients may be anybody's. So each packet is first checked
for whether its sender may send it, before anything else in it is considered.
"""

from __future__ import annotations

from collections.abc import Iterable

from quire.model.errors import ProtocolViolation
from quire.model.packets import Packet
from quire.protocols.sequencing import packets as wire
from quire.protocols.sequencing.events import Event

OF_CLIENTS: frozenset[type[Packet]] = frozenset(
    (wire.DoMulticast, wire.Join, wire.Leave, wire.LeftAck, wire.Fetch)
)  # fmt: skip
"""What a client says of itself, and a sequencer that passes on what it said."""
_OF_THE_DIRECTORY: tuple[type[Packet], ...] = (
    wire.Located, wire.Ready, wire.Host, wire.JoinAnswer, wire.Forgotten, wire.Open, wire.Outcome, wire.Evict,
)  # fmt: skip
_OF_SEQUENCERS: tuple[type[Packet], ...] = (
    Event, wire.Ack, wire.Nak, wire.NewLocation, wire.Stable, wire.Poll, wire.Overloaded, wire.Hosted, wire.JoinRequest,
    wire.Forget, wire.Transfer, wire.Done, wire.Query, wire.Load, wire.Suspect, wire.EvictDone,
)  # fmt: skip


class Permissions:
    def __init__(self, sequencers: Iterable[int], directory: int) -> None:
        self._sequencers = frozenset(sequencers)
        self._senders: dict[type[Packet], frozenset[int]] = {
            **dict.fromkeys(_OF_THE_DIRECTORY, frozenset({directory})),
            **dict.fromkeys(_OF_SEQUENCERS, self._sequencers),
            wire.Expelled: self._sequencers | {directory},
        }

    def is_sequencer(self, address: int) -> bool:
        return address in self._sequencers

    def check(self, source: int, packet: Packet) -> None:
        """Raise ProtocolViolation unless this sender is allowed to send the packet."""
        kind = type(packet)
        if kind in OF_CLIENTS:
            client: int = packet.client  # type: ignore[attr-defined]
            if client != source and source not in self._sequencers:
                raise ProtocolViolation(source, f"it sent a packet in the name of client {client}")
        elif kind in self._senders and source not in self._senders[kind]:
            raise ProtocolViolation(source, f"{packet.name} may not be sent by it")
