"""Cuts files into chunks of whole lines, so that tasks can read one large file in parallel.

A chunk has the lines that begin within its byte range. Chunks do not depend on the number of tasks, so neither does the result.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from quire.model.errors import BadInput
from quire.pipeline.importing.inputs import Input

CHUNK_BYTES = 8 << 20
LINE_MAX = 64 << 20
"""A file with a longer line is not taken for a log."""
RECORD_MAX = 1 << 20
"""How far a record may extend beyond the end of its chunk."""


class Chunk(msgspec.Struct, frozen=True):
    file: int
    path: str
    start: int
    end: int
    begin: int = 0
    """Where the log begins in the file."""


def cut_files(files: Sequence[Input], chunk_bytes: int) -> list[Chunk]:
    """The chunks of all files, in order. Raises BadInput if there is nothing to read."""
    chunks: list[Chunk] = []
    for number, (path, name, begin) in enumerate(files):
        try:
            size = path.stat().st_size
        except OSError as error:
            raise BadInput(f"cannot read {name}: {error.strerror}") from error
        if size <= begin:
            raise BadInput(f"{name} is empty")
        where = str(path.absolute())
        starts = range(begin, size, chunk_bytes)
        chunks.extend(Chunk(number, where, start, min(start + chunk_bytes, size), begin) for start in starts)
    return chunks


def read_chunk(chunk: Chunk, overrun: int = 0) -> tuple[bytes, int, int]:
    """The bytes from the chunk's first line on, how many of them belong to the chunk, and where they begin in the file.

    Up to `overrun` further bytes are included, for records that begin in the chunk and end after it.
    """
    with open(chunk.path, "rb") as file:
        start = chunk.begin if chunk.start == chunk.begin else _line_start(file, chunk.path, chunk.start)
        end = max(start, _line_start(file, chunk.path, chunk.end))
        file.seek(start)
        data = file.read(end - start + overrun)
    return data, min(end - start, len(data)), start


def _line_start(file: object, path: str, offset: int) -> int:
    """Where the first line that begins at or after the offset begins, or the end of the file."""
    file.seek(offset - 1)  # type: ignore[attr-defined]
    line: bytes = file.readline(LINE_MAX)  # type: ignore[attr-defined]
    if len(line) == LINE_MAX:
        raise BadInput(f"{path} has a line of more than {LINE_MAX >> 20} MiB; is it a log?")
    return offset - 1 + len(line)


def decode_text(data: bytes, path: str, first_line: int) -> str:
    """Decode UTF-8, and report the line of anything that is not."""
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        line = first_line + data.count(b"\n", 0, error.start)
        raise BadInput(f"{path} line {line} holds bytes that are not UTF-8") from error
