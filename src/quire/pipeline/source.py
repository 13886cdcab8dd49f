"""The Spark data source `quire`: reads a run's events as rows, even while its members still write them.

    register(spark)
    spark.read.format("quire").load("runs/demo")
    spark.readStream.format("quire").load("runs/demo")
    spark.readStream.format("quire").option("members", "127.0.0.1:9400,127.0.0.1:9401").load()

The path is a run directory, a directory in which members leave their parts, or one where `quire run` is about to create a run.
The rows of a process are numbered from 0 across all files, so a stream that began with the log of a running process continues
with the Parquet files that the log becomes.
"""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema

from quire.model.errors import BadInput
from quire.pipeline.layout import lay_out
from quire.pipeline.members_source import OPTION, TOKEN_OPTION, MembersStreamReader
from quire.pipeline.reading import TraceReader
from quire.trace.parts.reader import Part, Reach, part_path
from quire.trace.parts.runs import live_logs, runs_in
from quire.trace.schema import SCHEMA
from quire.trace.store import open_run, read_info

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

NAME = "quire"
_WHOLE = -1
"""Used instead of a number of bytes once the run has ended and its rows are in Parquet files."""

Offset = dict[str, dict[str, Any]]
"""The `Progress` of each process known so far."""


class Progress(NamedTuple):
    """How far a process was read: the number of rows, and of bytes in the log of one of its incarnations."""

    rows: int = 0
    bytes: int = 0
    incarnation: int = 0

    @property
    def reach(self) -> Reach:
        return Reach(self.bytes, self.rows)


def register(spark: SparkSession) -> None:
    """Register the format `quire` with this session. The package must be installed where Spark's workers run."""
    spark.dataSource.register(QuireDataSource)


def members_of(path: str | Path) -> int:
    """How many processes the run at this path has; raises BadInput where there is none."""
    path = Path(path)
    if (path / "run.json").exists():
        return read_info(path).members
    logs = live_logs(path)
    if logs is None:
        raise BadInput(f"{path} is neither a run nor a directory in which one is being recorded")
    identity = runs_in(logs)[-1].identity
    if identity.open:
        raise BadInput(f"the run in {path} has clients that come and go, so the number of its sources is unknown")
    return identity.members


class Span(InputPartition):
    """A range of a process's rows."""

    def __init__(self, process: int, since: Progress, until: Progress) -> None:
        self.process = process
        self.since = since
        self.until = until


class QuireDataSource(DataSource):
    def __init__(self, options: MutableMapping[str, str]) -> None:
        super().__init__(options)
        self._members, self._token = options.get(OPTION), options.get(TOKEN_OPTION)
        if ("path" in options) == (self._members is not None):
            raise BadInput(f"the format quire needs a path, load(PATH), or addresses: option({OPTION!r}, 'HOST:PORT,…').load()")
        self._path = Path(options.get("path", ".")).absolute()

    @classmethod
    def name(cls) -> str:
        return NAME

    def schema(self) -> StructType:
        return from_arrow_schema(_plain(SCHEMA))

    def reader(self, schema: StructType) -> DataSourceReader:
        if self._members is not None:
            raise BadInput("members that run can be followed: use readStream")
        return _Reader(self._path, schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 - Spark's name.
        if self._members is not None:
            return MembersStreamReader(self._members, self._token, schema)
        return _StreamReader(self._path, schema)


class _Rows:
    """Reads ranges of rows, for both kinds of reader."""

    def __init__(self, path: Path, schema: StructType) -> None:
        self._path = path
        self._schema = schema

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, Span)
        wanted = to_arrow_schema(self._schema)
        for table in _tables(self._path, partition):
            yield from table.select(wanted.names).cast(wanted).combine_chunks().to_batches()


class _Reader(_Rows, DataSourceReader):
    """The batch reader: everything that has been written so far."""

    def partitions(self) -> Sequence[InputPartition]:
        if not (self._path / "run.json").exists() and live_logs(self._path) is None:
            raise BadInput(f"{self._path} is neither a run nor a directory in which one is being recorded")
        return _spans({}, _latest(self._path, {}))


class _StreamReader(_Rows, DataSourceStreamReader):
    """The streaming reader: rows as they are written. If there is no run yet, it waits for one to begin."""

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802
        return {}

    def latestOffset(self, start: dict[str, Any], limit: Any) -> dict[str, Any]:  # noqa: N802, ARG002
        return _latest(self._path, start)

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        return _spans(start, end)


def _progress(offset: Offset, process: str) -> Progress:
    return Progress(**offset[process]) if process in offset else Progress()


def _latest(path: Path, start: Offset) -> Offset:
    """The offset after everything that can be read by now."""
    logs = live_logs(path)
    if logs is not None:
        try:
            return _latest_live(logs, start)
        except OSError:
            pass  # The run has ended meanwhile, and its logs were removed.
    if not (path / "run.json").exists():
        return start
    end: Offset = {}
    for file in open_run(path).files:
        rows = sum(group.rows for group in file.row_groups)
        before = end.get(str(file.process), {"rows": 0})["rows"]
        end[str(file.process)] = Progress(before + rows, _WHOLE)._asdict()
    for process in start:
        if process not in end or end[process]["rows"] < start[process]["rows"]:
            raise BadInput(f"{path} holds a different run from the one followed so far")
    return end


def _latest_live(logs: Path, start: Offset) -> Offset:
    end = dict(start)
    for part in runs_in(logs)[-1].parts:
        process = str(part.process)
        since = _progress(start, process)
        incarnation = part.description.incarnation
        if since.incarnation != incarnation and since != Progress():
            raise BadInput(f"{logs} holds a different run from the one followed so far")
        reached = part.reach(since.reach)
        if reached.rows > since.rows:
            end[process] = Progress(reached.rows, reached.bytes, incarnation)._asdict()
    return end


def _spans(start: Offset, end: Offset) -> list[InputPartition]:
    spans: list[InputPartition] = []
    for process in sorted(end, key=int):
        since, until = _progress(start, process), _progress(end, process)
        if until.rows > since.rows:
            spans.append(Span(int(process), since, until))
    return spans


def _tables(path: Path, span: Span) -> Iterator[pa.Table]:
    logs = live_logs(path) if span.until.bytes != _WHOLE else None
    if logs is not None:
        try:
            part = Part(part_path(logs, span.process, span.until.incarnation))
            tables = part.rows(span.since.reach, span.until.reach)
            begun = next(tables)
        except OSError:
            pass  # The run has ended meanwhile. (A file that is already open may be removed.)
        else:
            yield begun
            yield from tables
            return
    yield from _stored(path, span)


def _stored(path: Path, span: Span) -> Iterator[pa.Table]:
    """The rows from the Parquet files of the process, which hold them in order."""
    start, end = span.since.rows, span.until.rows
    layout = lay_out(open_run(path))
    own = [group for group in layout.groups if group.process == span.process]
    chosen = [group for group in own if group.first_pos < end and group.first_pos + group.rows > start]
    with TraceReader(layout.world.run) as reader:
        for group, table in reader.read_each(chosen, SCHEMA.names):
            low, high = max(start - group.first_pos, 0), min(end - group.first_pos, group.rows)
            yield table.slice(low, high - low)


def _plain(schema: pa.Schema) -> pa.Schema:
    """The schema without dictionary types, which Spark does not have."""
    fields = [field.with_type(field.type.value_type) if pa.types.is_dictionary(field.type) else field for field in schema]
    return pa.schema(fields)
