"""Every execution of an import that has several: questions of each, and one of them taken out as a run of its own."""

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
    """What the log calls the processes of its run."""
    answer: ExecutionAnswer


def each_execution(
    spark: SparkSession, directory: str | Path, *, critical_path: str | None = None, first: str | None = None,
    column: str = "text",
) -> list[AnsweredExecution]:  # fmt: skip
    """Of every execution in a directory that `import_logs` made: how long it took; its critical path, by `events` or by `time`;
    and the matches of an expression before which no other match happened. Raises BadInput where there is only one."""
    return each_with(run_on(spark, CAUSALITY), Path(directory), critical_path, first, column)


def each_with(
    run: Runner, directory: Path, by: str | None, pattern: str | None, column: str, *, rows_per_task: int = ROWS_PER_TASK
) -> list[AnsweredExecution]:
    """The same with any way to run tasks."""
    check_by(by)
    check_several(directory)
    executions = list(_executions(directory))
    tasks = [task for one in executions for task in _tasks(one, by, pattern, column, rows_per_task)]
    answers = [answer for found in run(tasks) for answer in found.executions]
    labels = [(label, one.layout.hosts) for one in executions for label in one.labels]
    return [AnsweredExecution(label, hosts, answer) for (label, hosts), answer in zip(labels, answers, strict=True)]


def check_single(directory: Path) -> None:
    """Refuse a run of many executions, where one is asked about: they have nothing to do with each other."""
    if (found := read_executions(directory)) is not None:
        raise BadInput(
            f"{directory} holds {len(found.labels):,} executions: ask of every one with `quire causality --each`, "
            "or take one out with `quire export --format run --execution LABEL`"
        )


def check_several(directory: Path) -> None:
    """Refuse a run of a single execution, and what is none."""
    if read_index(directory) is None and read_executions(directory) is None:
        open_run(directory)
        raise BadInput(f"{directory} holds one execution only, so there is nothing to ask of each")


class _Several(NamedTuple):
    """A run with its executions; one that is alone in its run has no bounds."""

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
    # Executions are many and small, so that as many of them are about as many rows.
    for chosen in np.array_split(np.arange(len(one.labels)), pieces):
        begins = one.begins[chosen[0] : chosen[-1] + 2]
        yield EachTask(world, overlapping(groups, int(begins[0]), int(begins[-1])), begins, by, pattern, column)
