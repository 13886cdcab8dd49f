"""Groups the parts in a directory into runs.

Every start of a process is an incarnation of it, and every part records the incarnations with which its process was linked.
Parts whose incarnations are linked, directly or through others, belong to one run. So a directory may hold the parts of many
runs of the same group, and processes need not agree on a unique name for a run.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from quire.trace.parts.description import RunIdentity
from quire.trace.parts.reader import Part, part_files

_Start = tuple[str, int, int]
"""A start of a process: its group, number and incarnation."""


class RunParts(NamedTuple):
    """The parts of one run, sorted by process."""

    parts: Sequence[Part]

    @property
    def identity(self) -> RunIdentity:
        return self.parts[0].description.identity

    @property
    def began_ns(self) -> int:
        return min(part.description.clock.wall_ns for part in self.parts)


def runs_in(directory: Path) -> Sequence[RunParts]:
    """All runs with parts in a directory, the latest last. Raises BadInput if a part is invalid, and OSError."""
    parts = [Part(path) for path in part_files(directory)]
    leader: dict[_Start, _Start] = {}

    def find(start: _Start) -> _Start:
        while (above := leader.setdefault(start, start)) != start:
            leader[start] = leader[above]
            start = above
        return start

    for part in parts:
        for peer, incarnation in (*part.description.peers.items(), *part.description.met):
            leader[find((part.description.identity.run, peer, incarnation))] = find(_start(part))
    runs: dict[_Start, list[Part]] = {}
    for part in parts:
        runs.setdefault(find(_start(part)), []).append(part)
    return sorted(map(RunParts, runs.values()), key=lambda run: run.began_ns)


def _start(part: Part) -> _Start:
    return part.description.identity.run, part.process, part.description.incarnation


def live_logs(path: Path) -> Path | None:
    """The directory in which members are writing, given that directory or the path where the run will be; None if there is
    none."""
    beside = sorted(path.parent.glob(f".{path.name}.*"), key=lambda found: found.name) if path.parent.is_dir() else []
    candidates = [path, *sorted((found for found in beside if found.is_dir()), key=_modified, reverse=True)]
    return next((found for found in candidates if part_files(found)), None)


def _modified(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0
