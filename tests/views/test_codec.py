"""Packets and records as bytes. The swarm sends every kind through them; here is what does not belong."""

from __future__ import annotations

from random import Random

import msgspec
import pytest

from quire.model.errors import BadInput, QuireError
from quire.model.messages import make_run
from quire.protocols.single_phase.packets import Acknowledgement, Operations
from quire.views.codec import APART_BYTES, GroupCodec
from quire.views.packets import Control, Data, Entry, Fill, GroupPacket, History, Known, Status
from quire.views.records import Submitted, Took
from quire.views.view import Position

DATA: Data = Data(3, Operations(7, make_run(0, 0, [b"x", b"yz"])), "a.1", 1, (0, 0), 0, Known((0, 0), (0, 0)))


@pytest.mark.parametrize("packet", [DATA, Control(3, Acknowledgement(9), None), Status(3, None)])
def test_a_packet_comes_back_as_it_was(packet: GroupPacket) -> None:
    codec = GroupCodec("single-phase")
    assert codec.packet(codec.encode(packet)) == packet


def test_packets_of_another_protocol_and_records_are_no_packets() -> None:
    codec = GroupCodec("single-phase")
    with pytest.raises(BadInput):
        GroupCodec("fifo").packet(codec.encode(Control(3, Acknowledgement(9), None)))
    with pytest.raises(BadInput):
        codec.packet(b"".join(codec.encode_record(Submitted(1, (b"x",)))))


def test_a_run_that_does_not_fit_its_body_is_refused_wherever_it_is() -> None:
    codec = GroupCodec("single-phase")
    run = msgspec.structs.replace(make_run(0, 0, [b"x", b"yz"]), count=9)
    data: Data = msgspec.structs.replace(DATA, packet=Operations(7, run))
    entry = Entry(2, 2, "a", 0, run, "a.1", 1)
    for packet in (
        data,
        msgspec.structs.replace(DATA, packet=Acknowledgement(9)),
        Fill(3, (DATA, data)),
        History(3, Position(2, (0, 0)), (entry,), 0, ("a", "b")),
    ):
        with pytest.raises(BadInput):
            codec.packet(codec.encode(packet))


@pytest.mark.parametrize("size", [0, 1, APART_BYTES, 3 * APART_BYTES])
def test_a_run_comes_back_from_the_journal_as_it_was_and_a_long_one_is_not_copied_there(size: int) -> None:
    codec, payload = GroupCodec("single-phase"), bytes(size)
    record: Took = Took(msgspec.structs.replace(DATA, packet=Operations(7, make_run(0, 0, [payload]))))
    parts = codec.encode_record(record)
    assert codec.record(b"".join(parts)) == record
    assert (record.data.run.body.payload in parts) == (size >= APART_BYTES)


def test_a_record_whose_messages_are_cut_or_belong_to_no_run_is_refused() -> None:
    codec = GroupCodec("single-phase")
    head, _ = codec.encode_record(Took(msgspec.structs.replace(DATA, packet=Operations(7, make_run(0, 0, [bytes(1 << 15)])))))
    (other,) = codec.encode_record(Submitted(1, (b"x",)))
    for wrong in (head[:20], head[:5] + other, head[:1]):
        with pytest.raises(BadInput):
            codec.record(wrong)


def test_spoilt_bytes_are_refused_or_read_as_something_but_never_crash() -> None:
    codec, random = GroupCodec("single-phase"), Random(1)
    whole = codec.encode(DATA)
    for _ in range(3000):
        spoilt = bytearray(whole)
        for _ in range(random.randint(1, 4)):
            spoilt[random.randrange(len(spoilt))] = random.randrange(256)
        try:
            codec.packet(bytes(spoilt[: random.randint(0, len(spoilt))]))
        except QuireError:
            continue
