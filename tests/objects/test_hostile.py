"""Packets that no correct peer sends: refused with a typed error, and nothing of them is taken."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import msgspec
import pytest

from quire.model.errors import ProtocolViolation
from quire.model.packets import Packet
from quire.protocols.objects.node import ObjectNode
from quire.simulation.randomness import stream
from quire.wire.frames import FrameError, PacketCodec
from tests.objects.kit import Execution, Plan
from tests.objects.test_swarm import KINDS

VALUES: tuple[Any, ...] = (
    0,
    1,
    -1,
    2,
    3,
    2**31,
    2**53,
    2**63 - 1,
    -(2**63),
    "",
    "x0",
    "op0",
    "nobody",
    None,
    True,
    [],
    b"\xc1",
)
PACKETS = 800


def half_way(seed: int) -> tuple[Execution, list[tuple[int, int, Packet]]]:
    """A run that is stopped in the middle, and every packet that was on the way until then."""
    execution = Execution(seed, Plan(members=3, roots=8, conflict=0.7, cyclic=True, options=KINDS["collected"]))
    packets: list[tuple[int, int, Packet]] = []
    carry = execution.world.carry

    def keep(host: Any, send: Any) -> None:
        packets.extend((host.node.address, to, send.packet) for to in send.to)
        carry(host, send)

    execution.world.carry = keep  # type: ignore[method-assign]
    execution.play(until_ms=8)
    return execution, packets


def spoil(value: Any, random: Any) -> Any:
    """The same with one leaf replaced."""
    if not isinstance(value, list) or not value:
        return random.choice(VALUES)
    index = random.randrange(len(value))
    return [*value[:index], spoil(value[index], random), *value[index + 1 :]]


def state(thing: Any) -> Any:
    """Everything that an object of the protocol holds, as text, to compare it with itself later."""
    if isinstance(thing, dict):
        return [(repr(key), state(value)) for key, value in thing.items()]
    if type(thing).__module__.startswith("quire.protocols.objects") and hasattr(thing, "__dict__"):
        return [(name, state(value)) for name, value in vars(thing).items()]
    return repr(thing)


@pytest.mark.parametrize("seed", range(2))
def test_spoilt_packets_are_refused_and_leave_no_mark(seed: int) -> None:
    execution, packets = half_way(seed)
    random, codec, refused = stream(seed, "spoil"), PacketCodec(ObjectNode.packets), 0
    nodes = [executor.node for executor in execution.executors]
    for _ in range(PACKETS):
        source, to, packet = random.choice(packets)
        spoilt = spoil(msgspec.msgpack.decode(msgspec.msgpack.encode(packet)), random)
        try:
            packet = codec.decode(memoryview(msgspec.msgpack.encode(spoilt)))
        except FrameError:
            continue
        node = deepcopy(nodes[to])
        before = state(node)
        try:
            node.receive(execution.world.now, source, packet)
        except ProtocolViolation:
            refused += 1
            assert state(node) == before, f"{packet} was refused, but something of it was taken"
    assert refused > PACKETS // 50
