"""Reads the events to be ordered: from a directory or a file of Parquet or JSON lines, or from a run directory.

Input that cannot be ordered is refused here with one sentence. Spark would read a broken line as a row of nulls, and invalid
UTF-8 as question marks, so both are looked for before anything is sorted.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from quire.model.errors import BadInput

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Format = Literal["parquet", "json"]
_OF_INPUT = ("MALFORMED_RECORD", "StreamConstraintsException", "CANNOT_PARSE", "FAILED_READ_FILE")
_TWICE = re.compile(r"[Tt]he column `(.*?)` already exists")
_LINE_MAX = 32 << 20
"""Spark's Java would run out of memory on lines that are much longer."""
_SUFFIXES: dict[str, Format] = {".parquet": "parquet", ".json": "json", ".jsonl": "json", ".ndjson": "json"}


def find_files(path: Path) -> tuple[Format, list[Path]]:
    """The files of a directory (or the file itself), and their common format. Names that begin with . or _ are ignored."""
    if not path.exists():
        raise BadInput(f"there is no {path}")
    found = [path] if path.is_file() else sorted(file for file in path.rglob("*") if file.is_file() and not _hidden(file, path))
    files = [file for file in found if file.suffix in _SUFFIXES and file.name != "order.json"]
    formats = {_SUFFIXES[file.suffix] for file in files}
    if not files:
        raise BadInput(f"{path} holds no .parquet, .json, .jsonl or .ndjson files")
    if len(formats) > 1:
        raise BadInput(f"{path} holds both Parquet and JSON; order one kind at a time")
    return formats.pop(), files


def _hidden(file: Path, top: Path) -> bool:
    return any(part.startswith((".", "_")) for part in file.relative_to(top).parts)


@contextmanager
def about_input(path: Path) -> Iterator[None]:
    """Turn Spark's errors about the events, such as ambiguous columns, into one sentence."""
    from pyspark.errors import AnalysisException, PySparkException

    try:
        yield
    except AnalysisException as error:
        raise BadInput(f"{path}: {_sentence(error)}") from error
    except PySparkException as error:
        if not any(word in str(error) for word in _OF_INPUT):
            raise
        raise BadInput(f"{path}: {_sentence(error)}") from error


def _sentence(error: Exception) -> str:
    """The first sentence of Spark's message, without the error class."""
    if twice := _TWICE.search(str(error)):
        return f"the column {twice[1]} comes twice; rename one of them"
    text = re.sub(r"^\[[A-Z_.]+\]\s*", "", str(error).strip())
    return re.split(r"\s*SQLSTATE|\.\s|\n", text)[0].rstrip(".")


def read_frame(spark: SparkSession, path: Path) -> tuple[Format, DataFrame]:
    """The events as a data frame. Raises BadInput if files are broken."""
    form, files = find_files(path)
    names = [str(file.absolute()) for file in files]
    if form == "json":
        for file in files:
            _refuse_long_lines(file)
        return form, _read_json(spark, names)
    import pyarrow as pa
    import pyarrow.parquet as pq

    schemas: dict[str, str] = {}
    for name in names:
        try:
            schema = pq.read_schema(name)
        except (OSError, pa.ArrowException) as error:
            raise BadInput(f"{name} is not a readable Parquet file: {str(error).splitlines()[0]}") from error
        _refuse_twins(schema.names)
        text = ", ".join(f"{field.name} {field.type}" for field in schema)
        schemas.setdefault(text, name)
    if len(schemas) > 1:
        one, other = list(schemas.values())[:2]
        raise BadInput(f"{one} and {other} do not have the same columns")
    return form, spark.read.parquet(*names)


def _read_json(spark: SparkSession, names: list[str]) -> DataFrame:
    from pyspark.sql import functions as F  # noqa: N812

    lines = spark.read.text(names).select("value", F.col("_metadata.file_path").alias("file")).where(F.trim("value") != "")
    whole = F.get_json_object("value", "$")
    broken = whole.isNull() | ~F.trim("value").startswith("{")
    bad = lines.where(~F.is_valid_utf8("value") | broken)
    for row in bad.select("file", F.is_valid_utf8("value").alias("text"), F.hex("value").alias("hex")).limit(1).collect():
        if not row.text:
            raise BadInput(f"{_path(row.file)} holds bytes that are not UTF-8")
        line = bytes.fromhex(row.hex).decode()
        raise BadInput(f"{_path(row.file)} holds a line that is not a JSON object: {line[:60]!r}")
    if not lines.limit(1).collect():
        raise BadInput(f"{names[0] if len(names) == 1 else Path(names[0]).parent} holds no events")
    keys = lines.select(F.explode(F.json_object_keys("value")).alias("name")).distinct()
    _refuse_twins([row["name"] for row in keys.collect()])
    return spark.read.json(names)


def _refuse_twins(names: Sequence[str]) -> None:
    """Refuse names of columns that differ only in case, which Spark does not tell apart."""
    folded: dict[str, str] = {}
    for name in sorted(names):
        other = folded.setdefault(name.lower(), name)
        if other != name:
            raise BadInput(f"the columns {other} and {name} differ only in case; rename one of them")


def _refuse_long_lines(file: Path) -> None:
    """Refuse a file with a very long line, which fills a whole piece of the file."""
    size, piece = file.stat().st_size, _LINE_MAX // 2
    if size <= piece:
        return
    with file.open("rb") as opened, mmap(opened.fileno(), 0, access=ACCESS_READ) as data:
        if any(data.find(b"\n", at, at + piece) < 0 for at in range(0, size - piece + 1, piece)):
            raise BadInput(f"{file} has a line of more than {piece >> 20} MiB; is it a log?")


def _path(url: str) -> str:
    from urllib.parse import unquote, urlparse

    return unquote(urlparse(url).path)
