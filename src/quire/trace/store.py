"""Run directories on disk: written atomically, and opened by reading run.json and the Parquet footers.

Opening a run never reads rows: it reads the description and the footers, and refuses, with one sentence, anything that is not a
trace. Rows are read by the pipeline.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from types import TracebackType
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from quire.files.errors import writing
from quire.files.replacing import Staging, check_replaceable
from quire.model.errors import BadInput
from quire.trace.executions import EXECUTIONS
from quire.trace.log import Names
from quire.trace.records import COUNT
from quire.trace.rows import spread
from quire.trace.schema import DELTA_COLUMNS, DICTIONARY_COLUMNS, EVENT, FORMAT, ROW_GROUP_ROWS, SCHEMA, WORD_COLUMNS, RunInfo
from quire.trace.tables import Integers

REPORT = "report.html"
"""The report of a run or a sweep, in its directory. It is removed when they are replaced."""
REPORT_MARK = b'<meta name="generator" content="quire">'
"""The mark in the first lines of reports that Quire wrote."""

_STATISTICS = ("process", "pos", "lamport", EVENT)
_DESCRIPTION = "run.json"
_WHAT = "a run directory"
_MARK_WITHIN = 1 << 12
_OWN_NAME = re.compile(r"p\d{5,}\.parquet")


class RunWriter:
    """Writes one run directory, which appears under its name only when the `with` block ends without an exception."""

    def __init__(self, directory: Path, run: str, *, force: bool = False) -> None:
        self._staging = Staging(directory, run_parts, _WHAT, force=force)
        self._target = directory
        self._run = run
        self._files: dict[int, pq.ParquetWriter] = {}
        self._rows: dict[int, int] = {}
        self._info: RunInfo | None = None
        with writing(directory):
            (self._staging.path / "trace").mkdir()

    def __enter__(self) -> RunWriter:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        with self._staging:
            if kind is not None or self._info is None:
                for file in self._files.values():
                    with suppress(OSError):  # Writing has failed already.
                        file.close()
                return
            with writing(self._target):
                for file in self._files.values():
                    file.close()
                text = msgspec.json.format(msgspec.json.encode(self._info)) + b"\n"
                (self._staging.path / _DESCRIPTION).write_bytes(text)
            self._staging.publish()

    def write(self, process: int, names: Names, records: Integers) -> None:
        """Add the rows of a process's next records."""
        first_pos = self._rows.get(process, 0)
        self._rows[process] = first_pos + int(records[:, COUNT].sum())
        self.append(process, spread(self._run, process, first_pos, names, records))

    def append(self, process: int, rows: pa.Table) -> None:
        """Add rows of SCHEMA to a process's file; they must follow, in local order, what it already holds.

        A process to which nothing happened has no file.
        """
        if not rows.num_rows:
            return
        with writing(self._target):
            file = self._files.get(process)
            if file is None:
                file = self._files[process] = open_trace(self._staging.path / "trace" / f"p{process:05d}.parquet")
            write_rows(file, rows)

    def close(self, process: int) -> None:
        """Close the file of a process that is complete. A large group has more files than may be open at once."""
        file = self._files.get(process)
        if file is not None:
            with writing(self._target):
                file.close()

    def finish(self, info: RunInfo) -> None:
        """Set the description of the run; without it, the directory is not kept."""
        self._info = info


def open_trace(path: Path, schema: pa.Schema = SCHEMA) -> pq.ParquetWriter:
    """A writer of one process's events; the schema may have columns after those of every trace."""
    numbers = [*DELTA_COLUMNS, *(name for name in (EVENT,) if name in schema.names)]
    return pq.ParquetWriter(
        path,
        schema,
        compression="zstd",
        use_dictionary=list(DICTIONARY_COLUMNS),  # type: ignore[arg-type]
        column_encoding=dict.fromkeys(numbers, "DELTA_BINARY_PACKED"),
        write_statistics=[name for name in _STATISTICS if name in schema.names],
    )


def write_rows(file: pq.ParquetWriter, rows: pa.Table) -> None:
    """Write rows in row groups, each with few more words in its dictionaries than it has: Arrow would write all that are there,
    which may be a word for every transaction, to each of them."""
    for start in range(0, rows.num_rows, ROW_GROUP_ROWS):
        group = rows.slice(start, ROW_GROUP_ROWS)
        for name in WORD_COLUMNS:
            column: Any = group[name]
            if any(len(chunk.dictionary) > group.num_rows for chunk in column.chunks):
                own = column.combine_chunks().cast(pa.string()).dictionary_encode()
                group = group.set_column(group.schema.get_field_index(name), group.schema.field(name), own)
        file.write_table(group, row_group_size=ROW_GROUP_ROWS)


def check_new(directory: Path, *, force: bool) -> None:
    """Refuse a directory that exists, unless it is to be replaced and is a run (or empty)."""
    check_replaceable(directory, run_parts, _WHAT, force=force)


def run_parts(directory: Path) -> list[str]:
    """The files of the run in this directory; raises BadInput if there is none, or if other files are among its traces."""
    info = read_info(directory)
    traces = sorted(path for path in (directory / "trace").glob("*.parquet") if not path.is_dir())
    for path in traces:
        if not _OWN_NAME.fullmatch(path.name):  # Our own files are accepted even if they are damaged.
            _open_file(path, info)
    index = [EXECUTIONS] if (directory / EXECUTIONS).is_file() else []
    return [_DESCRIPTION, *report_parts(directory), *index, *(f"trace/{path.name}" for path in traces)]


