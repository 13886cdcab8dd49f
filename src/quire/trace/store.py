"""Run directories on disk: written whole or not at all, read by their descriptions and footers.

Reading here never touches rows: it opens what a directory says about itself and refuses, in one sentence, what is
not a trace. Rows are read by the pipeline, where the data is.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import TracebackType

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from quire.model.errors import BadInput
from quire.trace.recorder import Recorder
from quire.trace.schema import DELTA_COLUMNS, DICTIONARY_COLUMNS, FORMAT, ROW_GROUP_ROWS, SCHEMA, RunInfo

_FLUSH_RECORDS = 4 * ROW_GROUP_ROWS


class RunWriter:
    """Writes one run directory. It appears under its name only when the `with` block ends without an exception."""

    def __init__(self, directory: Path, run: str, *, force: bool = False) -> None:
        check_new(directory, force=force)
        self._target = directory
        self._run = run
        self._files: dict[int, pq.ParquetWriter] = {}
        self._info: RunInfo | None = None
        try:
            directory.parent.mkdir(parents=True, exist_ok=True)
            self._work = Path(tempfile.mkdtemp(prefix=f".{directory.name}.", dir=directory.parent))
            (self._work / "trace").mkdir()
        except OSError as error:
            raise BadInput(f"cannot write {directory}: {error.strerror}") from error

    def __enter__(self) -> RunWriter:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        for file in self._files.values():
            file.close()
        if kind is not None or self._info is None:
            shutil.rmtree(self._work, ignore_errors=True)
            return
        (self._work / "run.json").write_bytes(msgspec.json.format(msgspec.json.encode(self._info)) + b"\n")
        self._work.chmod(0o777 & ~_umask())
        if self._target.exists():
            shutil.rmtree(self._target)
        os.replace(self._work, self._target)

    def flush(self, recorders: Iterable[Recorder], *, everything: bool = False) -> None:
        """Write out what the recorders hold, where it is enough for whole row groups or `everything` is asked for."""
        for recorder in recorders:
            if everything or recorder.pending_records() >= _FLUSH_RECORDS:
                self.append(recorder.process, recorder.take(self._run))

    def append(self, process: int, rows: pa.Table) -> None:
        """Add rows of SCHEMA to a process's file; they must follow, in local order, what it already holds.

        A process to which nothing happened has no file.
        """
        if not rows.num_rows:
            return
        file = self._files.get(process)
        if file is None:
            file = self._files[process] = open_trace(self._work / "trace" / f"p{process:05d}.parquet")
        file.write_table(rows, row_group_size=ROW_GROUP_ROWS)

    def close(self, process: int) -> None:
        """Nothing more comes of this process. A large group has more files than may be open at once."""
        file = self._files.get(process)
        if file is not None:
            file.close()

    def finish(self, info: RunInfo) -> None:
        """Say what ran; without it the directory is not kept."""
        self._info = info


def open_trace(path: Path, schema: pa.Schema = SCHEMA) -> pq.ParquetWriter:
    """A writer of one process's events; the schema may have columns after those of every trace."""
    return pq.ParquetWriter(
        path,
        schema,
        compression="zstd",
        use_dictionary=list(DICTIONARY_COLUMNS),  # type: ignore[arg-type]
        column_encoding=dict.fromkeys(DELTA_COLUMNS, "DELTA_BINARY_PACKED"),
        write_statistics=["process", "pos", "lamport"],
    )


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def check_new(directory: Path, *, force: bool) -> None:
    """Refuse a directory that exists, unless it is to be replaced and is a run (or empty)."""
    if not directory.exists():
        return
    if not force:
        raise BadInput(f"{directory} exists already; choose another name, or --force to replace it")
    if not directory.is_dir() or (any(directory.iterdir()) and not (directory / "run.json").is_file()):
        raise BadInput(f"{directory} is not a run directory, so it will not be replaced")


class TraceFile(msgspec.Struct, frozen=True):
    """One Parquet file of a trace, as its footer describes it. Row groups are (rows, first lamport, last lamport)."""

    path: str
    process: int
    row_groups: tuple[tuple[int, int | None, int | None], ...]


class StoredRun(msgspec.Struct, frozen=True):
    info: RunInfo
    files: tuple[TraceFile, ...]


def open_run(directory: Path) -> StoredRun:
    """The run in this directory; raises BadInput in one sentence if it is not one, or not a whole one."""
    info = read_info(directory)
    paths = sorted((directory / "trace").glob("*.parquet"))
    if not paths:
        raise BadInput(f"{directory} has no trace files in trace/")
    return StoredRun(info, tuple(_read_footer(path, info) for path in paths))


def read_info(directory: Path) -> RunInfo:
    path = directory / "run.json"
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


def _read_footer(path: Path, info: RunInfo) -> TraceFile:
    try:
        footer = pq.ParquetFile(path)
    except (OSError, pa.ArrowInvalid) as error:
        raise BadInput(f"{path} is not a readable Parquet file: {str(error).splitlines()[0]}") from error
    with footer:
        _check_columns(path, footer.schema_arrow)
        metadata = footer.metadata
        names = [metadata.schema.column(index).path for index in range(metadata.num_columns)]
        processes = {
            bound
            for process in _statistics(metadata, names.index("process"))
            for bound in process[1:]
        }  # fmt: skip
        if len(processes) != 1:
            raise BadInput(f"{path} must hold the events of one process, and at least one")
        process = processes.pop()
        if process is None or not 0 <= process < info.members:
            raise BadInput(f"{path} holds process {process}, but the run has processes 0 to {info.members - 1}")
        return TraceFile(str(path), process, tuple(_statistics(metadata, names.index("lamport"))))


def _check_columns(path: Path, found: pa.Schema) -> None:
    for field in SCHEMA:
        index = found.get_field_index(field.name)
        if index < 0:
            raise BadInput(f"{path} is not a trace: it has no column {field.name!r}")
        if found.field(index).type != field.type:
            raise BadInput(f"{path} is not a trace: column {field.name!r} is {found.field(index).type}, not {field.type}")


def _statistics(metadata: pq.FileMetaData, column: int) -> Sequence[tuple[int, int | None, int | None]]:
    """Rows, minimum and maximum of a column in each row group; None where the file does not say."""
    found: list[tuple[int, int | None, int | None]] = []
    for index in range(metadata.num_row_groups):
        group = metadata.row_group(index)
        statistics = group.column(column).statistics
        if statistics is not None and statistics.has_min_max:
            found.append((group.num_rows, statistics.min, statistics.max))
        else:
            found.append((group.num_rows, None, None))
    return found
