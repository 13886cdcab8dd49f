"""Packets and records to bytes, and back. Bytes from a peer or a disk are checked against the types, or refused."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Union

import msgspec

from quire.model.errors import BadInput
from quire.model.messages import Run
from quire.protocols.registry import find
from quire.views import packets, records
from quire.views.packets import GroupPacket
from quire.views.records import Record

_GENERIC_PACKETS = (packets.Data, packets.Control, packets.Accept, packets.Fill, packets.Welcome)
_PLAIN_PACKETS = (
    packets.Have, packets.Status, packets.Prepare, packets.Promise, packets.Refuse, packets.Vote, packets.Decide,
    packets.Installed, packets.Fetch, packets.Stale, packets.Join, packets.AskState, packets.StatePart, packets.AskHistory,
    packets.History, packets.Gone, packets.Closed, packets.AskHeld, packets.Held,
)  # fmt: skip
_GENERIC_RECORDS = (records.Entered, records.Took, records.Sent, records.Kept)
_PLAIN_RECORDS = (
    records.Started, records.Promised, records.Voted, records.Submitted, records.Delivered, records.Learned,
    records.Decided, records.Caught,
)  # fmt: skip


_WITHOUT_RUNS = frozenset({packets.Control, packets.Have})


class GroupCodec:
    """The codec of a group whose messages are ordered by this protocol."""

    def __init__(self, protocol: str) -> None:
        carried = _union(find(protocol).protocol.packets)
        self._encoder = msgspec.msgpack.Encoder()
        self._packets = msgspec.msgpack.Decoder(_union((*(one[carried] for one in _GENERIC_PACKETS), *_PLAIN_PACKETS)))
        self._records = msgspec.msgpack.Decoder(_union((*(one[carried] for one in _GENERIC_RECORDS), *_PLAIN_RECORDS)))

    def encode(self, packet: GroupPacket | Record) -> bytes:
        return self._encoder.encode(packet)

    def packet(self, data: bytes | memoryview) -> GroupPacket:
        """Raises BadInput where these bytes are no packet."""
        packet: GroupPacket = self._read(self._packets, data)
        # There are most of these two, and looking for runs in a packet takes as long as reading it.
        if isinstance(packet, packets.Data):
            run = packet.packet.carried()
            is_sound = run is not None and run.is_sound()
        else:
            is_sound = type(packet) in _WITHOUT_RUNS or all(run is not None and run.is_sound() for run in _runs(packet))
        if not is_sound:
            raise BadInput("a packet has no run where it should, or one that does not fit its body")
        return packet

    def record(self, data: bytes | memoryview) -> Record:
        """Raises BadInput where these bytes are no record."""
        return self._read(self._records, data)  # type: ignore[no-any-return]

    def _read(self, decoder: Any, data: bytes | memoryview) -> Any:
        try:
            return decoder.decode(data)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise BadInput(f"these bytes cannot be read: {error}") from error


def _runs(packet: GroupPacket) -> Iterable[Run | None]:
    """The runs that a packet carries, unchecked."""
    match packet:
        case packets.Data():
            return (packet.packet.carried(),)
        case packets.Accept() | packets.Fill():
            return [data.packet.carried() for data in packet.runs]
        case packets.History():
            return [entry.run for entry in packet.entries]
        case packets.Welcome():
            before = () if packet.previous is None else packet.previous.runs
            return [*(data.packet.carried() for data in before), *(entry.run for entry in packet.entries or ())]
    return ()


def payload_bytes(packet: GroupPacket) -> int:
    """How many bytes of a packet are the application's messages."""
    return sum(len(run.body.payload) for run in _runs(packet) if run is not None)


def _union(types: tuple[Any, ...]) -> Any:
    return Union[types]  # noqa: UP007 - Of as many as there are.
