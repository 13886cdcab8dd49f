"""`quire causality --each`: every execution of an import that has several, the longest first."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from rich.console import Console
from rich.table import Table

from quire.cli.legible import legible
from quire.cli.workers import few_bytes, workers

if TYPE_CHECKING:
    from quire.pipeline.causality.executions import AnsweredExecution

_SHOWN = 40
_HOSTS_SHOWN = 8


def show_each(where: str | None, directory: Path, path: str | None, first: str | None, column: str, json: bool) -> None:
    from quire.pipeline.causality.executions import check_several, each_with
    from quire.pipeline.causality.tasks import CAUSALITY

    check_several(directory)
    with workers(where, small=few_bytes(directory), doing=f"following {directory}") as (run, _):
        found = each_with(run(CAUSALITY), directory, path, first, column)
    if json:
        sys.stdout.buffer.write(msgspec.json.encode({"executions": [_data(one) for one in found]}) + b"\n")
        sys.stdout.buffer.flush()
        return
    found.sort(key=lambda one: (-(one.answer.lasted_ns or 0), -one.answer.events))
    table = Table(box=None, pad_edge=False, header_style="bold")
    titles = ["execution", "events", "ms"] + ["critical path"] * (path is not None) + ["first"] * (first is not None)
    for title in titles:
        table.add_column(title, overflow="fold")
    for one in found[:_SHOWN]:
        lasted = one.answer.lasted_ns
        words = [one.label, f"{one.answer.events:,}", "" if lasted is None else f"{lasted / 1e6:.3f}"]
        words += [_path(one)] * (path is not None) + [_first(one)] * (first is not None)
        table.add_row(*map(legible, words))
    if len(found) > _SHOWN:
        table.add_row(f"and {len(found) - _SHOWN:,} more")
    console = Console(highlight=False, markup=False)
    console.print(table)
    matched = f"; {first!r} matches in {sum(one.answer.matches > 0 for one in found):,}" if first is not None else ""
    console.print(f"{len(found):,} executions, the longest first{matched}", soft_wrap=True)


def _path(one: AnsweredExecution) -> str:
    """The hosts that the path goes through, and how many events are on it."""
    if one.answer.path is None:
        return "no times"
    hosts = [one.hosts[stretch.process] for stretch in one.answer.path.stretches]
    shown = [*hosts[:_HOSTS_SHOWN], "…"] if len(hosts) > _HOSTS_SHOWN else hosts
    return f"{one.answer.path.length} events: {' > '.join(shown)}"


def _first(one: AnsweredExecution) -> str:
    return "; ".join(f"{one.hosts[match.process]}@{match.pos} {match.text}" for match in one.answer.first)


def _data(one: AnsweredExecution) -> dict[str, Any]:
    answer = one.answer
    path = answer.path
    return {
        "execution": one.label,
        "events": answer.events,
        "lasted_ns": answer.lasted_ns,
        "critical_path": None if path is None else {
            "length": path.length,
            "stretches": [{"host": one.hosts[each.process], **_without(each, "process", "message")} for each in path.stretches],
        },
        "matches": answer.matches,
        "first": [{"host": one.hosts[match.process], **_without(match, "process")} for match in answer.first],
    }  # fmt: skip


def _without(value: msgspec.Struct, *names: str) -> dict[str, Any]:
    return {name: of for name, of in msgspec.structs.asdict(value).items() if name not in names}
