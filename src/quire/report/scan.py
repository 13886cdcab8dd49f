"""Scans a whole trace for the report: latencies, costs, and the number of messages in flight over time.

It makes two passes, row group by row group, and keeps only the time of every send, at eight bytes per message, and some
thousand sums.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa

from quire.pipeline.columns import Flags, Integers, destinations, join, kinds, numbers
from quire.pipeline.layout import Layout, RowGroup
from quire.pipeline.reading import TraceReader
from quire.trace.kinds import DELIVER, PACKET, RECEIVE, SEND, VIEW
from quire.trace.latency import Latencies

BINS = 240


class PacketCost(msgspec.Struct):
    """The cost of one packet type: packets, copies, and total header bytes, counted once per packet and once per copy."""

    packets: int = 0
    copies: int = 0
    header_bytes: int = 0
    header_bytes_copied: int = 0


class Scan:
    """The result of a scan. `axis` is `time_ns`, or `lamport` if the trace has no times."""

    def __init__(self, members: int) -> None:
        self.members = members
        self.messages = 0
        self.deliveries = 0
        self.payload_bytes = 0
        self.packets: dict[str, PacketCost] = {}
        self.axis = "time_ns"
        self.start = self.end = 0
        self.origin = Latencies()
        """From send to delivery at the sender."""
        self.remote = Latencies()
        """From send to delivery elsewhere."""
        self.held = Latencies()
        """From receipt to delivery, where the trace has receipts."""
        self.backwards = 0
        """Deliveries that the clocks put before their sends."""
        self.on_the_way: Integers = np.zeros((members, BINS), np.int64)
        """For each member and time bin, how many messages were sent to it and not yet delivered at the end of the bin."""
        self.viewed: list[RowGroup] = []
        """The row groups that contain view events."""
        self.held_back: Integers | None = None
        """For each member and time bin, how many messages were received but not yet delivered; None if the trace has no
        receipts."""


def scan(layout: Layout) -> Scan:
    found = Scan(layout.world.members)
    with TraceReader(layout.world.run) as reader:
        _find_span(found, reader, layout.groups)
        changes = np.zeros((3, found.members, BINS), np.int64)
        sent = _scan_sends(found, reader, layout.groups, changes[0])
        _scan_rest(found, reader, layout.groups, sent, changes)
    found.on_the_way = np.cumsum(changes[0] - changes[1], axis=1)
    if found.held:
        found.held_back = np.cumsum(changes[2], axis=1)
    return found


def _find_span(found: Scan, reader: TraceReader, groups: Sequence[RowGroup]) -> None:
    """The times of the first and the last event, from the ends of each process's log."""
    by_process: dict[int, list[RowGroup]] = {}
    for group in groups:
        by_process.setdefault(group.process, []).append(group)
    ends = {(own[end].process, own[end].first_pos): own[end] for own in by_process.values() for end in (0, -1)}
    spans: dict[str, list[int]] = {"time_ns": [], "lamport": []}
    timed = bool(ends)
    for _, table in reader.read_each(list(ends.values()), ("time_ns", "lamport")):
        for name in spans:
            values, valid = numbers(table, name)
            if valid.any():
                spans[name] += [int(values[valid].min()), int(values[valid].max())]
            timed = timed and (name != "time_ns" or bool(valid.all()))
    found.axis = "time_ns" if timed else "lamport"
    if spans[found.axis]:
        found.start, found.end = min(spans[found.axis]), max(spans[found.axis])


def _bins(found: Scan, times: Integers) -> Integers:
    span = max(found.end - found.start, 1)
    return np.clip(((times - found.start) / span * BINS).astype(np.int64), 0, BINS - 1)


class _Times:
    """When each message was sent or received, by a number for its link and its own number."""

    def __init__(self) -> None:
        self._parts: dict[int, list[tuple[Integers, Integers]]] = {}
        self._sorted: set[int] = set()

    def __bool__(self) -> bool:
        return bool(self._parts)

    def add(self, link: int, seq: Integers, time: Integers) -> None:
        self._parts.setdefault(link, []).append((seq, time))

    def look_up(self, link: int, seq: Integers) -> tuple[Integers, Flags]:
        """The times of those of these messages that are known, and which they are."""
        numbers_, times = self._whole(link)
        index = np.searchsorted(numbers_, seq)
        known = index < len(numbers_)
        known[known] = numbers_[index[known]] == seq[known]
        return times[index[known]], known

    def _whole(self, link: int) -> tuple[Integers, Integers]:
        """Ascending numbers, and the times beside them."""
        parts = self._parts.get(link, [(np.empty(0, np.int64), np.empty(0, np.int64))])
        if link not in self._sorted:
            self._sorted.add(link)
            seq, time = (np.concatenate(each) for each in zip(*parts, strict=True))
            order = np.argsort(seq, kind="stable")
            self._parts[link] = parts = [(seq[order], time[order])]
        return parts[0]


