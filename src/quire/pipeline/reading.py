"""The only reader of trace rows: reads chosen columns of chosen row groups, and validates them.

A file that does not belong to the run, is damaged, or contains what this version does not know, is refused here with one
sentence that names the file; damaged pages are found only when they are read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from types import TracebackType
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from quire.model.errors import BadInput
from quire.pipeline.columns import KIND_CODES
from quire.pipeline.layout import RowGroup
from quire.trace.schema import SCHEMA


class TraceReader:
    """Reads the files of one run, one after the other; for consecutive reads of the same file, it is opened once."""

    def __init__(self, run: str) -> None:
        self._run = run
        self._path = ""
        self._file: pq.ParquetFile | None = None

    def __enter__(self) -> TraceReader:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._close()

    def read(self, groups: Sequence[RowGroup], columns: Sequence[str], *, optional: Sequence[str] = ()) -> pa.Table:
        """Read these row groups of one file: these columns, and those optional ones that the file has."""
        path = groups[0].path
        try:
            file = self._open(path)
            held = file.schema_arrow.names  # Computed on every access, which is slow.
            names = dict.fromkeys(("run", *columns, *(name for name in optional if name in held)))
            for name in names:
                if name not in held:
                    raise BadInput(f"{path} has no column {name!r}")
            table = file.read_row_groups([group.index for group in groups], columns=list(names), use_threads=False)
            table.validate()
            table = _as_written_here(table)
        except (OSError, pa.ArrowException, MemoryError) as error:
            raise BadInput(f"{path} cannot be read: {str(error).splitlines()[0] or type(error).__name__}") from error
        if table.num_rows != sum(group.rows for group in groups):
            raise BadInput(f"{path} changed while it was read")
        _check_run(self._run, path, table["run"])
        if "kind" in names:
            _check_kinds(path, table["kind"])
        return table

    def read_each(
        self, groups: Sequence[RowGroup], columns: Sequence[str], *, optional: Sequence[str] = ()
    ) -> Iterator[tuple[RowGroup, pa.Table]]:
        """Read row group by row group."""
        for group in groups:
            yield group, self.read([group], columns, optional=optional)

    def read_files(
        self, groups: Sequence[RowGroup], columns: Sequence[str], *, optional: Sequence[str] = ()
    ) -> Iterator[tuple[list[RowGroup], pa.Table]]:
        """Read file by file, the row groups of each together."""
        for _, in_file in groupby(groups, key=lambda group: group.path):
            own = list(in_file)
            yield own, self.read(own, columns, optional=optional)

    def _open(self, path: str) -> pq.ParquetFile:
        if self._file is None or path != self._path:
            self._close()
            self._path, self._file = path, pq.ParquetFile(path)
        return self._file

    def _close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None


def _as_written_here(table: pa.Table) -> pa.Table:
    """The table converted to the types that Quire writes, whatever tool wrote it."""
    for at, field in enumerate(table.schema):
        wanted = SCHEMA.field(field.name).type if field.name in SCHEMA.names else field.type
        if field.type != wanted:
            table = table.set_column(at, field.name, _cast(table[field.name], wanted))
    return table


def _cast(column: Any, wanted: Any) -> Any:
    if not isinstance(wanted, pa.DictionaryType):
        return column.cast(wanted)
    plain = column.cast(pa.string()) if not isinstance(column.type, pa.DictionaryType) else column.cast(column.type.value_type)
    coded = plain.cast(pa.string()).combine_chunks().dictionary_encode()
    if isinstance(coded, pa.ChunkedArray):
        coded = coded.combine_chunks()
    return pa.chunked_array([pa.DictionaryArray.from_arrays(coded.indices.cast(wanted.index_type), coded.dictionary)])


def _check_run(run: str, path: str, column: Any) -> None:
    """Check that every row belongs to this run; otherwise files of two runs in one directory would be judged as one."""
    for chunk in column.chunks:
        words = set(chunk.dictionary.to_pylist()) if chunk.null_count == 0 else {None}
        if words != {run}:
            words = set(pc.unique(chunk).to_pylist())
        for word in words - {run}:
            raise BadInput(f"{path} holds events of run {word!r}, but run.json describes run {run!r}")


def _check_kinds(path: str, column: Any) -> None:
    if column.null_count:
        raise BadInput(f"{path} has an event without a kind")
    for chunk in column.chunks:
        for word in chunk.dictionary.to_pylist():
            if word not in KIND_CODES:
                raise BadInput(f"{path} has events of the unknown kind {word!r}")
