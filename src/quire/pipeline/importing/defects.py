"""Defects of a log: each with its file, line and host, and whether the rest of the log is still usable."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from enum import StrEnum

import msgspec

from quire.model.errors import BadInput

KEPT_MAX = 50
"""How many defects of each kind are listed; the others are only counted."""


class DefectKind(StrEnum):
    NO_OWN_ENTRY = "no own entry"
    DUPLICATE = "duplicate"
    BACKWARDS = "goes backwards"
    NOT_COVERED = "not covered"
    CYCLE = "cycle"
    UNKNOWN_HOST = "unknown host"
    NOT_THERE = "not there"
    GAP = "gap"
    EARLY = "begins too early"
    REPEATED = "repeated"
    CONTRADICTING = "contradicts another"
    NO_TIME = "no time"


FATAL = frozenset(
    {DefectKind.NO_OWN_ENTRY, DefectKind.DUPLICATE, DefectKind.BACKWARDS, DefectKind.NOT_COVERED, DefectKind.CYCLE}
)
"""With these, happened-before is not known. With the others, a reference is dropped, or a delivery has no send."""


class Defect(msgspec.Struct, frozen=True, order=True):
    file: str
    line: int
    host: str
    kind: DefectKind
    because: str
    unit: str = "line"

    def __str__(self) -> str:
        return f"{self.file} {self.unit} {self.line}, host {self.host}: {self.because}"


class Defects(msgspec.Struct):
    """The first defects of each kind, and how many there are of each."""

    listed: list[Defect] = []
    counts: dict[DefectKind, int] = {}

    def add(self, defect: Defect) -> None:
        self.counts[defect.kind] = self.counts.get(defect.kind, 0) + 1
        if self.counts[defect.kind] <= KEPT_MAX:
            self.listed.append(defect)


def gather(found: Iterable[Defects]) -> Defects:
    """Combine defects, sorted by file and line."""
    every = list(found)
    counts: Counter[DefectKind] = Counter()
    for defects in every:
        counts.update(defects.counts)
    listed: list[Defect] = []
    kept: Counter[DefectKind] = Counter()
    for defect in sorted(defect for defects in every for defect in defects.listed):
        kept[defect.kind] += 1
        if kept[defect.kind] <= KEPT_MAX:
            listed.append(defect)
    return Defects(listed, dict(counts))


class Unusable(BadInput):
    """The log has fatal defects, so nothing could be concluded from it."""

    def __init__(self, defects: Defects) -> None:
        fatal = fatal_ones(defects)
        others = sum(count for kind, count in defects.counts.items() if kind in FATAL) - 1
        more = f" ({others:,} more like this)" if others else ""
        super().__init__(f"{fatal[0]}{more}; no order can be derived from such a log, so nothing was written")
        self.defects = defects


def fatal_ones(defects: Defects) -> Sequence[Defect]:
    return [defect for defect in defects.listed if defect.kind in FATAL]
