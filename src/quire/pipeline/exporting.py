"""Exports a run as a ShiViz log: every event with its vector clock, computed from the messages.

Segments are written in parallel, each to its own file, and then concatenated. An event's text is that of its log, or a
description of the event.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from quire.files.whole import check_file, write_file
from quire.model.messages import MessageId
from quire.pipeline.causality.executions import check_single
from quire.pipeline.causality.segments import Piece, Start, vector_times
from quire.pipeline.causality.tasks import CAUSALITY
from quire.pipeline.causality.times import follow
from quire.pipeline.columns import numbers, present
from quire.pipeline.importing.layouts import PARSERS
from quire.pipeline.reading import TraceReader
from quire.pipeline.tasks import Runner, job_of, run_on
from quire.trace.kinds import DELIVER, KINDS
from quire.trace.schema import EVENT, TEXT
from quire.trace.store import read_info

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


_LINE_MAX = 1 << 16


class ExportTask(msgspec.Struct, tag="export"):
    piece: Piece
    start: Start | None
    hosts: tuple[str, ...]
    out: str


class Exported(msgspec.Struct, frozen=True):
    events: int
    hosts: int
    regex: str


def export_shiviz(spark: SparkSession, directory: Path, out: Path, *, force: bool = False) -> Exported:
    """Write the run's events to a new file, in an order that puts causes first."""
    return export_with(run_on(spark, CAUSALITY), run_on(spark, EXPORT), directory, out, force=force)


def export_with(
    follow_by: Runner, export_by: Runner, directory: Path, out: Path, *, segments: int | None = None, force: bool = False
) -> Exported:
    """Like `export_shiviz`, with any task runners."""
    check_new_file(out, force=force)
    check_single(directory)
    info = read_info(directory)
    named = info.settings.get("hosts")
    hosts = _without_spaces(named) if isinstance(named, list) else tuple(str(process) for process in range(info.members))
    found = follow(follow_by, directory, segments=segments)
    events = 0

    def write(whole: Path) -> None:
        nonlocal events
        tasks = [
            ExportTask(piece, start, hosts, f"{whole}.{number:05d}") for number, (piece, start) in enumerate(found.segments)
        ]
        events = sum(export_by(tasks))
        with whole.open("wb") as file:
            for task in tasks:
                with open(task.out, "rb") as part:
                    shutil.copyfileobj(part, file)

    write_file(out, write)
    return Exported(events, len(hosts), PARSERS["two-lines"])


def _without_spaces(hosts: Sequence[object]) -> tuple[str, ...]:
    """The host names in a form that ShiViz accepts: cut at the first space, with a number added where two would be equal."""
    names = ["_".join(str(host).split()) for host in hosts]
    return tuple(f"{name}#{process}" if names.count(name) > 1 else name for process, name in enumerate(names))


def check_new_file(out: Path, *, force: bool) -> None:
    """Refuse an existing file, unless it is to be replaced and looks like an export."""
    check_file(out, _is_export, "a log made by `quire export`", force=force)


def _is_export(path: Path) -> bool:
    with path.open("rb") as file:
        file.readline(_LINE_MAX)
        return re.match(rb'\S+ \{"', file.readline(_LINE_MAX)) is not None


def export_segment(task: ExportTask) -> int:
    """Write a segment's events, and return how many there are."""
    events, blocks = vector_times(task.piece, task.start)
    texts = _texts(task.piece)
    hosts = [host.encode() for host in task.hosts]
    names = [msgspec.json.encode(host) for host in task.hosts]
    count = 0
    with open(task.out, "wb") as file:
        for block in blocks:
            for process, event, clock in zip(block.process.tolist(), block.event.tolist(), block.clocks.tolist(), strict=True):
                text = texts.get((process, int(events.pos[event])))
                if text is None:
                    text = KINDS[events.kind[event]]
                    if events.kind[event] <= DELIVER:
                        text += f" {MessageId(int(events.origin[event]), int(events.seq[event]))}"
                entries = b",".join(b"%s:%d" % (names[q], n) for q, n in enumerate(clock) if n)
                file.write(b"%s\n%s {%s}\n" % (" ".join(text.splitlines()).encode(), hosts[process], entries))
            count += len(block.event)
    return count


def _texts(piece: Piece) -> dict[tuple[int, int], str]:
    """The texts of the original logs, for the events that have one."""
    texts: dict[tuple[int, int], str] = {}
    with TraceReader(piece.world.run) as reader:
        for group, table in reader.read_each(piece.groups, (), optional=(TEXT, EVENT)):
            if TEXT not in table.column_names:
                continue
            number = numbers(table, EVENT)[0] if EVENT in table.column_names else np.arange(table.num_rows) + group.first_pos
            for row in np.flatnonzero(present(table[TEXT])).tolist():
                texts[group.process, int(number[row])] = table[TEXT][row].as_py()
    return texts


EXPORT = job_of({ExportTask: (export_segment, int)})
