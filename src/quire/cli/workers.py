"""Chooses where the tasks of a command run: in this process if there is little to do, otherwise on Spark."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from quire.cli.spark import LOCAL
from quire.cli.status import status

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from quire.pipeline.layout import Layout
    from quire.pipeline.tasks import Job, Runner

FEW_EVENTS = 2_000_000
"""Up to this many events, an audit in this process takes less time than Spark takes to start."""
FEW_BYTES = 1 << 24
"""The same limit for files of other kinds, in bytes."""
FEW_LOG_BYTES = 1 << 26
"""The same limit for logs to import, which is done on all cores here, too."""


class Workers(NamedTuple):
    run: Callable[[Job], Runner]
    spark: SparkSession | None
    """None if tasks run in this process."""


def few_events(layout: Layout) -> bool:
    return layout.rows <= FEW_EVENTS


def few_log_bytes(size: int) -> bool:
    """Whether logs of this size are small together."""
    return size <= FEW_LOG_BYTES


def few_bytes(*paths: Path) -> bool:
    """Whether these files, and all files in these directories, are small together."""
    return _bytes_of(paths) <= FEW_BYTES


def _bytes_of(paths: Iterable[Path]) -> int:
    files = (file for path in paths for file in ([path] if path.is_file() else path.rglob("*")))
    return sum(file.stat().st_size for file in files if file.is_file())


@contextmanager
def workers(where: str | None, *, small: bool, doing: str) -> Iterator[Workers]:
    """Spark at the requested address; if there is none, this process if the work is small, else Spark on this machine."""
    from quire.pipeline.session import session
    from quire.pipeline.tasks import run_here, run_on

    if where is None and small:
        with status(doing):
            yield Workers(run_here, None)
        return
    with status("starting Spark") as say, session(where or LOCAL) as spark:
        say(doing)
        yield Workers(partial(run_on, spark), spark)
