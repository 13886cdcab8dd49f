"""A node of a service, and its peers, of which any may send nonsense.

An input is a list of steps. In each some time passes, and then the node is woken, its application asks for something, or
a packet comes from anybody. What every node must keep to: only typed errors come out, a refused packet leaves nothing behind,
and whatever is sent can be encoded. The seeds are what a node gets in a service in which everybody is honest.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import Any, NamedTuple

import msgspec

from quire.model.errors import QuireError
from quire.protocols.node import Effects, Node, Send
from quire.wire.frames import FrameError, PacketCodec
from tests.fuzz.source import Bytes

STEP_NS = 4_000_000
WAKE, ASK, RAW, BUILT = range(4)

Ask = Callable[[Node, int, Bytes], Effects]


class Cast(NamedTuple):
    """A service of which one node is fuzzed."""

    name: str
    make: Callable[[], Mapping[int, Node]]
    """All nodes by their addresses."""
    target: int
    ask: Ask
    """What the application of a node asks, as the input chooses."""
    script: tuple[tuple[int, bytes], ...]
    """What the applications ask when everybody is honest: at which address, and by which bytes."""
    names: tuple[str, ...]
    size: int


def talk_to_node(source: Bytes, cast: Cast) -> None:
    source.names, source.size = cast.names, cast.size
    nodes = cast.make()
    node, peers, now = nodes[cast.target], [*nodes, 77, -1], 0
    codec = PacketCodec(type(node).packets)
    while source.data:
        choice = source.byte()
        now += (choice >> 2) * STEP_NS
        if choice & 3 == WAKE:
            _performed(node, node.wake(now))
        elif choice & 3 == ASK:
            with suppress(QuireError):
                _performed(node, cast.ask(node, now, source))
        else:
            peer = peers[source.byte() % len(peers)]
            raw = choice & 3 == RAW
            body = source.take(256 * source.byte() + source.byte()) if raw else codec.encode(source.packet(type(node).packets))
            with suppress(FrameError):
                _receive(node, now, peer, codec.decode(memoryview(body)))


def _receive(node: Node, now: int, peer: int, packet: Any) -> None:
    before = _picture(node)
    try:
        effects = node.receive(now, peer, packet)
    except QuireError:
        assert _picture(node) == before, "a packet that was refused has left something behind"
        return
    _performed(node, effects)


def _performed(node: Node, effects: Effects) -> None:
    for effect in effects:
        if isinstance(effect, Send):
            msgspec.msgpack.encode(effect.packet)
    due = node.due()
    assert due is None or due >= 0
    node.idle()


def _picture(thing: Any) -> Any:
    """A copy of everything that a node knows, to compare it with later."""
    if isinstance(thing, dict):
        return {key: _picture(value) for key, value in thing.items()}
    if isinstance(thing, list | tuple | deque):
        return [_picture(item) for item in thing]
    if isinstance(thing, set):
        return set(thing)
    if isinstance(thing, msgspec.Struct):
        return type(thing), [_picture(getattr(thing, name)) for name in thing.__struct_fields__]
    if callable(thing) or not hasattr(thing, "__dict__"):
        return thing
    return type(thing), _picture(vars(thing))


def node_seeds(cast: Cast) -> Iterator[bytes]:
    yield b"".join(_rehearsal(cast))
    yield bytes([*range(1, 250, 3), *range(0, 250, 5), *range(250, 0, -1)])


def _rehearsal(cast: Cast) -> Iterator[bytes]:
    """The steps of the node while everybody does what the script says, on a network that loses nothing."""
    nodes, now = cast.make(), 0
    on_the_way: deque[tuple[int, int, Any]] = deque()

    def perform(address: int, effects: Effects) -> None:
        on_the_way.extend((address, to, e.packet) for e in effects if isinstance(e, Send) for to in e.to if to in nodes)

    for address, asked in cast.script:
        with suppress(QuireError):
            perform(address, cast.ask(nodes[address], now, Bytes(asked, cast.names, cast.size)))
        if address == cast.target:
            yield bytes([ASK]) + asked
        for _ in range(3):
            while on_the_way:
                peer, to, packet = on_the_way.popleft()
                perform(to, nodes[to].receive(now, peer, packet))
                if to == cast.target:
                    body = msgspec.msgpack.encode(packet)
                    yield bytes([RAW, list(nodes).index(peer)]) + len(body).to_bytes(2, "big") + body
            now += 15 * STEP_NS
            for each, node in nodes.items():
                perform(each, node.wake(now))
            yield bytes([15 << 2 | WAKE])
