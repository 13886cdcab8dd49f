"""What is fuzzed: everything that reads bytes of a peer, and every protocol behind it.

The first byte of an input says which reader gets the rest. Only typed errors may come out, and a protocol that refuses a
packet must be as it was before. Half of the packets are made of the input's bytes as they are; for the other half the input
only chooses fields, because random bytes are seldom a packet at all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from typing import get_type_hints

import msgspec

from quire.live.frames import (
    ACKED,
    CLOSING,
    INTRODUCTION,
    PACKET,
    FrameError,
    Numbered,
    PacketCodec,
    Reader,
    acked,
    count_body,
    numbered_head,
    read_count,
    word,
)
from quire.live.handshake import NONCE_BYTES, Handshake, Seal, Trust
from quire.live.links import Incoming, Outgoing
from quire.live.settings import Introduction, check_same
from quire.model.errors import QuireError
from quire.model.messages import Body, Run, make_run
from quire.model.packets import Packet
from quire.protocols.contract import Protocol, Send
from tests.kit.state import freeze
from tests.kit.variants import Variant, variants

MEMBERS = 3
SECRET = b"sixteen bytes or more"

_NUMBERS = (
    0,
    1,
    2,
    3,
    4,
    7,
    -1,
    127,
    128,
    2**31,
    2**32,
    2**32 + 1,
    2**53,
    2**62,
    2**63 - 2,
    2**63 - 1,
    2**63,
    2**64 - 1,
    -(2**63),
)


class Bytes:
    """An input that is used up from the front; zeros come after its end."""

    def __init__(self, data: bytes) -> None:
        self.data = data

    def take(self, count: int) -> bytes:
        piece, self.data = self.data[:count], self.data[count:]
        return piece

    def byte(self) -> int:
        return self.take(1)[0] if self.data else 0

    def number(self) -> int:
        """Mostly small; the others are those at which something might overflow."""
        choice = self.byte()
        return choice % 8 if choice < 160 else _NUMBERS[choice % len(_NUMBERS)]


def fuzz(data: bytes) -> None:
    """Run one input. Raises whatever should not have come out."""
    source = Bytes(data)
    choice = source.byte()
    readers: tuple[Callable[[Bytes], None], ...] = (read_stream, read_hello, read_answer, read_introduction)
    with suppress(QuireError):
        if choice < len(readers):
            readers[choice](source)
        else:
            talk_to_protocol(source, _variants()[choice % len(_variants())])


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


def talk_to_protocol(source: Bytes, variant: Variant) -> None:
    """Several packets, of which any may be nonsense, to a member that has sent something itself."""
    protocol = variant.factory()(1, MEMBERS)
    codec = PacketCodec(type(protocol).packets)
    sent = [effect.packet for effect in protocol.submit(make_run(1, 0, [b"own", b"words"])) if isinstance(effect, Send)]
    for packet in sent:
        codec.decode(memoryview(codec.encode(packet)))
    while source.data:
        choice = source.byte()
        peer = (0, 2)[choice & 1]
        body = source.take(source.byte()) if choice & 2 else codec.encode(_built(source, protocol, choice >> 2))
        with suppress(FrameError):
            _receive(protocol, peer, codec.decode(memoryview(body)))


def _receive(protocol: Protocol, peer: int, packet: Packet) -> None:
    before = freeze(protocol)
    try:
        protocol.receive(peer, packet)
    except QuireError:
        assert freeze(protocol) == before, "a packet that was refused has left something behind"
    assert protocol.held_back() >= 0
    for waiting in protocol.waiting():
        assert waiting.because


def _built(source: Bytes, protocol: Protocol, choice: int) -> Packet:
    """A packet of the protocol with fields that the input chooses."""
    kind = type(protocol).packets[choice % len(type(protocol).packets)]
    return kind(**{name: _field(source, what) for name, what in _fields(kind).items()})


def _field(source: Bytes, what: object) -> object:
    if what is int:
        return source.number()
    if what is Run:
        return _run(source)
    if what is bytes:
        return source.take(source.byte() % 4)
    count = (MEMBERS, MEMBERS, MEMBERS, source.byte() % 5)[source.byte() % 4]
    if what == tuple[int, ...]:
        return tuple(source.number() for _ in range(count))
    assert what == tuple[tuple[int, int], ...], f"no way to make a field of type {what}"
    return tuple((source.number(), source.number()) for _ in range(count))


def _run(source: Bytes) -> Run:
    count, choice = source.number(), source.byte()
    origin, first = (choice & 3, source.number()) if choice & 64 else ((0, 2)[choice & 1], choice >> 4)
    if choice & 128 and 0 < count < 100:
        return make_run(origin, first, [b"x" * (number % 3) for number in range(count)])
    payload = bytes(source.byte())
    lengths = tuple(source.number() for _ in range(source.byte() % 4))
    return Run(origin, first, count, Body(payload, source.number(), lengths), source.number() if choice & 32 else 0)


@cache
def _fields(kind: type[Packet]) -> dict[str, object]:
    hints = get_type_hints(kind)
    return {name: hints[name] for name in kind.__struct_fields__}


@cache
def _variants() -> tuple[Variant, ...]:
    return tuple(variants())


@cache
def _introduction() -> Introduction:
    return Introduction("test", "fifo", {"held": 1}, ("127.0.0.1:1", "127.0.0.1:2"), 0, 42, 0)


def seeds() -> Iterator[bytes]:
    """Inputs that get far, for the fuzzer to start from."""
    packet = numbered_head(PACKET, 0, 0, 1, 3) + b"abc"
    closing = numbered_head(CLOSING, 1, 0, 2, 8) + count_body(7)
    stream = packet + closing + acked(2) + word(INTRODUCTION, msgspec.msgpack.encode(_introduction()))
    seal = Seal(bytes(32))
    sealed = b"".join(
        (len(frame) - 4 + 16).to_bytes(4, "big") + frame[4:] + seal.tag(frame[4:]) for frame in (packet, closing, acked(1))
    )
    yield bytes([0, 0, 9]) + stream
    yield bytes([0, 1, 200]) + sealed
    for trust in Trust:
        other = Handshake(
            initiator=True, me=0, members=MEMBERS, peer=1, trust=trust, nonce=bytes(NONCE_BYTES), secret=_secret(trust)
        )
        hello = other.start()
        yield bytes([1, trust]) + hello
        answering = Handshake(
            initiator=False, me=0, members=MEMBERS, peer=None, trust=trust, nonce=bytes(NONCE_BYTES), secret=_secret(trust)
        )
        yield bytes([2, trust]) + answering.receive(_side(trust, 0).start())
    yield bytes([3]) + msgspec.msgpack.encode(_introduction())
    for choice in range(4, 4 + len(_variants())):
        protocol = _variants()[choice % len(_variants())].factory()(0, MEMBERS)
        bodies = []
        for number in range(3):
            for effect in protocol.submit(make_run(0, number, [b"x"])):
                if isinstance(effect, Send):
                    body = msgspec.msgpack.encode(effect.packet)
                    bodies.append(bytes([2, len(body)]) + body)
        yield bytes([choice]) + b"".join(bodies)
        yield bytes([choice, *range(1, 250, 7), *range(0, 250, 3)])


def _secret(trust: Trust) -> bytes | None:
    """Not the right one, or the seeds would hold a proof."""
    return SECRET[::-1] if trust is Trust.SECRET else None
