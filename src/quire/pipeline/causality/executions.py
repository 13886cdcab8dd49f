"""Imports with several executions: runs queries on each execution, and refuses inputs with the wrong number of them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from quire.model.errors import BadInput
from quire.pipeline.causality.critical import check_by
from quire.pipeline.causality.each import EachTask, ExecutionAnswer
from quire.pipeline.causality.tasks import CAUSALITY
from quire.pipeline.importing.results import read_index
from quire.pipeline.layout import Layout, lay_out, overlapping
from quire.pipeline.tasks import Runner, run_on
from quire.trace.executions import read_executions
from quire.trace.store import open_run

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROWS_PER_TASK = 500_000


class AnsweredExecution(NamedTuple):
    label: str
    hosts: tuple[str, ...]
    """The log's names for the processes of its run."""
    answer: ExecutionAnswer


def each_execution(
    spark: SparkSession, directory: str | Path, *, critical_path: str | None = None, first: str | None = None,
    column: str = "text",
) -> list[AnsweredExecution]:  # fmt: skip
    """For every execution in a directory made by `import_logs`: its duration; its critical path, by `events` or by `time`; and
    the matches of a pattern with no other match in their past. Raises BadInput if there is only one execution."""
    return each_with(run_on(spark, CAUSALITY), Path(directory), critical_path, first, column)


def each_with(
    run: Runner, directory: Path, by: str | None, pattern: str | None, column: str, *, rows_per_task: int = ROWS_PER_TASK
) -> list[AnsweredExecution]:
    """Like `each_execution`, with any task runner."""
    check_by(by)
    check_several(directory)
    executions = list(_executions(directory))
    tasks = [task for one in executions for task in _tasks(one, by, pattern, column, rows_per_task)]
    answers = [answer for found in run(tasks) for answer in found.executions]
    labels = [(label, one.layout.hosts) for one in executions for label in one.labels]
    return [AnsweredExecution(label, hosts, answer) for (label, hosts), answer in zip(labels, answers, strict=True)]


def check_single(directory: Path) -> None:
    """Refuse a run of several executions where a single one is needed: they are unrelated."""
    if (found := read_executions(directory)) is not None:
        raise BadInput(
            f"{directory} holds {len(found.labels):,} executions: ask of every one with `quire causality --each`, "
            "or take one out with `quire export --format run --execution LABEL`"
        )


def check_several(directory: Path) -> None:
    """Refuse a run of a single execution, and anything that is not a run."""
    if read_index(directory) is None and read_executions(directory) is None:
        open_run(directory)
        raise BadInput(f"{directory} holds one execution only, so there is nothing to ask of each")


class _Several(NamedTuple):
    """A run with its executions; `begins` is empty if it has only one."""

    layout: Layout
    labels: tuple[str, ...]
    begins: np.ndarray


def _executions(directory: Path) -> Iterator[_Several]:
    listed = read_index(directory)
    if listed is not None:
        for one in listed:
            layout = lay_out(open_run(directory / one.directory))
            yield _Several(layout, (one.label or one.directory,), np.empty(0, np.int64))
        return
    found = read_executions(directory)
    if found is not None:
        yield _Several(lay_out(open_run(directory)), found.labels, found.begins)


def _tasks(one: _Several, by: str | None, pattern: str | None, column: str, rows_per_task: int) -> Iterator[EachTask]:
    world, groups = one.layout.world, one.layout.groups
    if not len(one.begins):
        yield EachTask(world, groups, one.begins, by, pattern, column)
        return
    pieces = min(1 + one.layout.rows // rows_per_task, len(one.labels))
    # Executions are many and small, so equal numbers of them have about equal numbers of rows.
    for chosen in np.array_split(np.arange(len(one.labels)), pieces):
        begins = one.begins[chosen[0] : chosen[-1] + 2]
        yield EachTask(world, overlapping(groups, int(begins[0]), int(begins[-1])), begins, by, pattern, column)