def _scan_sends(found: Scan, reader: TraceReader, groups: Sequence[RowGroup], changes: Integers) -> _Times:
    sent = _Times()
    for group, table in reader.read_each(groups, ("kind", "origin", "seq", "dests", "payload_bytes", found.axis)):
        is_send = kinds(table["kind"]) == SEND
        rows = np.flatnonzero(is_send)
        if not len(rows):
            continue
        time = numbers(table, found.axis)[0][rows]
        origin, seq = (numbers(table, name)[0][rows] for name in ("origin", "seq"))
        found.messages += len(rows)
        found.payload_bytes += int(numbers(table, "payload_bytes")[0][rows].sum())
        own = origin == group.process
        sent.add(group.process, seq[own], time[own])
        counts, dests = (join(chunks, np.int64) for chunks in destinations(table["dests"], is_send))
        of_row = np.repeat(np.arange(len(rows)), np.maximum(counts, 0))
        known = (dests >= 0) & (dests < found.members)
        indices = dests[known] * BINS + _bins(found, time)[of_row[known]]
        changes += np.bincount(indices, minlength=changes.size).reshape(changes.shape)
    return sent


def _scan_rest(found: Scan, reader: TraceReader, groups: Sequence[RowGroup], sent: _Times, changes: Integers) -> None:
    columns = ("kind", "origin", "seq", "packet", "fanout", "header_bytes", found.axis)
    received = _Times()
    for group, table in reader.read_each(groups, columns):
        kind = kinds(table["kind"])
        time = numbers(table, found.axis)[0]
        origin, seq = (numbers(table, name)[0] for name in ("origin", "seq"))
        if (kind == VIEW).any():
            found.viewed.append(group)
        came = np.flatnonzero(kind == RECEIVE)
        rows = np.flatnonzero(kind == DELIVER)
        found.deliveries += len(rows)
        changes[1, group.process] += np.bincount(_bins(found, time[rows]), minlength=BINS)
        for source in np.unique(origin[came]).tolist():
            of_source = came[origin[came] == source]
            received.add(group.process * found.members + source, seq[of_source], time[of_source])
        for source in np.unique(origin[rows]).tolist():
            of_source = rows[origin[rows] == source]
            since, known = sent.look_up(source, seq[of_source])
            _add_waits(found, time[of_source][known] - since, own=group.process == source)
        _count_packets(found, kind, table)
    _add_holds(found, reader, groups, received, changes[2])


def _add_waits(found: Scan, waits: Integers, *, own: bool) -> None:
    found.backwards += int((waits < 0).sum())
    if found.axis == "time_ns" and len(waits):
        (found.origin if own else found.remote).add(np.maximum(waits, 0))


def _add_holds(found: Scan, reader: TraceReader, groups: Sequence[RowGroup], received: _Times, changes: Integers) -> None:
    """If receipts were recorded: how long each message was held back after its receipt."""
    if not received or found.axis != "time_ns":
        return
    for group, table in reader.read_each(groups, ("kind", "origin", "seq", found.axis)):
        rows = np.flatnonzero(kinds(table["kind"]) == DELIVER)
        time = numbers(table, found.axis)[0][rows]
        origin, seq = (numbers(table, name)[0][rows] for name in ("origin", "seq"))
        for source in np.unique(origin).tolist():
            mine = origin == source
            since, known = received.look_up(group.process * found.members + source, seq[mine])
            until = time[mine][known]
            # A message that a member only relays is received and never delivered: it does not count as held back.
            changes[group.process] += np.bincount(_bins(found, since), minlength=BINS)
            changes[group.process] -= np.bincount(_bins(found, until), minlength=BINS)
            if len(until):
                found.held.add(np.maximum(until - since, 0))


def _count_packets(found: Scan, kind: np.ndarray, table: pa.Table) -> None:
    rows = np.flatnonzero(kind == PACKET)
    if not len(rows):
        return
    column: Any = table["packet"].combine_chunks()
    names = [*column.dictionary.to_pylist(), "unnamed"]
    codes = column.indices.fill_null(len(names) - 1).to_numpy(zero_copy_only=False)[rows]
    fanout, header = (numbers(table, name)[0][rows] for name in ("fanout", "header_bytes"))
    for code in np.unique(codes).tolist():
        mine = codes == code
        cost = found.packets.setdefault(names[code], PacketCost())
        cost.packets += int(mine.sum())
        cost.copies += int(fanout[mine].sum())
        cost.header_bytes += int(header[mine].sum())
        cost.header_bytes_copied += int((header[mine] * fanout[mine]).sum())
