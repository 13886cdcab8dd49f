"""Reads and checks a journal's directory, without changing anything.

A journal is read from its latest snapshot: that one, its segment, and all later segments; without a snapshot, from segment 1. A
segment that belongs to a snapshot begins with its *head*: records that repeat what is still needed of the earlier ones, ended
by an empty record of type `snapshot`. A reader that comes from an earlier snapshot has read all that already, so it skips the
head. A snapshot consists of records of type `snapshot`, numbered like those of its segment, the last of them empty.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

from quire.journal.disk import Disk
from quire.journal.errors import JournalCorrupt
from quire.journal.layout import incomplete, log_name, serials, snapshot_name
from quire.journal.records import SNAPSHOT, Record, encoded_bytes, holds_record, record_at, scan

_READ_BYTES = 1 << 20


class Segment(NamedTuple):
    serial: int
    size: int
    """How many bytes the file has."""
    end: int
    """Where its records end, in bytes."""
    records: list[Record]

    @property
    def name(self) -> str:
        return log_name(self.serial)

    @property
    def head(self) -> int | None:
        """How many records its head has, including the one that ends it; None if the head is incomplete."""
        return next((count for count, record in enumerate(self.records, 1) if record.type == SNAPSHOT), None)


class Snapshot(NamedTuple):
    disk: Disk
    serial: int
    size: int
    first: int
    """The number of the first record in its segment."""

    @property
    def name(self) -> str:
        return snapshot_name(self.serial)

    def chunks(self) -> Iterator[bytes]:
        """The state. Read it before the next checkpoint, which deletes it."""
        return (chunk.body for chunk in _chunks(self.disk, self.name) if chunk.body)


class Torn(NamedTuple):
    """Bytes that were being written when the process or the machine stopped."""

    name: str
    offset: int
    size: int


class Contents(NamedTuple):
    snapshot: Snapshot | None
    segments: list[Segment]
    """The segments from the snapshot's on, as far as they have records."""
    torn: Torn | None
    damage: JournalCorrupt | None
    """Why the journal cannot be used; the segments end before the damage."""
    surplus: list[str]
    """Files that are no longer needed, or were never completed."""

    def records(self) -> list[Record]:
        """All that the snapshot does not cover."""
        found: list[Record] = []
        for segment in self.segments:
            is_first = segment is self.segments[0]
            found += segment.records if is_first else segment.records[segment.head or 0 :]
        return [record for record in found if record.type != SNAPSHOT]


def read_journal(disk: Disk) -> Contents:
    """Read everything and check it."""
    names = disk.names()
    logs, snapshots = serials(names, "log"), serials(names, "snapshot")
    start = max(snapshots, default=1)
    surplus = [log_name(serial) for serial in logs if serial < start]
    surplus += [snapshot_name(serial) for serial in snapshots if serial < start]
    contents = Contents(None, [], None, None, [*surplus, *incomplete(names)])
    used = [serial for serial in logs if serial >= start]
    if not used and not snapshots:
        return contents
    missing = _missing(start, used)
    if missing is not None:
        return contents._replace(damage=_damage(disk, log_name(missing), 0, "the file is missing"))
    try:
        snapshot = _read_snapshot(disk, start) if snapshots else None
    except JournalCorrupt as damage:
        return contents._replace(damage=damage)
    return _read_segments(disk, used, contents._replace(snapshot=snapshot))


def _missing(start: int, used: list[int]) -> int | None:
    """The first segment that should be there and is not."""
    if not used:
        return start
    return next((one + 1 for one, other in pairwise([start - 1, *used]) if other != one + 1), None)


def _damage(disk: Disk, name: str, offset: int, why: str) -> JournalCorrupt:
    return JournalCorrupt(disk.path / name, offset, why)


def _read_segments(disk: Disk, used: list[int], contents: Contents) -> Contents:
    number = 1 if contents.snapshot is None else contents.snapshot.first
    for serial in used:
        data = disk.read(log_name(serial), 0, disk.size(log_name(serial)))
        found = scan(data, number)
        number += len(found.records)
        segment = Segment(serial, len(data), found.end, found.records)
        contents.segments.append(segment)
        has_snapshot = serial == used[0] and contents.snapshot is not None
        is_headless = (has_snapshot or serial > used[0]) and segment.head is None
        if found.verdict == "whole" and not is_headless:
            continue
        later = [log_name(other) for other in used if other > serial]
        if found.verdict == "damaged" or any(_holds_record(disk, name, number) for name in later):
            return contents._replace(damage=_damage(disk, segment.name, found.end, "intact records follow it"))
        if is_headless and has_snapshot:
            return contents._replace(damage=_damage(disk, segment.name, found.end, "the segment lacks its first records"))
        if is_headless:  # Its beginning was interrupted, so the journal continues from the end of the segment before.
            contents.segments.pop()
            return _torn(contents, Torn(segment.name, 0, segment.size), [segment.name, *later])
        return _torn(contents, Torn(segment.name, found.end, segment.size - found.end), later)
    return contents


def _torn(contents: Contents, torn: Torn, surplus: list[str]) -> Contents:
    return contents._replace(torn=torn if torn.size else None, surplus=[*contents.surplus, *surplus])


def _holds_record(disk: Disk, name: str, number: int) -> bool:
    return holds_record(disk.read(name, 0, disk.size(name)), 0, number)


def _read_snapshot(disk: Disk, serial: int) -> Snapshot:
    name = snapshot_name(serial)
    chunks = _chunks(disk, name)
    first = next(chunks).number
    for _ in chunks:
        pass
    return Snapshot(disk, serial, disk.size(name), first)


def _chunks(disk: Disk, name: str) -> Iterator[Record]:
    """The records of a snapshot, the empty one at the end, too. Raises JournalCorrupt."""
    size = disk.size(name)
    offset, data = 0, b""
    expected = None
    while True:
        record = record_at(data, 0)
        if record is None:
            more = disk.read(name, offset + len(data), max(_READ_BYTES, len(data)))
            if not more:
                raise _damage(disk, name, offset, "the snapshot is incomplete")
            data += more
            continue
        taken = encoded_bytes([(record.type, record.body)])
        is_last = not record.body
        if record.type != SNAPSHOT or expected not in (None, record.number) or (is_last and offset + taken != size):
            raise _damage(disk, name, offset, "this does not belong to the snapshot")
        yield record
        if is_last:
            return
        offset, data, expected = offset + taken, data[taken:], record.number + 1
