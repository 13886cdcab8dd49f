"""What reads the bytes of a peer before any protocol does: frames, handshakes, introductions."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import msgspec

from quire.live.network.handshake import NONCE_BYTES, Handshake, Trust
from quire.live.network.seal import Seal
from quire.live.settings import Introduction, check_same
from quire.wire.frames import (
    ACKED,
    CLOSING,
    INTRODUCTION,
    PACKET,
    Numbered,
    Reader,
    acked,
    control_frame,
    count_body,
    numbered_head,
    read_count,
)
from quire.wire.links import Incoming, Outgoing
from tests.fuzz.source import Bytes

MEMBERS = 3
SECRET = b"sixteen bytes or more"


def read_stream(source: Bytes) -> None:
    """A stream of frames, sealed or not, in pieces of any size, to both halves of a link."""
    seal = Seal(bytes(32)) if source.byte() & 1 else None
    size = source.byte() + 1
    reader, incoming, outgoing = Reader(1 << 12, 16), Incoming(), Outgoing()
    for _ in range(3):
        outgoing.push(PACKET, 0, 0, b"body")
    while source.data:
        reader.feed(source.take(size))
        for frame in reader.frames(seal.opened if seal else None):
            if isinstance(frame, Numbered):
                if incoming.is_new(frame.number):
                    if frame.kind == CLOSING:
                        read_count(frame)
                    incoming.take(len(frame.body))
            elif frame.kind == ACKED:
                outgoing.acknowledged(read_count(frame))
        assert len(reader._buffer) <= (1 << 12) + 4
    assert outgoing.arrived <= 3
    assert outgoing.bytes >= 0


def _side(trust: Trust, peer: int | None) -> Handshake:
    secret = SECRET if trust is Trust.SECRET else None
    return Handshake(
        initiator=peer is not None, me=1, members=MEMBERS, peer=peer, trust=trust, nonce=bytes(NONCE_BYTES), secret=secret
    )


def _shake(handshake: Handshake, source: Bytes) -> None:
    while not handshake.done:
        handshake.receive(source.take(handshake.wanted).ljust(handshake.wanted, b"\0"))
    assert handshake.peer in (0, 2)
    assert handshake.sending is None, "nobody gets past the proof by chance"


def read_hello(source: Bytes) -> None:
    _shake(_side(Trust(source.byte() % 3), None), source)


def read_answer(source: Bytes) -> None:
    handshake = _side(Trust(source.byte() % 3), 0)
    handshake.start()
    _shake(handshake, source)


def read_introduction(source: Bytes) -> None:
    try:
        theirs = msgspec.msgpack.decode(source.data, type=Introduction)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return
    check_same(_introduction(), theirs, 1, 0)
    Outgoing().resume(theirs.received)


@cache
def _introduction() -> Introduction:
    return Introduction("test", "fifo", {"held": 1}, ("127.0.0.1:1", "127.0.0.1:2"), 0, 42, 0)


def stream_seeds() -> Iterator[bytes]:
    packet = numbered_head(PACKET, 0, 0, 1, 3) + b"abc"
    closing = numbered_head(CLOSING, 1, 0, 2, 8) + count_body(7)
    stream = packet + closing + acked(2) + control_frame(INTRODUCTION, msgspec.msgpack.encode(_introduction()))
    seal = Seal(bytes(32))
    sealed = b"".join(seal.sealed(frame) for frame in (packet, closing, acked(1)))
    yield bytes([0, 9]) + stream
    yield bytes([1, 200]) + sealed


def hello_seeds() -> Iterator[bytes]:
    for trust in Trust:
        other = Handshake(
            initiator=True, me=0, members=MEMBERS, peer=1, trust=trust, nonce=bytes(NONCE_BYTES), secret=_wrong_secret(trust)
        )
        yield bytes([trust]) + other.start()


def answer_seeds() -> Iterator[bytes]:
    for trust in Trust:
        answering = Handshake(
            initiator=False,
            me=0,
            members=MEMBERS,
            peer=None,
            trust=trust,
            nonce=bytes(NONCE_BYTES),
            secret=_wrong_secret(trust),
        )
        yield bytes([trust]) + answering.receive(_side(trust, 0).start())


def introduction_seeds() -> Iterator[bytes]:
    yield msgspec.msgpack.encode(_introduction())


def _wrong_secret(trust: Trust) -> bytes | None:
    """Not the right one, or the seeds would hold a proof."""
    return SECRET[::-1] if trust is Trust.SECRET else None
