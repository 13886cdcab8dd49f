"""Statistics of a run (packets, bytes, latency, a digest of the deliveries), computed from its records, for all drivers.

Packets are counted in two ways: as multicasts, where one transmission reaches everybody, and point to point, where each copy
counts. Latency is measured per message; the driver defines from when to when. The digest covers every member's sequence of
deliveries, message by message, so it does not depend on batching or times.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from typing import Literal

import msgspec
import numpy as np

from quire.trace.kinds import DELIVER, PACKET, SEND
from quire.trace.latency import Latencies, Latency
from quire.trace.log import Names
from quire.trace.records import ADDRESS, COUNT, FANOUT, FIRST, HEADER, KIND, ORIGIN, PACKET_TYPE, TIME_NS
from quire.trace.tables import Integers

MULTICASTS = "multicasts"


class RunLatency(msgspec.Struct, frozen=True):
    """Latencies. Origin: from submission to delivery at the origin. Remote: at other members, since the send or the receipt."""

    origin: Latency | None
    remote: Latency | None
    remote_since: Literal["sending", "receipt"] = "sending"


class RoleArrivals(msgspec.Struct, frozen=True):
    """How many members have a role, and how many packets arrive at one of them."""

    members: int
    mean: float
    max: int


class Arrivals(msgspec.Struct, frozen=True):
    """Packets that arrive at members over the network."""

    per_site: tuple[int, ...]
    per_role: dict[str, RoleArrivals]


def arrivals_of(per_site: Sequence[int], roles: Sequence[str]) -> Arrivals:
    """The arrivals per member and per role, given each member's count and role."""
    by_role = {role: [count for count, own in zip(per_site, roles, strict=True) if own == role] for role in sorted(set(roles))}
    per_role = {role: RoleArrivals(len(counts), sum(counts) / len(counts), max(counts)) for role, counts in by_role.items()}
    return Arrivals(tuple(per_site), per_role)


def per_message(total: int | None, messages: int) -> float | None:
    return None if total is None else total / max(messages, 1)


class Summary(msgspec.Struct, frozen=True, kw_only=True):
    """The part of a run's summary that all drivers share; each driver adds its own."""

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
    latency: RunLatency
    header_bytes: int
    header_bytes_point_to_point: int
    header_bytes_per_message: float
    """The header bytes of all copies together, over all hops."""
    header_entries_per_message: float | None
    """The number of message counters in the headers of all copies; None if not counted."""
    arrivals: Arrivals | None
    """Packets that arrive at each member, if members forward messages for others."""
    wall_s: float
    digest: str
    trace: str | None


class Statistics:
    """Sums over the records of all members."""

    def __init__(self, members: int) -> None:
        self.members = members
        self.packets: dict[str, int] = {}
        self.copies: dict[str, int] = {}
        self.header_bytes = 0
        self.header_bytes_point_to_point = 0
        self.end_ns = 0
        self.origin = Latencies()
        self.remote = Latencies()
        self.sent = np.zeros(members, np.int64)
        # Four bytes per pair, because large groups have many pairs; no member sends more messages than that can count.
        self.delivered = np.zeros((members, members), np.int32)
        """How many messages each member (row) delivered of each origin (column)."""
        self.due = np.zeros((members, members), np.int32)
        """How many messages of each origin (column) are for each member (row)."""
        self._hashes = [sha256() for _ in range(members)]

    def absorb(self, process: int, names: Names, records: Integers) -> None:
        """Count what a member recorded."""
        if not len(records):
            return
        kind = records[:, KIND]
        self.end_ns = max(self.end_ns, int(records[-1, TIME_NS]))
        self._count_packets(names, records[kind == PACKET])
        self._count_sends(process, names, records[kind == SEND])
        deliveries = records[kind == DELIVER]
        counts = deliveries[:, COUNT]
        origins = np.repeat(deliveries[:, ORIGIN], counts)
        steps = np.arange(len(origins)) - np.repeat(np.cumsum(counts) - counts, counts)
        numbers = np.repeat(deliveries[:, FIRST], counts) + steps
        self.delivered[process] += np.bincount(origins, minlength=self.members).astype(np.int32)
        self._hashes[process].update(np.stack((origins, numbers), axis=1).astype("<i8").tobytes())

    def _count_sends(self, process: int, names: Names, sends: Integers) -> None:
        self.sent[process] += sends[:, COUNT].sum()
        addresses, index = np.unique(sends[:, ADDRESS], return_inverse=True)
        counts = np.zeros(len(addresses), np.int64)
        np.add.at(counts, index, sends[:, COUNT])
        for address, count in zip(addresses.tolist(), counts.tolist(), strict=True):
            self.due[list(names.addresses[address].dests or ()), process] += count

    def _count_packets(self, names: Names, packets: Integers) -> None:
        for code, name in enumerate(names.packet_types):
            of_type = packets[packets[:, PACKET_TYPE] == code]
            if len(of_type):
                self.packets[name] = self.packets.get(name, 0) + len(of_type)
                self.copies[name] = self.copies.get(name, 0) + int(of_type[:, FANOUT].sum())
        self.header_bytes += int(packets[:, HEADER].sum())
        self.header_bytes_point_to_point += int((packets[:, HEADER] * packets[:, FANOUT]).sum())

    def packet_counts(self) -> dict[str, int]:
        """Multicast transmissions by packet type, and in total."""
        counts = {name: self.packets[name] for name in sorted(self.packets)}
        return {**counts, MULTICASTS: sum(counts.values())}

    def copy_counts(self) -> dict[str, int]:
        """Point-to-point packets by type."""
        return {name: self.copies[name] for name in sorted(self.copies)}

    def latency(self, remote_since: Literal["sending", "receipt"] = "sending") -> RunLatency:
        return RunLatency(self.origin.summary(), self.remote.summary(), remote_since)

    def digest(self) -> str:
        return sha256(b"".join(each.digest() for each in self._hashes)).hexdigest()
