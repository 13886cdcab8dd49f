"""What is on its way between members, and what becomes of it when its sender crashes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from heapq import heapify
from typing import Any

from quire.model.packets import Packet

Parcel = tuple[int, Packet, int, tuple[int, ...], int, int]
"""Source, packet, logical time of its sending, receivers, and the key and length of the run in it (key -1: none)."""

Entry = tuple[int, int, Callable[[Any], None] | None, Any]
"""Something that will happen: when, the running number that breaks ties, and act(item), or None for a parcel that arrives."""


def cut_flights(
    entries: Iterable[Entry], flying_to: Callable[[Entry], tuple[int, ...]], keep: Callable[[int], int]
) -> list[Entry]:
    """The heap of entries without those copies that get lost in the crash of their sender.

    `flying_to` says to whom an entry carries something of the crashed member. On each of its links the last copies are
    lost and the first `keep(how many there are)` get through, so that survivors really know different beginnings.
    """
    in_order_of_sending = sorted(entries, key=lambda entry: entry[1])
    flights: dict[int, int] = {}
    for entry in in_order_of_sending:
        for receiver in flying_to(entry):
            flights[receiver] = flights.get(receiver, 0) + 1
    left = {receiver: keep(flights[receiver]) for receiver in sorted(flights)}
    heap = []
    for entry in in_order_of_sending:
        flying = flying_to(entry)
        through = tuple(receiver for receiver in flying if left[receiver] > 0)
        for receiver in through:
            left[receiver] -= 1
        time, number, act, item = entry
        if flying and act is None:
            item = (*item[:3], through, *item[4:])
        if through or not flying:
            heap.append((time, number, act, item))
    heapify(heap)
    return heap
