"""The Python Data Source `quire`: a run's events as Spark rows, while its members still write them.

    register(spark)
    spark.read.format("quire").load("runs/demo")
    spark.readStream.format("quire").load("runs/demo")

The path is a run directory, one in which members leave their parts, or one where `quire run` is about to put a run. Rows
of a process are numbered from 0 whatever file they are in, so a stream that began with the records of a running group goes on
with the Parquet files that they become.
"""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema

from quire.model.errors import BadInput
from quire.trace.logs import count_records, count_rows, head_file, read_head, read_rows, records_file
from quire.trace.schema import SCHEMA
from quire.trace.store import open_run, read_info

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

NAME = "quire"
_WHOLE = -1
"""Instead of a number of records: the run has ended, and its rows are in Parquet files."""

Offset = dict[str, dict[str, int]]
"""For each process that was heard of, how many records and rows of it were read."""


def register(spark: SparkSession) -> None:
    """Make the format `quire` known to this session. The package must be installed where Spark's workers run."""
    spark.dataSource.register(QuireDataSource)


def members_of(path: str | Path) -> int:
    """How many processes the run at this path has; raises BadInput where there is none."""
    path = Path(path)
    if (path / "run.json").exists():
        return read_info(path).members
    logs = _live_logs(path)
    if logs is None:
        raise BadInput(f"{path} is neither a run nor a place where one is running")
    return read_head(sorted(logs.glob("p*.records"))[0]).members


class Span(InputPartition):
    """Rows of one process from one up to another, and the records that they were in when they were counted."""

    def __init__(self, process: int, rows: tuple[int, int], records: tuple[int, int]) -> None:
        self.process = process
        self.rows = rows
        self.records = records


class QuireDataSource(DataSource):
    def __init__(self, options: MutableMapping[str, str]) -> None:
        super().__init__(options)
        if "path" not in options:
            raise BadInput("the format quire needs a path: load(PATH)")
        self._path = Path(options["path"]).absolute()

    @classmethod
    def name(cls) -> str:
        return NAME

    def schema(self) -> StructType:
        return from_arrow_schema(_plain(SCHEMA))

    def reader(self, schema: StructType) -> DataSourceReader:
        return _Reader(self._path, schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 - Spark's name.
        return _StreamReader(self._path, schema)


class _Rows:
    """Reads spans for both kinds of reader."""

    def __init__(self, path: Path, schema: StructType) -> None:
        self._path = path
        self._schema = schema

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, Span)
        wanted = to_arrow_schema(self._schema)
        for table in _tables(self._path, partition):
            yield from table.select(wanted.names).cast(wanted).combine_chunks().to_batches()


class _Reader(_Rows, DataSourceReader):
    """Everything that is there now."""

    def partitions(self) -> Sequence[InputPartition]:
        if not (self._path / "run.json").exists() and _live_logs(self._path) is None:
            raise BadInput(f"{self._path} is neither a run nor a place where one is running")
        return _spans({}, _latest(self._path, {}))


class _StreamReader(_Rows, DataSourceStreamReader):
    """What comes, for as long as it comes. Where nothing is yet, it waits for the run to begin."""

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802
        return {}

    def latestOffset(self, start: dict[str, Any], limit: Any) -> dict[str, Any]:  # noqa: N802, ARG002
        return _latest(self._path, start)

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        return _spans(start, end)


class _Done(NamedTuple):
    records: int
    rows: int


def _done(offset: Offset, process: str) -> _Done:
    return _Done(**offset[process]) if process in offset else _Done(0, 0)


def _live_logs(path: Path) -> Path | None:
    """The directory in which members are writing, for a path that is that directory, or where the run will be."""
    beside = sorted(path.parent.glob(f".{path.name}.*"), key=lambda found: found.name) if path.parent.is_dir() else []
    candidates = [path, *sorted((found for found in beside if found.is_dir()), key=_modified, reverse=True)]
    return next((found for found in candidates if any(found.glob("p*.head"))), None)


def _modified(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0


def _latest(path: Path, start: Offset) -> Offset:
    """Where all that can be read by now ends."""
    logs = _live_logs(path)
    if logs is not None:
        try:
            return _latest_live(logs, start)
        except OSError:
            pass  # The run has ended meanwhile, and its records were put away.
    if not (path / "run.json").exists():
        return start
    end: Offset = {}
    for file in open_run(path).files:
        rows = sum(group[0] for group in file.row_groups)
        before = end.get(str(file.process), {"rows": 0})["rows"]
        end[str(file.process)] = {"records": _WHOLE, "rows": before + rows}
    for process in start:
        if process not in end or end[process]["rows"] < start[process]["rows"]:
            raise BadInput(f"{path} holds another run than the one that was followed so far")
    return end


def _latest_live(logs: Path, start: Offset) -> Offset:
    end = dict(start)
    for records in sorted(logs.glob("p*.records")):
        process = str(int(records.stem[1:]))
        done = _done(start, process)
        count = count_records(records)
        if done.records == _WHOLE or count < done.records:
            raise BadInput(f"{logs} holds another run than the one that was followed so far")
        if count > done.records and head_file(records).exists():
            end[process] = {"records": count, "rows": done.rows + count_rows(records, done.records, count)}
    return end


def _spans(start: Offset, end: Offset) -> list[InputPartition]:
    spans: list[InputPartition] = []
    for process in sorted(end, key=int):
        done, due = _done(start, process), _done(end, process)
        if due.rows > done.rows:
            spans.append(Span(int(process), (done.rows, due.rows), (done.records, due.records)))
    return spans


def _tables(path: Path, span: Span) -> Iterator[pa.Table]:
    first, end = span.records
    logs = _live_logs(path) if end != _WHOLE else None
    if logs is not None:
        tables = read_rows(records_file(logs, span.process), first, end, span.rows[0])
        try:
            begun = next(tables)
        except (FileNotFoundError, BadInput):
            pass  # The run has ended meanwhile. Once it is open, the file may be put away.
        else:
            yield begun
            yield from tables
            return
    yield from _stored(path, span)


def _stored(path: Path, span: Span) -> Iterator[pa.Table]:
    """The rows from the Parquet files of the process, which hold them in this order."""
    start, end = span.rows
    offset = 0
    for file in open_run(path).files:
        if file.process != span.process:
            continue
        with pq.ParquetFile(file.path) as parquet:
            for index, (rows, *_) in enumerate(file.row_groups):
                low, high = max(start - offset, 0), min(end - offset, rows)
                offset += rows
                if low < high:
                    yield parquet.read_row_group(index).slice(low, high - low)


def _plain(schema: pa.Schema) -> pa.Schema:
    """Spark has no dictionaries: words are words."""
    fields = [field.with_type(field.type.value_type) if pa.types.is_dictionary(field.type) else field for field in schema]
    return pa.schema(fields)
