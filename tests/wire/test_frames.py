"""Frames: what is written is read, however it is cut, and nothing else gets through but as a typed error."""

from __future__ import annotations

import struct
from contextlib import suppress

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quire.model.messages import Body, Run, make_run
from quire.protocols.registry import PROTOCOLS
from quire.protocols.single_phase import Acknowledgement, Operations, Relay
from quire.wire.frames import (
    ACKED,
    ADDRESSED,
    ALIVE,
    INTRODUCTION,
    LAMPORT_MAX,
    NUMBERED_KINDS,
    PACKET,
    Addressed,
    ControlFrame,
    FrameError,
    Numbered,
    PacketCodec,
    Reader,
    acked,
    addressed_head,
    control_frame,
    count_body,
    numbered_head,
    read_count,
)

U64 = st.integers(0, 2**64 - 1)

numbered = st.tuples(
    st.sampled_from(sorted(NUMBERED_KINDS - {ADDRESSED})),
    U64,
    st.integers(0, 2**32 - 1),
    st.integers(0, LAMPORT_MAX),
    st.binary(max_size=300),
)
words = st.tuples(st.integers(0, 255).filter(lambda kind: kind not in NUMBERED_KINDS), st.binary(max_size=300))


def encoded(frame: tuple[int, int, int, int, bytes] | tuple[int, bytes]) -> bytes:
    if len(frame) == 2:
        return control_frame(*frame)
    kind, number, epoch, lamport, body = frame
    return numbered_head(kind, number, epoch, lamport, len(body)) + body


def read(reader: Reader) -> list[tuple[int, int, int, int, bytes] | tuple[int, bytes]]:
    found: list[tuple[int, int, int, int, bytes] | tuple[int, bytes]] = []
    for frame in reader.frames():
        if isinstance(frame, Numbered):
            found.append((frame.kind, frame.number, frame.epoch, frame.lamport, bytes(frame.body)))
        else:
            found.append((frame.kind, bytes(frame.body)))
    return found


@given(frames=st.lists(numbered | words, max_size=20), cuts=st.lists(st.integers(1, 200), min_size=1, max_size=50))
def test_frames_are_read_as_they_were_written_however_the_stream_is_cut(
    frames: list[tuple[int, int, int, int, bytes] | tuple[int, bytes]], cuts: list[int]
) -> None:
    stream = b"".join(map(encoded, frames))
    reader = Reader(frame_bytes_max=400, start_bytes=16)
    found = []
    index = 0
    while stream:
        size = cuts[index % len(cuts)]
        index += 1
        piece, stream = stream[:size], stream[size:]
        reader.feed(piece)
        found += read(reader)
    assert found == frames


@given(st.lists(st.binary(max_size=64), max_size=20))
def test_any_bytes_are_frames_or_a_frame_error(pieces: list[bytes]) -> None:
    reader = Reader(frame_bytes_max=128, start_bytes=16)
    with suppress(FrameError):
        for piece in pieces:
            reader.feed(piece)
            for frame in reader.frames():
                if isinstance(frame, ControlFrame) and frame.kind == ACKED:
                    read_count(frame)


@pytest.mark.parametrize("length", [0, 101, 2**31, 2**32 - 1])
def test_a_length_outside_the_limits_is_refused_before_anything_is_allocated_for_it(length: int) -> None:
    reader = Reader(frame_bytes_max=100, start_bytes=16)
    reader.feed(struct.pack("!I", length))
    with pytest.raises(FrameError, match=f"a frame of {length} bytes is outside 1 to 100"):
        list(reader.frames())
    assert len(reader._buffer) == 16


def test_the_buffer_never_grows_beyond_the_largest_frame() -> None:
    reader = Reader(frame_bytes_max=1000, start_bytes=16)
    frame = control_frame(ALIVE, bytes(999))
    for _ in range(50):
        for piece in (frame[:1], frame[1:700], frame[700:]):
            reader.feed(piece)
            list(reader.frames())
    assert len(reader._buffer) == 1004


def test_larger_frames_are_taken_once_the_reader_is_enlarged_and_what_is_unread_stays() -> None:
    reader = Reader(frame_bytes_max=10, start_bytes=16)
    reader.feed(control_frame(ALIVE, b"abc")[:5])
    reader.enlarge(1000, 64)
    reader.feed(control_frame(ALIVE, b"abc")[5:] + control_frame(ALIVE, bytes(500)))
    assert read(reader) == [(ALIVE, b"abc"), (ALIVE, bytes(500))]


