"""Packets: what protocols put on the wire.

A *packet* is one protocol's message to its peers; its class says its type and its fields are its header.
Each protocol module defines its own packet classes. The body of a run inside a packet is payload, all
other encoded bytes are header.
"""

from __future__ import annotations

from typing import ClassVar, Self

import msgspec

from quire.model.messages import Run


class Packet(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Base of all packets. `name` is the type that traces and tables show (GOP, ACK …)."""

    name: ClassVar[str] = ""
    latest_counts: ClassVar[bool] = False
    """Whether this packet is superseded by a later one of its kind, or by one with messages, from the same member."""

    def carried(self) -> Run | None:
        """The run that travels in this packet, if any."""
        return None

    def carrying(self, run: Run) -> Self:
        """The same packet with another run, of one that carries any."""
        return msgspec.structs.replace(self, run=run)

    @property
    def entries(self) -> int:
        """How many message counts (vector entries) the header has, for protocols whose cost is stated in them."""
        return 0


_encoder = msgspec.msgpack.Encoder()


def header_bytes(packet: Packet) -> int:
    """How many bytes of the packet as it is encoded are not the application's."""
    run = packet.carried()
    return len(_encoder.encode(packet)) - (len(run.body.payload) if run is not None else 0)
