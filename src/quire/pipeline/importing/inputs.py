"""Prepares input files: expands directories, and converts compressed files, pipes and UTF-16 to plain UTF-8 files.

Tasks cut plain UTF-8 files into chunks, so anything else is first converted to one.
"""

from __future__ import annotations

import bz2
import codecs
import gzip
import io
import sys
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePath
from typing import Any, BinaryIO, NamedTuple, cast

from quire.files.errors import writing
from quire.model.errors import BadInput, QuireError

STDIN = "-"
BOM = codecs.BOM_UTF8

_UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_COMPRESSED = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd", b"BZh": "bz2"}
_SUFFIXES = {".gz", ".zst", ".zstd", ".bz2"}
_PIECE = 1 << 20
_UNPACKED_TIMES = 16


class Input(NamedTuple):
    """A plain file, and its name in messages."""

    path: Path
    name: str
    begin: int = 0
    """Where the log begins in the file: after a byte order mark and skipped lines."""

    @property
    def suffix(self) -> str:
        """The suffix of the file name, without that of a compression."""
        name = PurePath(self.name)
        return (name.with_suffix("") if name.suffix.lower() in _SUFFIXES else name).suffix.lower()


def plain_files(files: Sequence[Path], skip_lines: int = 0) -> list[Input] | None:
    """The files as they are, without the skipped lines; None if one must be converted first. Raises BadInput if one cannot be
    read."""
    if not files:
        raise BadInput("name at least one file to import")
    found = _expand(files)
    if not all(path.is_file() and not _kind(_head(path)) for path in found):
        return None
    return [Input(path, str(path), _beginning(path, skip_lines)) for path in found]


def expected_bytes(files: Sequence[Path]) -> int:
    """About how many bytes there are to read, if packed files hold many times as much. Of pipes it is not known, and they count
    nothing."""
    found = [path for path in _expand(files) if path.is_file()]
    return sum(path.stat().st_size * (_UNPACKED_TIMES if _kind(_head(path)) else 1) for path in found)


def unpacked_files(files: Sequence[Path], spool: Path, skip_lines: int = 0, limit: int | None = None) -> list[Input]:
    """The files; those that must be converted are copied to a new directory, up to `limit` bytes each."""
    import pyarrow as pa  # Here, because this module is loaded for the help of the command, too.

    found = []
    with writing(spool):
        spool.mkdir()
    for number, path in enumerate(_expand(files)):
        if path.is_file() and not _kind(_head(path)):
            found.append(Input(path, str(path), _beginning(path, skip_lines)))
            continue
        name = "standard input" if str(path) == STDIN else str(path)
        try:
            with sys.stdin.buffer if str(path) == STDIN else path.open("rb") as source:
                _unpack(source, spool / f"{number:05d}", limit)
        except QuireError:
            raise
        except (EOFError, OSError, zlib.error, pa.ArrowException, ValueError) as error:
            raise BadInput(f"{name} cannot be unpacked: {str(error) or type(error).__name__}") from error
        found.append(Input(spool / f"{number:05d}", name, _beginning(spool / f"{number:05d}", skip_lines)))
    return found


def _beginning(path: Path, skip_lines: int) -> int:
    with path.open("rb") as file:
        if file.read(len(BOM)) != BOM:
            file.seek(0)
        for _ in range(skip_lines):
            file.readline()
        return file.tell()


def _expand(files: Sequence[Path]) -> list[Path]:
    """The files, with directories replaced by the files in them."""
    found: list[Path] = []
    for path in files:
        if not path.exists() and str(path) != STDIN:
            raise BadInput(f"cannot read {path}: No such file or directory")
        if not path.is_dir():
            found.append(path)
            continue
        inside = sorted(file for file in path.rglob("*") if file.is_file() and not _hidden(file, path))
        if not inside:
            raise BadInput(f"{path} is a directory without files")
        found += inside
    return found


def _hidden(file: Path, top: Path) -> bool:
    return any(part.startswith((".", "_")) for part in file.relative_to(top).parts)


def _head(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(4)
    except OSError as error:
        raise BadInput(f"cannot read {path}: {error.strerror}") from error


def _kind(head: bytes) -> str:
    """The compression or encoding of a file, by its first bytes; empty if it is plain."""
    if head.startswith(_UTF_16):
        return "utf-16"
    return next((kind for mark, kind in _COMPRESSED.items() if head.startswith(mark)), "")


def _unpack(source: Any, target: Path, limit: int | None) -> None:
    reader = source if isinstance(source, io.BufferedReader) else io.BufferedReader(source)
    while (kind := _kind(reader.peek(4)[:4])) in _COMPRESSED.values():
        reader = _decompress(reader, kind)
    pieces = _beginning_of(reader, kind, limit) if limit is not None else _pieces(reader, kind)
    with writing(target):
        out = target.open("wb")
    with out:
        for piece in pieces:  # Whether reading or writing fails are two things.
            with writing(target):
                out.write(piece)


def _pieces(reader: io.BufferedReader, kind: str) -> Iterator[bytes]:
    if not kind:
        while plain := reader.read(_PIECE):
            yield plain
        return
    decoded = codecs.getreader("utf-16")(cast(BinaryIO, reader))
    while text := decoded.read(_PIECE):
        yield text.encode()


def _beginning_of(reader: io.BufferedReader, kind: str, limit: int) -> Iterator[bytes]:
    data = reader.read(limit)
    text = data.decode("utf-16", "ignore").encode() if kind else data
    yield text if len(data) < limit else text[: text.rfind(b"\n") + 1]


def _decompress(reader: io.BufferedReader, kind: str) -> io.BufferedReader:
    if kind == "gzip":
        return io.BufferedReader(cast(Any, gzip.GzipFile(fileobj=reader, mode="rb")))
    if kind == "bz2":
        return io.BufferedReader(cast(Any, bz2.BZ2File(reader)))
    import pyarrow as pa

    return io.BufferedReader(cast(Any, pa.CompressedInputStream(pa.PythonFile(reader), "zstd")))
