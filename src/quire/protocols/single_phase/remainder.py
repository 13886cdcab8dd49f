"""Delivery at the end of a view: everything that is left of it, in the order of positions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from quire.model.packets import Packet
from quire.protocols.contract import Deliver
from quire.protocols.single_phase.packets import Operations
from quire.protocols.single_phase.positions import rank


def remainder(
    packets: Iterable[Packet], delivered: Sequence[int], members: int, *, rotating: bool, unit: bool
) -> list[Deliver]:
    """The operations of these packets that were not delivered, by time and, among equal times, by rank at that time. Runs
    that are ordered operation by operation (`unit` is false) may be delivered in part already, and are cut again here."""
    left = [packet for packet in packets if isinstance(packet, Operations) and packet.run.end > delivered[packet.run.origin]]
    if unit:
        placed = [(packet.time, rank(packet.run.origin, packet.time, members, rotating), packet.run) for packet in left]
        return [Deliver(run, (time, tie)) for time, tie, run in sorted(placed, key=lambda one: one[:2])]
    operations = sorted(
        (time, rank(packet.run.origin, time, members, rotating), packet.run.origin, step, packet)
        for packet in left
        for step in range(max(0, delivered[packet.run.origin] - packet.run.first), packet.run.count)
        for time in (packet.time + step,)
    )
    found: list[Deliver] = []
    start = 0
    for end in range(1, len(operations) + 1):
        time, tie, origin, step, packet = operations[start]
        length = end - start
        if end < len(operations) and operations[end][2:4] == (origin, step + length) and operations[end][4] is packet:
            continue
        found.append(Deliver(packet.run.part(step, step + length), (time, tie)))
        start = end
    return found
