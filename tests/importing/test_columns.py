"""Rows of CSV and JSON lines that are read all at once are what they are one by one."""

from __future__ import annotations

import csv
import io
import json
import random
from pathlib import Path
from typing import Any

import pytest

from quire.model.errors import BadInput
from quire.pipeline.importing.choosing import choose
from quire.pipeline.importing.chunks import Chunk
from quire.pipeline.importing.formats.contract import Found, Piece
from quire.pipeline.importing.inputs import Input
from quire.pipeline.importing.request import ImportRequest

EVERYTHING = "(?s).*"
"""With an expression for the rows that are wanted, all are read one by one."""

USUAL: dict[str, list[Any]] = {
    "host": ["a", "b", "c"],
    "kind": ["send", "deliver", "local", "SEND", ""],
    "message": ["m1", "m2", "m3"],
    "clock": ['{"a":1}', '{"a": 2, "b": 7}', "{}", ""],
    "event": ["said", "", "é said"],
    "order": ["1", "-2", ""],
    "lamport": ["3", ""],
    "time": ["1500", "2015-03-01T10:00:00Z", ""],
    "dests": ["a b", "c", '["a","c"]', ""],
    "group": ["g", ""],
    "txn": ["t1", ""],
    "execution": ["", "x", "y"],
    "id": ["i1", "i2", "i3"],
    "after": ["i1", "", "i2 i3"],
    "traceid": ["t", ""],
}
UNUSUAL: dict[str, list[Any]] = {
    "host": ["", "=1+1", "-3", "..", "a/../b", "x" * 257, "tab\there", None, 7, True, {"a": 1}, 'quo"te', "line\nbreak"],
    "kind": ["unheard of", None, 3],
    "message": ["", "@m", 12, None, "m,1"],
    "clock": ['{"a":0}', '{"a":1,"a":2}', "nonsense", {"a": 3}, {"a": {"b": 1}}, None, '{"=x":1}', {"b": 0}],
    "event": [None, 12, 1.5, 'say "so"', "a\r\nb", "back\\slash"],
    "order": ["1.5", "x", 7, 7.0, 9.5, None, "9" * 19],
    "lamport": [5, None, "+4"],
    "time": ["yesterday", 12, 1.25, None, "2015-02-30 00:00:00"],
    "dests": [["a", "b"], [], "[1", "=x", None],
    "group": ["=g", None, 4],
    "txn": [None, "\x7f"],
    "execution": [None, 3, False],
    "id": [None, "", 5, "-1"],
    "after": [["i1", "i2"], [], None, 5, "i1;i1", "[broken"],
    "traceid": [None, 8],
}


def random_rows(rng: random.Random, unusual: float) -> list[dict[str, Any]]:
    follows = rng.random() < 0.3
    names = [name for name in USUAL if name == "host" or (rng.random() < 0.5 and (name not in ("id", "after")))]
    names += ["id", "after"] if follows else []
    return [
        {name: rng.choice(UNUSUAL[name] if rng.random() < unusual else USUAL[name]) for name in names}
        for _ in range(rng.randint(1, 12))
    ]


def as_csv(rows: list[dict[str, Any]], rng: random.Random) -> str:
    out = io.StringIO()
    quoting: Any = rng.choice((csv.QUOTE_MINIMAL, csv.QUOTE_ALL))
    writer = csv.writer(out, quoting=quoting, lineterminator=rng.choice(("\n", "\r\n")))
    writer.writerow(rows[0])
    for row in rows:
        values = [value if value is None or isinstance(value, str) else json.dumps(value) for value in row.values()]
        writer.writerow(values[: -1 if rng.random() < 0.01 else None])
        out.write(rng.choice(("", "", "", "\n")))
    return out.getvalue()


def as_json(rows: list[dict[str, Any]], rng: random.Random) -> str:
    lines = []
    for row in rows:
        kept = {name: value for name, value in row.items() if name == "host" or rng.random() < 0.95}
        line = json.dumps(kept, ensure_ascii=rng.random() < 0.5, separators=rng.choice(((",", ":"), (", ", ": "))))
        for broken, chance in ((line[:-1], 0.005), (line.replace('"host"', '"x":tru,"host"'), 0.005), (line + " x", 0.005)):
            line = broken if rng.random() < chance else line
        lines.append(line + rng.choice(("", " ", "\r")))
        lines += [""] * (rng.random() < 0.1)
    return "\n".join(lines) + rng.choice(("", "\n"))


def read(path: Path, format_: str, **request: Any) -> Any:
    """All that is found, as plain values; or what is wrong."""
    file = Input(path, "log")
    try:
        choice = choose([file], ImportRequest(format=format_, **request))
        found = Found()
        size = path.stat().st_size
        choice.format.read(Piece(Chunk(0, str(path), 0, size), "log", 1, False, None), choice.settings, found)
    except BadInput as error:
        return str(error)
    names, host, records = found.block()
    rows = records.to_pylist()
    for row in rows:
        row["clock_hosts"] = None if row["clock_hosts"] is None else [names[number] for number in row["clock_hosts"]]
    return (
        [names[number] for number in host], rows, found.executions, found.dests, found.clocked, found.caused,
        sorted(found.unused), found.apart, found.untimed,
    )  # fmt: skip


@pytest.mark.parametrize("format_", ["csv", "jsonl"])
@pytest.mark.parametrize("unusual", [0.0, 0.002, 0.05])
def test_all_at_once_is_as_one_by_one(tmp_path: Path, format_: str, unusual: float) -> None:
    rng, path, good = random.Random(f"{format_} {unusual}"), tmp_path / "log", 0
    for number in range(150):
        rows = random_rows(rng, unusual)
        path.write_text(as_csv(rows, rng) if format_ == "csv" else as_json(rows, rng), newline="")
        lenient = number % 2 == 1

        found, expected = (read(path, format_, lenient=lenient, where=where) for where in (None, EVERYTHING))

        assert found == expected, path.read_text()
        good += not isinstance(found, str)
    assert good > 40


@pytest.mark.parametrize("text", ['a"b,1\n', '"a"b,1\n', '"a,1\n', "a\rb,1\n", "a,1,2\n", "\n\na,1\n", '"a\r\nb",1\n', "a,1"])
def test_quotes_and_line_ends_that_are_not_as_usual_are_left_to_the_reader_of_all(tmp_path: Path, text: str) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"host,order\nb,2\n" + text.encode() + b"c,3\n" * text.endswith("\n"))

    assert read(path, "csv") == read(path, "csv", where=EVERYTHING)


def test_more_shapes_of_rows_than_there_is_room_for_are_read_one_by_one(tmp_path: Path) -> None:
    path = tmp_path / "log"
    lines = [json.dumps({"host": "a", f"x{number}": 1, "event": str(number)}) for number in range(100)]
    path.write_text("\n".join([*lines, json.dumps({"host": "a"} | {f"y{number}": 1 for number in range(80)})]))

    found = read(path, "jsonl")

    assert found == read(path, "jsonl", where=EVERYTHING)
    assert len(found[0]) == 101


def test_a_key_twice_is_left_to_the_reader_that_refuses_it(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text('{"host":"a"}\n{"host":"a","event":"x","event":"y"}\n')

    assert read(path, "jsonl") == "log line 2 is not a JSON object: it has the key 'event' twice"
