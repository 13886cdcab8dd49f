"""The entry point `happened_before`: computes vector times for a trace, and answers queries on them.

The trace is cut by logical time. Two passes over the segments (which messages cross them, and how vectors pass through them)
and a scan over their summaries give the exact start state of each. The vector times themselves are computed when a query needs
them, segment by segment, and are never collected. If logical times are missing or wrong, the order is rebuilt from the logs,
and the trace is a single segment.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
import pyarrow as pa

from quire.pipeline.causality.cycles import Contradiction
from quire.pipeline.causality.executions import check_single
from quire.pipeline.causality.queries import Questions
from quire.pipeline.causality.scan import plan, scan
from quire.pipeline.causality.segments import Piece, Start, Summary, SummaryTask, Survey, SurveyTask, vector_times
from quire.pipeline.causality.tasks import CAUSALITY
from quire.pipeline.codec import decode, encode
from quire.pipeline.layout import Layout, check_segments, cut, lay_out, overlapping, segment_count
from quire.pipeline.tasks import Runner, run_on
from quire.trace.kinds import KINDS
from quire.trace.store import open_run

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_COLUMNS = "process int, pos long, kind string, origin int, seq long, lamport long, clock array<int>"


class _Segment(msgspec.Struct):
    piece: Piece
    start: Start | None


class Causality(Questions):
    """The happened-before relation of one trace."""

    def frame(self, spark: SparkSession) -> DataFrame:
        """Every event with its vector time (`clock`: for each process, how many of its events happened before, including the
        event itself) and its logical time. The rows of a partition are in an order that puts causes first."""
        from pyspark.sql import functions as F  # noqa: N812

        count = len(self.segments)
        column = F.array(*(F.lit(encode(_Segment(piece, start))) for piece, start in self.segments))
        tasks = spark.range(0, count, 1, count).select(F.element_at(column, (F.col("id") + 1).cast("int")).alias("task"))
        return tasks.mapInArrow(_times, _COLUMNS)


def happened_before(spark: SparkSession, directory: str | Path, *, segments: int | None = None) -> Causality:
    """Compute happened-before for a run directory, in `segments` parallel segments (by default, a number that fits its size).

    Raises Contradiction, with the cycle, if a delivery precedes its own send, and BadInput if the directory is not the complete
    trace of one execution.
    """
    check_single(Path(directory))
    return follow(run_on(spark, CAUSALITY), Path(directory), segments=segments)


def follow(run: Runner, directory: Path, *, segments: int | None = None) -> Causality:
    """Like `happened_before`, with any task runner."""
    check_segments(segments)
    stored = open_run(directory)
    return follow_layout(run, lay_out(stored), segments=segments)


def follow_layout(run: Runner, layout: Layout, *, segments: int | None = None) -> Causality:
    count = segments or segment_count(layout)
    if layout.timed and count > 1:
        found = _in_segments(run, layout, count)
        if found is not None:
            return found
    whole = Piece(layout.world, layout.groups, None, None, whole=True, rebuild=not layout.timed)
    survey: Survey = run([SurveyTask(whole)])[0]
    if survey.cycle:
        raise Contradiction(survey.cycle)
    whole.rebuild = survey.rebuilt
    return Causality(run, layout, [(whole, None)], int(survey.new.sum()))


def _in_segments(run: Runner, layout: Layout, count: int) -> Causality | None:
    bounds: list[int | None] = [None, *cut(layout, count), None]
    pieces = [Piece(layout.world, overlapping(layout.groups, low, high), low, high) for low, high in pairwise(bounds)]
    surveys: list[Survey] = run([SurveyTask(piece) for piece in pieces])
    crossing = plan(surveys)
    if crossing is None:
        return None
    # No segment follows the last one, so it needs no summary.
    tasks = [
        SummaryTask(piece, older, wanted)
        for piece, older, wanted in zip(pieces[:-1], crossing.older, crossing.wanted, strict=False)
    ]
    summaries: list[Summary] = run(tasks)
    members = layout.world.members
    nothing = np.zeros((0, members), np.int32)
    last = Summary(np.zeros((members, members), np.int32), np.zeros((members, members), np.int32), nothing, nothing)
    starts = scan(crossing, [*summaries, last])
    messages = int(crossing.bases[-1].sum())
    return Causality(run, layout, list(zip(pieces, starts, strict=True)), messages)


def _times(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The rows of `Causality.frame`, a block at a time."""
    for batch in batches:
        for row in batch.to_pylist():
            segment = decode(row["task"], _Segment)
            events, blocks = vector_times(segment.piece, segment.start)
            for block in blocks:
                at = block.event
                is_message = events.kind[at] <= 1
                yield pa.record_batch(
                    [
                        pa.array(block.process, pa.int32()),
                        pa.array(events.pos[at], pa.int64()),
                        pa.array(np.array(KINDS, object)[events.kind[at]], pa.string()),
                        pa.array(events.origin[at], pa.int32(), mask=~is_message),
                        pa.array(events.seq[at], pa.int64(), mask=~is_message),
                        pa.array(events.lamport[at], pa.int64()),
                        _lists(block.clocks),
                    ],
                    names=["process", "pos", "kind", "origin", "seq", "lamport", "clock"],
                )


def _lists(matrix: np.ndarray) -> pa.Array[Any]:
    """The rows of a matrix as lists."""
    rows, width = matrix.shape
    offsets = np.arange(0, rows * width + 1, width, dtype=np.int32)
    values: pa.Array[Any] = pa.array(matrix.reshape(-1), pa.int32())
    return pa.Array.from_buffers(pa.list_(pa.int32()), rows, [None, pa.py_buffer(offsets.tobytes())], children=[values])
