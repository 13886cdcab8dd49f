"""Summary of a journal, for people and for machines, made without changing it and without blocking its writer."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

from quire.journal.disk import Directory
from quire.journal.layout import is_journal
from quire.journal.lock import holder_of
from quire.journal.reading import Contents, Segment, Torn, read_journal
from quire.journal.records import Verdict, name_of
from quire.model.errors import BadInput

_TRIES = 5
"""How often reading is tried: a process that makes a checkpoint deletes files that are being read."""


class SegmentSummary(msgspec.Struct, frozen=True):
    file: str
    bytes: int
    records: int
    first: int | None
    last: int | None


class SnapshotSummary(msgspec.Struct, frozen=True):
    file: str
    bytes: int
    before: int
    """The number of the first record that it does not cover."""


class TypeSummary(msgspec.Struct, frozen=True):
    records: int
    last: int


class TornSummary(msgspec.Struct, frozen=True):
    file: str
    offset: int
    bytes: int


class DamageSummary(msgspec.Struct, frozen=True):
    file: str
    offset: int
    why: str
    what_to_do: str


class JournalSummary(msgspec.Struct, frozen=True, kw_only=True):
    path: str
    verdict: Verdict
    in_use_by: str | None
    """The process that writes to it now, if the system can tell."""
    records: int
    last: int
    """The number of the last record."""
    snapshot: SnapshotSummary | None
    segments: list[SegmentSummary]
    types: dict[str, TypeSummary]
    torn: TornSummary | None
    damage: DamageSummary | None
    surplus: list[str]
    """Files that the next start removes."""


def summarise(path: Path) -> JournalSummary:
    """Read and check a journal. Raises BadInput where there is none."""
    if not path.is_dir():
        raise BadInput(f"{path} is not a journal: it is not a directory")
    if not is_journal(os.listdir(path)):
        raise BadInput(f"{path} is not a journal: it has neither segments nor a lock")
    return _summary(path, *_read(path))


def _read(path: Path) -> tuple[Contents, str | None]:
    for tries_left in reversed(range(_TRIES)):
        holder = holder_of(path)
        try:
            contents = read_journal(Directory(path))
        except FileNotFoundError:
            if not tries_left:
                raise
            continue
        if contents.damage is None or holder is None:
            break
    return contents, holder


def _summary(path: Path, contents: Contents, holder: str | None) -> JournalSummary:
    snapshot, damage = contents.snapshot, contents.damage
    segments = [_segment(each) for each in contents.segments]
    return JournalSummary(
        path=str(path),
        verdict="damaged" if damage is not None else "whole" if contents.torn is None else "torn",
        in_use_by=holder,
        records=sum(each.records for each in segments),
        last=max((each.last or 0 for each in segments), default=0),
        snapshot=None if snapshot is None else SnapshotSummary(snapshot.name, snapshot.size, snapshot.first),
        segments=segments,
        types=_types(contents),
        torn=_torn(contents.torn),
        damage=None if damage is None else DamageSummary(damage.path.name, damage.offset, damage.why, damage.what_to_do),
        surplus=contents.surplus,
    )  # fmt: skip


def _segment(segment: Segment) -> SegmentSummary:
    numbers = [record.number for record in segment.records]
    return SegmentSummary(segment.name, segment.size, len(numbers), min(numbers, default=None), max(numbers, default=None))


def _torn(torn: Torn | None) -> TornSummary | None:
    return None if torn is None else TornSummary(*torn)


def _types(contents: Contents) -> dict[str, TypeSummary]:
    counts: dict[int, tuple[int, int]] = {}
    for segment in contents.segments:
        for record in segment.records:
            counts[record.type] = (counts.get(record.type, (0, 0))[0] + 1, record.number)
    return {name_of(type_): TypeSummary(*counts[type_]) for type_ in sorted(counts)}