def report_parts(directory: Path) -> list[str]:
    """The report in this directory, if Quire wrote one."""
    return [REPORT] if is_report(directory / REPORT) else []


def is_report(path: Path) -> bool:
    """Whether a file was written by `quire report`."""
    try:
        with path.open("rb") as file:
            return REPORT_MARK in file.read(_MARK_WITHIN)
    except OSError:
        return False


class Bounds(msgspec.Struct, frozen=True):
    """The smallest and the largest value of a column; None if the footer does not record them."""

    low: int | None
    high: int | None


class StoredRows(msgspec.Struct, frozen=True):
    """One row group."""

    rows: int
    pos: Bounds
    lamport: Bounds
    event: Bounds | None = None
    """The bounds of its event numbers, if these differ from positions."""


class TraceFile(msgspec.Struct, frozen=True):
    """One Parquet file of a trace, as its footer describes it."""

    path: str
    process: int
    row_groups: tuple[StoredRows, ...]


class StoredRun(msgspec.Struct, frozen=True):
    info: RunInfo
    files: tuple[TraceFile, ...]


def open_run(directory: Path) -> StoredRun:
    """The run in this directory; raises BadInput, with a message of one sentence, if it is not a complete run."""
    info = read_info(directory)
    paths = sorted((directory / "trace").glob("*.parquet"))
    if not paths:
        raise BadInput(f"{directory} has no trace files in trace/")
    return StoredRun(info, tuple(_open_file(path, info) for path in paths))


def read_info(directory: Path) -> RunInfo:
    path = directory / _DESCRIPTION
    try:
        text = path.read_bytes()
    except OSError as error:
        raise BadInput(f"cannot read {path}: {error.strerror}; is {directory} a run directory?") from error
    try:
        info = msgspec.json.decode(text, type=RunInfo)
    except (msgspec.DecodeError, msgspec.ValidationError) as error:
        raise BadInput(f"{path} is not the description of a run: {error}") from error
    if info.format != FORMAT:
        raise BadInput(f"{path} has format {info.format}, this version reads format {FORMAT}")
    return info


def _open_file(path: Path, info: RunInfo) -> TraceFile:
    try:
        found = path.stat()
    except OSError as error:
        raise BadInput(f"cannot read {path}: {error.strerror}") from error
    file = _read_footer(path, (found.st_ino, found.st_size, found.st_mtime_ns))
    if not 0 <= file.process < info.members:
        raise BadInput(f"{path} holds process {file.process}, but the run has processes 0 to {info.members - 1}")
    return file


# Cached, because a command opens a run before it starts Spark, its job opens it again, and so does a report after it.
@lru_cache(maxsize=1 << 13)
def _read_footer(path: Path, _version: tuple[int, int, int]) -> TraceFile:
    try:
        footer = pq.ParquetFile(path)
    except (OSError, pa.ArrowInvalid) as error:
        raise BadInput(f"{path} is not a readable Parquet file: {str(error).splitlines()[0]}") from error
    with footer:
        _check_columns(path, footer.schema_arrow)
        metadata = footer.metadata
        names = [metadata.schema.column(index).path for index in range(metadata.num_columns)]
        process, pos, lamport = (_statistics(metadata, names.index(name)) for name in ("process", "pos", "lamport"))
        event = _statistics(metadata, names.index(EVENT)) if EVENT in names else [None] * len(pos)
        processes = {bound for bounds in process for bound in (bounds.low, bounds.high)}
        if len(processes) != 1:
            raise BadInput(f"{path} must hold the events of one process, and at least one")
        (own,) = processes
        if own is None:
            raise BadInput(f"{path} does not state whose events it holds: write it again with Quire")
        rows = [metadata.row_group(index).num_rows for index in range(metadata.num_row_groups)]
        return TraceFile(str(path), own, tuple(map(StoredRows, rows, pos, lamport, event)))


def _check_columns(path: Path, found: pa.Schema) -> None:
    for field in SCHEMA:
        index = found.get_field_index(field.name)
        if index < 0:
            raise BadInput(f"{path} is not a trace: it has no column {field.name!r}")
        if not is_like(found.field(index).type, field.type):
            raise BadInput(f"{path} is not a trace: column {field.name!r} is {found.field(index).type}, not {field.type}")


def is_like(found: pa.DataType, wanted: pa.DataType) -> bool:
    """Whether a column of this type can stand for another: libraries differ in how they store text and numbers."""
    if found == wanted:
        return True
    if isinstance(wanted, pa.DictionaryType):
        plain = found.value_type if isinstance(found, pa.DictionaryType) else found
        return bool(pa.types.is_string(plain) or pa.types.is_large_string(plain))
    if isinstance(wanted, pa.ListType):
        inner = found.value_type if isinstance(found, pa.ListType | pa.LargeListType) else None
        return inner is not None and bool(pa.types.is_integer(inner))
    return bool(pa.types.is_integer(found) and pa.types.is_integer(wanted))


def _statistics(metadata: pq.FileMetaData, column: int) -> Sequence[Bounds]:
    """The bounds of a column in each row group."""
    statistics = [metadata.row_group(index).column(column).statistics for index in range(metadata.num_row_groups)]
    return [Bounds(each.min, each.max) if each is not None and each.has_min_max else Bounds(None, None) for each in statistics]
