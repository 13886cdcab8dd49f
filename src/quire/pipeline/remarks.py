"""Looks up what an imported log says about a few events: their number at the host, their text, and the file and line."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import PurePath

import msgspec

from quire.pipeline.layout import RowGroup, World
from quire.pipeline.reading import TraceReader
from quire.trace.schema import EVENT, FILE, LINE, MESSAGE, TEXT


class Remark(msgspec.Struct, frozen=True, order=True):
    """What the log says about an event: its number at its host, its place in the log, and its text."""

    number: int
    place: str
    text: str | None = None
    message: str | None = None
    """The log's name for the message."""


def remarks(world: World, groups: Sequence[RowGroup], wanted: Collection[tuple[int, int]]) -> dict[tuple[int, int], Remark]:
    """What the log says about the rows at these (process, position) pairs; empty if the trace was not imported."""
    found: dict[tuple[int, int], Remark] = {}
    with TraceReader(world.run) as reader:
        for group in groups:
            rows = [pos - group.first_pos for process, pos in wanted if process == group.process and _holds(group, pos)]
            if group.numbers is None or not rows:
                continue
            table = reader.read([group], (EVENT, TEXT, FILE, LINE, MESSAGE))
            for row in rows:
                said = table.slice(row, 1).to_pylist()[0]
                place = f"{PurePath(said[FILE]).name}:{said[LINE]}"
                remark = Remark(said[EVENT], place, said[TEXT], said[MESSAGE])
                found[group.process, group.first_pos + row] = remark
    return found


def _holds(group: RowGroup, pos: int) -> bool:
    return group.first_pos <= pos < group.first_pos + group.rows
