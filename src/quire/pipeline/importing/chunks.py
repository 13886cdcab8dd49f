"""Files in chunks of whole lines, so that tasks can read one large file side by side.

A chunk has the lines that begin within its bytes. Chunks do not depend on how many tasks there are, so neither does
what is read.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec

from quire.model.errors import BadInput

CHUNK_BYTES = 8 << 20
LINE_MAX = 16 << 20
"""A longer line is taken for a file that is no log."""
RECORD_MAX = 1 << 20
"""How far a record may go over the end of its chunk."""


class Chunk(msgspec.Struct, frozen=True):
    file: int
    path: str
    start: int
    end: int


def cut_files(files: Sequence[Path], chunk_bytes: int) -> list[Chunk]:
    """The chunks of all files, in order. Raises BadInput where there is nothing to read."""
    chunks: list[Chunk] = []
    for number, path in enumerate(files):
        try:
            if not path.is_file():
                raise BadInput(f"{path} is not a file" if path.exists() else f"there is no file {path}")
            size = path.stat().st_size
        except OSError as error:
            raise BadInput(f"cannot read {path}: {error.strerror}") from error
        if not size:
            raise BadInput(f"{path} is empty")
        starts = range(0, size, chunk_bytes)
        chunks.extend(Chunk(number, str(path.absolute()), start, min(start + chunk_bytes, size)) for start in starts)
    return chunks


def read_chunk(chunk: Chunk, overrun: int = 0) -> tuple[bytes, int, int]:
    """The bytes from the chunk's first line on, how many of them are its own, and where they begin in the file.

    What follows, up to `overrun` bytes, is there for records that begin in the chunk and end after it.
    """
    with open(chunk.path, "rb") as file:
        start = _line_start(file, chunk.path, chunk.start)
        end = max(start, _line_start(file, chunk.path, chunk.end))
        file.seek(start)
        data = file.read(end - start + overrun)
    return data, min(end - start, len(data)), start


def _line_start(file: object, path: str, offset: int) -> int:
    """Where the first line that begins at or after the offset begins, or the end of the file."""
    if offset == 0:
        return 0
    file.seek(offset - 1)  # type: ignore[attr-defined]
    line: bytes = file.readline(LINE_MAX)  # type: ignore[attr-defined]
    if len(line) == LINE_MAX:
        raise BadInput(f"{path} has a line of more than {LINE_MAX >> 20} MiB; is it a log?")
    return offset - 1 + len(line)


def decode_text(data: bytes, path: str, first_line: int) -> str:
    """The text, strictly."""
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        line = first_line + data.count(b"\n", 0, error.start)
        raise BadInput(f"{path} line {line} holds bytes that are not UTF-8") from error
