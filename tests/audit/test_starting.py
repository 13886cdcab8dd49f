"""What makes a small audit start fast is there: classes that Java finds ready, and workers that need not import."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, cast

import pyarrow as pa
import pytest
from numba.core.dispatcher import Dispatcher

from quire.cli import warming
from quire.pipeline.auditing import (
    conflicts,
    cycles,
    group_logs,
    isolation,
    kernel,
    significance,
    synchrony,
)
from quire.pipeline.class_archive import archive_for, use_archive
from quire.pipeline.daemon import WANTED
from quire.pipeline.java import ensure_java
from quire.pipeline.session import settings_for

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_java_is_told_of_an_archive_that_exists_and_of_no_other(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    java = Path("/usr/lib/jvm/some")
    assert use_archive(java) == ""
    archive = archive_for(java)
    archive.parent.mkdir(parents=True)
    archive.touch()
    assert f"-XX:SharedArchiveFile={archive} " in use_archive(java)
    assert use_archive(Path("/usr/lib/jvm/other")) == ""


def test_the_packaged_java_has_one_archive_wherever_its_home_is_made() -> None:
    assert archive_for(Path("/tmp/quire-java-abc")) == archive_for(Path("/var/tmp/quire-java-def"))


def test_sessions_are_told_of_the_archive_however_long_they_are_to_last() -> None:
    told = use_archive(ensure_java())
    for brief in (True, False):
        assert told in settings_for("local[2]", brief=brief)["spark.driver.extraJavaOptions"]


def test_workers_of_this_machine_are_copies_of_a_process_that_has_imported_what_they_need(spark: SparkSession) -> None:
    wanted = [*WANTED, "numba", "pyarrow.parquet"]

    def imported(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield pa.record_batch([pa.array([all(name in sys.modules for name in wanted)])], names=["there"])
            del batch

    assert [row.there for row in spark.range(0, 1, 1, 1).mapInArrow(imported, "there boolean").collect()] == [True]


def test_warming_runs_the_compiled_loops_of_every_kind_of_check(tmp_path: Path) -> None:
    """All but those that look for the counterexamples of some checks, and that of segments, which only long traces have."""
    warming._judge(tmp_path)

    loops = (
        isolation.seen_writers, cycles.strongly_connected, cycles.shortest, significance.build, significance.too_early,
        conflicts.unsorted, conflicts.begin_in_order,
        synchrony.count_different, group_logs.differences, kernel.judge,
    )  # fmt: skip
    for loop in loops:
        assert cast(Dispatcher, loop).signatures, loop