def test_a_numbered_frame_too_short_for_its_fields_is_refused() -> None:
    reader = Reader()
    reader.feed(struct.pack("!IB", 5, PACKET) + bytes(4))
    with pytest.raises(FrameError, match="a numbered frame of 5 bytes is too short"):
        list(reader.frames())


def test_an_addressed_frame_too_short_for_its_incarnations_is_refused() -> None:
    reader = Reader()
    reader.feed(numbered_head(ADDRESSED, 0, 0, 0, 15) + bytes(15))
    with pytest.raises(FrameError, match="a numbered frame of 36 bytes is too short"):
        list(reader.frames())


@given(U64, st.integers(0, LAMPORT_MAX), U64, U64, st.binary(max_size=300))
def test_an_addressed_frame_is_read_as_it_was_written(
    number: int, lamport: int, sender: int, addressee: int, body: bytes
) -> None:
    reader = Reader()
    reader.feed(addressed_head(number, lamport, sender, addressee, len(body)) + body)
    (frame,) = reader.frames()
    assert isinstance(frame, Addressed)
    assert (frame.kind, frame.number, frame.lamport, frame.sender, frame.addressee) == (
        ADDRESSED, number, lamport, sender, addressee,
    )  # fmt: skip
    assert bytes(frame.body) == body


def test_a_logical_time_from_which_the_clock_could_not_go_on_is_refused() -> None:
    reader = Reader()
    reader.feed(numbered_head(PACKET, 0, 0, LAMPORT_MAX, 0) + numbered_head(PACKET, 1, 0, LAMPORT_MAX + 1, 0))
    frames = reader.frames()
    assert isinstance(next(frames), Numbered)
    with pytest.raises(FrameError, match="logical time"):
        next(frames)


@pytest.mark.parametrize("size", [0, 7, 9])
def test_a_count_of_another_size_is_refused(size: int) -> None:
    with pytest.raises(FrameError, match=f"a count has 8 bytes, not {size}"):
        read_count(ControlFrame(ACKED, memoryview(bytes(size))))


@given(U64)
def test_a_count_is_read_as_it_was_written(count: int) -> None:
    reader = Reader()
    reader.feed(acked(count))
    (frame,) = reader.frames()
    assert isinstance(frame, ControlFrame)
    assert (frame.kind, read_count(frame)) == (ACKED, count)
    assert read_count(ControlFrame(INTRODUCTION, memoryview(count_body(count)))) == count


@given(st.lists(st.binary(max_size=20), min_size=1, max_size=20), st.integers(0, 2**40), st.integers(0, 2**40))
def test_packets_are_read_as_they_were_written(payloads: list[bytes], first: int, time: int) -> None:
    codec = PacketCodec((Operations, Acknowledgement, Relay))
    run = make_run(1, first, payloads)
    for packet in (Operations(time, run), Acknowledgement(time), Relay(time, ((1, 2), (3, 4)))):
        assert codec.decode(memoryview(codec.encode(packet))) == packet


@pytest.mark.parametrize(
    "run",
    [
        Run(0, -1, 1, Body(b"x", 1)),
        Run(0, 0, 0, Body(b"", 1)),
        Run(0, 0, 1 << 21, Body(b"", 0)),
        Run(0, 2**63 - 1, 2, Body(b"", 0)),
        Run(0, 0, 2, Body(b"x", 1)),
        Run(0, 0, 1, Body(b"x", -1)),
        Run(0, 0, 1, Body(b"x", 1), -1),
        Run(0, 0, 1, Body(b"x", 1), 2**62),
        Run(0, 0, 2, Body(b"x", 0, (1,))),
        Run(0, 0, 2, Body(b"xy", 0, (3, -1))),
        Run(0, 0, 1, Body(b"xy", 0, (1,))),
    ],
    ids=str,
)
def test_a_run_that_cannot_be_is_refused(run: Run) -> None:
    body = msgspec.msgpack.encode(Operations(1, run))
    with pytest.raises(FrameError, match="does not fit its body"):
        PacketCodec((Operations, Acknowledgement, Relay)).decode(memoryview(body))


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize(
    "body",
    [b"", b"\xc1", b"\x90", b"\x91\x09", b"\xdd\xff\xff\xff\xff", b"\x93\x01\x01\xdf\xff\xff\xff\xff", b"\x91" * 100_000],
    ids=["empty", "reserved", "no tag", "unknown tag", "huge array", "huge map", "deep"],
)
def test_what_is_no_packet_is_a_frame_error(protocol: str, body: bytes) -> None:
    codec = PacketCodec(PROTOCOLS[protocol].protocol.packets)
    with pytest.raises(FrameError, match="a packet could not be read"):
        codec.decode(memoryview(body))
