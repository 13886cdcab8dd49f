"""A group protocol, as one member of it, and packets of its peers of which any may be nonsense."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

import msgspec

from quire.model.errors import QuireError
from quire.model.messages import make_run
from quire.model.packets import Packet
from quire.protocols.contract import Protocol, Send
from quire.wire.frames import FrameError, PacketCodec
from tests.fuzz.source import Bytes
from tests.kit.state import freeze
from tests.kit.variants import Variant

MEMBERS = 3


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
        body = source.take(source.byte()) if choice & 2 else codec.encode(source.packet(type(protocol).packets))
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


def protocol_seeds(variant: Variant) -> Iterator[bytes]:
    protocol = variant.factory()(0, MEMBERS)
    bodies = []
    for number in range(3):
        for effect in protocol.submit(make_run(0, number, [b"x"])):
            if isinstance(effect, Send):
                body = msgspec.msgpack.encode(effect.packet)
                bodies.append(bytes([2, len(body)]) + body)
    yield b"".join(bodies)
    yield bytes([*range(1, 250, 7), *range(0, 250, 3)])
