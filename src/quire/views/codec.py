"""Packets and records to bytes, and back. Bytes from a peer or a disk are checked against the types, or refused."""

from __future__ import annotations

from collections.abc import Iterable
from struct import Struct
from typing import Any, Final, Union

import msgspec

from quire.model.errors import BadInput
from quire.model.messages import Run
from quire.protocols.registry import find
from quire.views import packets, records
from quire.views.packets import GroupPacket
from quire.views.records import Record, Took

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

_UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""What reading bytes raises that are not what they should be."""

_APART: Final = 0xC1
"""What a record begins with whose messages come after the rest of it. Nothing in msgpack begins so."""
_APART_HEAD = Struct("<BI")
"""That, and how many bytes the rest has."""
APART_BYTES = 1 << 14
"""Fewer bytes of messages than these are copied into their record, which takes less time than to have them apart."""


class GroupCodec:
    """The codec of a group whose messages are ordered by this protocol."""

    def __init__(self, protocol: str) -> None:
        carried = _union(find(protocol).protocol.packets)
        self._encoder = msgspec.msgpack.Encoder()
        self._packets = msgspec.msgpack.Decoder(_union((*(one[carried] for one in _GENERIC_PACKETS), *_PLAIN_PACKETS)))
        self._records = msgspec.msgpack.Decoder(_union((*(one[carried] for one in _GENERIC_RECORDS), *_PLAIN_RECORDS)))

    def encode(self, packet: GroupPacket) -> bytes:
        return self._encoder.encode(packet)

    def encode_record(self, record: Record) -> tuple[bytes, ...]:
        """A record, in parts: the messages of a long run are a part of their own, so that they are not copied."""
        if isinstance(record, Took):
            payload = record.data.run.body.payload
            if len(payload) >= APART_BYTES:
                rest = self._encoder.encode(Took(record.data.without_messages()))
                return _APART_HEAD.pack(_APART, len(rest)) + rest, payload
        return (self._encoder.encode(record),)

    def packet(self, data: bytes | memoryview) -> GroupPacket:
        """Raises BadInput where these bytes are no packet."""
        try:
            packet: GroupPacket = self._packets.decode(data)
        except _UNREADABLE as error:
            raise BadInput(f"these bytes cannot be read: {error}") from error
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
        if len(data) < _APART_HEAD.size or data[0] != _APART:
            return self._read(self._records, data)  # type: ignore[no-any-return]
        messages = _APART_HEAD.size + _APART_HEAD.unpack_from(data)[1]
        record = self._read(self._records, data[_APART_HEAD.size : messages])
        if not isinstance(record, Took):
            raise BadInput("a record of another kind than a run has messages apart from it")
        return Took(record.data.with_messages(bytes(data[messages:])))

    def _read(self, decoder: Any, data: bytes | memoryview) -> Any:
        try:
            return decoder.decode(data)
        except _UNREADABLE as error:
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
