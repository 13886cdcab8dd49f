"""What a run cost and how long it took, computed from its records in bulk, for every driver that makes runs.

Packets are counted twice over: as multicasts, where one transmission reaches everybody, and point to point, where each
copy is one. Latency is taken per message; the driver says from when to when. The digest covers every member's sequence of
deliveries, message by message, so that neither batches nor times enter into it.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from hashlib import sha256

import msgspec
import numpy as np

from quire.trace.recorder import Integers, Recorder
from quire.trace.schema import DELIVER, PACKET, SEND

MULTICASTS = "multicasts"
NANOSECONDS_PER_MS = 1_000_000


class Latency(msgspec.Struct, frozen=True):
    """In milliseconds."""

    p50: float
    p99: float
    max: float
    mean: float


class LatencyByPlace(msgspec.Struct, frozen=True):
    """Origin: from submission to delivery there. Remote: at the other members; the driver says from when."""

    origin: Latency | None
    remote: Latency | None


class Share(msgspec.Struct, frozen=True):
    """How many members have a role, and how many packets come to one of them."""

    members: int
    mean: float
    max: int


class Arrivals(msgspec.Struct, frozen=True):
    """Packets that come to members over the network."""

    per_site: tuple[int, ...]
    per_role: dict[str, Share]


def arrivals_of(per_site: Sequence[int], roles: Sequence[str]) -> Arrivals:
    """What comes to each member, and to each role among those with these roles."""
    by_role = {role: [count for count, own in zip(per_site, roles, strict=True) if own == role] for role in sorted(set(roles))}
    shares = {role: Share(len(counts), sum(counts) / len(counts), max(counts)) for role, counts in by_role.items()}
    return Arrivals(tuple(per_site), shares)


def per_message(total: int | None, messages: int) -> float | None:
    return None if total is None else total / max(messages, 1)


class Summary(msgspec.Struct, frozen=True, kw_only=True):
    """What any driver says of a run; each adds what only it knows."""

    run: str
    protocol: str
    options: dict[str, object]
    members: int
    messages: int
    deliveries: int
    complete: bool
    crashed: tuple[int, ...]
    packets: dict[str, int]
    packets_point_to_point: dict[str, int]
    latency: LatencyByPlace
    header_bytes: int
    header_bytes_point_to_point: int
    header_bytes_per_message: float
    """Of all copies together, over all hops."""
    header_entries_per_message: float | None
    """Counts of messages in the headers of all copies; None where nobody counted them."""
    arrivals: Arrivals | None
    """Packets that come to each member, where members pass on what is for others."""
    wall_s: float
    digest: str
    trace: str | None


class Samples:
    """How often each waiting time occurred."""

    def __init__(self) -> None:
        self._values = np.empty(0, np.int64)
        self._counts = np.empty(0, np.int64)

    def add(self, waits: array[int]) -> None:
        """Take all of the waiting times, and empty the array."""
        self.add_counted(*np.unique(np.array(waits, dtype=np.int64), return_counts=True))
        del waits[:]

    def add_counted(self, waits: Integers, counts: Integers) -> None:
        """Take each waiting time so many times."""
        self._values, place = np.unique(np.concatenate((self._values, waits)), return_inverse=True)
        weights = np.concatenate((self._counts, counts))
        self._counts = np.zeros(len(self._values), np.int64)
        np.add.at(self._counts, place, weights)

    def summary(self) -> Latency | None:
        """None if nothing was measured."""
        if not len(self._values):
            return None
        reached = np.cumsum(self._counts)
        total = int(reached[-1])

        def quantile(hundredths: int) -> float:
            # The smallest value that at least so many hundredths of all do not exceed.
            rank = -(-total * hundredths // 100)
            return int(self._values[np.searchsorted(reached, rank)]) / NANOSECONDS_PER_MS

        mean = sum(int(value) * int(count) for value, count in zip(self._values, self._counts, strict=True)) / total
        return Latency(quantile(50), quantile(99), int(self._values[-1]) / NANOSECONDS_PER_MS, mean / NANOSECONDS_PER_MS)


class Statistics:
    """Sums over the records of all members."""

    def __init__(self, members: int) -> None:
        self.members = members
        self.packets: dict[str, int] = {}
        self.copies: dict[str, int] = {}
        self.header_bytes = 0
        self.header_bytes_point_to_point = 0
        self.end_ns = 0
        self.origin = Samples()
        self.remote = Samples()
        self.sent = np.zeros(members, np.int64)
        # Four bytes a pair, because large groups have many pairs; no member sends as much as that could not hold.
        self.delivered = np.zeros((members, members), np.int32)
        """How many messages each member (row) delivered of each origin (column)."""
        self.due = np.zeros((members, members), np.int32)
        """How many messages of each origin (column) are for each member (row)."""
        self._hashes = [sha256() for _ in range(members)]

    def absorb(self, recorder: Recorder) -> None:
        """Count what a member recorded; the caller then takes or drops it."""
        records = recorder.records()
        if not len(records):
            return
        self.end_ns = max(self.end_ns, int(records[-1, 5]))
        self._count_packets(recorder, records[records[:, 0] == PACKET])
        self._count_sends(recorder, records[records[:, 0] == SEND])
        deliveries = records[records[:, 0] == DELIVER]
        origins = np.repeat(deliveries[:, 1], deliveries[:, 3])
        steps = np.arange(len(origins)) - np.repeat(np.cumsum(deliveries[:, 3]) - deliveries[:, 3], deliveries[:, 3])
        numbers = np.repeat(deliveries[:, 2], deliveries[:, 3]) + steps
        self.delivered[recorder.process] += np.bincount(origins, minlength=self.members).astype(np.int32)
        self._hashes[recorder.process].update(np.stack((origins, numbers), axis=1).astype("<i8").tobytes())

    def _count_sends(self, recorder: Recorder, sends: Integers) -> None:
        self.sent[recorder.process] += sends[:, 3].sum()
        addresses, place = np.unique(sends[:, 6], return_inverse=True)
        counts = np.zeros(len(addresses), np.int64)
        np.add.at(counts, place, sends[:, 3])
        known = recorder.addresses()
        for address, count in zip(addresses.tolist(), counts.tolist(), strict=True):
            self.due[list(known[address].dests), recorder.process] += count

    def _count_packets(self, recorder: Recorder, sends: np.ndarray) -> None:
        for code, name in enumerate(recorder.packet_names()):
            of_type = sends[sends[:, 6] == code]
            if len(of_type):
                self.packets[name] = self.packets.get(name, 0) + len(of_type)
                self.copies[name] = self.copies.get(name, 0) + int(of_type[:, 1].sum())
        self.header_bytes += int(sends[:, 7].sum())
        self.header_bytes_point_to_point += int((sends[:, 7] * sends[:, 1]).sum())

    def packet_counts(self) -> dict[str, int]:
        """Transmissions by type of packet, and all together, on a network where one reaches everybody."""
        counts = {name: self.packets[name] for name in sorted(self.packets)}
        return {**counts, MULTICASTS: sum(counts.values())}

    def copy_counts(self) -> dict[str, int]:
        """Packets by type, point to point."""
        return {name: self.copies[name] for name in sorted(self.copies)}

    def latency(self) -> LatencyByPlace:
        return LatencyByPlace(self.origin.summary(), self.remote.summary())

    def digest(self) -> str:
        return sha256(b"".join(each.digest() for each in self._hashes)).hexdigest()
