"""Batch ordering against a plain sort, however the input is cut; and superseded writes against the rule, write by write."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from quire.cli.app import app
from quire.model.errors import BadInput
from quire.pipeline.ordering.batch import BatchOrder, order_batch
from quire.pipeline.ordering.significance import Significance, omit_superseded
from tests.audit.traces import random_trace, write
from tests.causality import oracle

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Row = dict[str, Any]


def write_cut(directory: Path, rows: Sequence[Row], form: str, seed: int) -> Path:
    """The rows in a random number of files, in random order."""
    rng = random.Random(seed)
    shuffled = rng.sample(list(rows), len(rows))
    directory.mkdir(parents=True)
    cuts = [0, *sorted(rng.choices(range(len(rows) + 1), k=rng.randint(0, 4))), len(rows)]
    schema = pa.Table.from_pylist(list(rows)).schema
    for number, (low, high) in enumerate(pairwise(cuts)):
        if form == "json":
            (directory / f"{number}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in shuffled[low:high]))
        else:
            pq.write_table(pa.Table.from_pylist(shuffled[low:high], schema), directory / f"{number}.parquet")
    return directory


def contents(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(directory.iterdir())}


def read(directory: Path) -> list[Row]:
    rows: list[Row] = []
    for path in sorted(directory.glob("part-*")):
        if path.suffix == ".json":
            rows += [json.loads(line) for line in path.read_text().splitlines()]
        else:
            rows += pq.read_table(path).to_pylist()
    return rows


def clocked(seed: int) -> list[Row]:
    rng = random.Random(seed)
    return [
        {"source": source, "clock": clock, "value": rng.random(), "note": rng.choice(["é", "=1+1", None])}
        for clock in range(-3, 30)
        for source in ("a", "b", "é")
        if rng.random() < 0.6
    ]


@pytest.mark.parametrize("form", ["parquet", "json"])
def test_total_order_is_a_sort_and_the_same_bytes_for_every_cut(spark: SparkSession, tmp_path: Path, form: str) -> None:
    rows = clocked(1)
    wanted = BatchOrder(rows_per_file=17)

    for seed in range(2):
        order_batch(spark, write_cut(tmp_path / f"in{seed}", rows, form, seed), tmp_path / f"out{seed}", wanted)

    expected = sorted(rows, key=lambda row: (row["clock"], row["source"]))
    found = read(tmp_path / "out0")
    assert [(row["clock"], row["source"], row["value"], row.get("note")) for row in found] == [
        (row["clock"], row["source"], row["value"], row["note"]) for row in expected
    ]
    assert [row["position"] for row in found] == list(range(len(rows)))
    assert contents(tmp_path / "out0") == contents(tmp_path / "out1")
    assert len(contents(tmp_path / "out0")) > 3


def vectored(seed: int, sources: Sequence[str]) -> list[Row]:
    """Sources that hear of each other now and then."""
    rng = random.Random(seed)
    vectors = {source: dict.fromkeys(sources, 0) for source in sources}
    rows = []
    for _ in range(60):
        source = rng.choice(sources)
        if rng.random() < 0.5:
            heard = vectors[rng.choice(sources)]
            vectors[source] = {name: max(vectors[source][name], heard[name]) for name in sources}
        vectors[source][source] += 1
        rows.append({"source": source, "vector": {name: n for name, n in vectors[source].items() if n}})
    return rows


def test_causal_order_puts_causes_first_and_breaks_ties_by_source(spark: SparkSession, tmp_path: Path) -> None:
    rows = vectored(2, ["b", "a", "c"])

    for seed in range(2):
        cut = write_cut(tmp_path / f"in{seed}", rows, "json", seed)
        order_batch(spark, cut, tmp_path / f"out{seed}", BatchOrder(by="causal"))

    found = read(tmp_path / "out0")
    assert [(row["source"], row["vector"]) for row in found] == [
        (row["source"], row["vector"]) for row in sorted(rows, key=lambda row: (sum(row["vector"].values()), row["source"]))
    ]
    left = dict.fromkeys("abc", 0)
    for row in found:
        own = row["source"]
        assert all(left[name] >= count - (name == own) for name, count in row["vector"].items())
        left[own] += 1
    assert contents(tmp_path / "out0") == contents(tmp_path / "out1")


def test_the_causality_of_a_run_comes_from_its_messages(spark: SparkSession, tmp_path: Path) -> None:
    trace = random_trace(random.Random(14))
    past = oracle.pasts(trace.logs)
    assert past is not None

    order_batch(spark, write(tmp_path / "run", trace), tmp_path / "out", BatchOrder(by="causal", to="json"))

    found = [(row["process"], row["pos"]) for row in read(tmp_path / "out")]
    assert found == sorted(past, key=lambda place: (len(past[place]), place))


def significant(rows: Sequence[Row]) -> list[Row]:
    """The rule, one write at a time."""
    committed = {row["txn"] for row in rows if row["op"] == "commit"}
    kept = []
    for at, row in enumerate(rows):
        if row["op"] == "write":
            run = []
            for later in rows[at + 1 :]:
                if later["object"] == row["object"] and later["op"] != "commit":
                    if later["op"] != "write":
                        break
                    run.append(later["txn"])
            if any(txn is None or txn in committed or (txn == row["txn"] and txn is not None) for txn in run):
                continue
        kept.append(row)
    return kept


def test_superseded_writes_are_left_out_by_the_corrected_rule(spark: SparkSession) -> None:
    rows: list[Row] = []
    for case in range(120):
        rng = random.Random(case)
        for _ in range(rng.randint(1, 14)):
            txn = rng.choice([None, f"{case}-1", f"{case}-2", f"{case}-3"])
            op = rng.choice(["write", "write", "write", "read", "commit", "audit"])
            name = f"{case}-{rng.choice('xy')}" if op != "commit" or rng.random() < 0.2 else None
            rows.append({"at": len(rows), "object": name, "op": op, "txn": txn})
    frame = spark.createDataFrame(
        [tuple(row.values()) for row in rows], "at long, object string, op string, txn string"
    ).repartition(3)

    kept = omit_superseded(frame, ["at"]).collect()

    expected = [row["at"] for row in significant(rows)]
    assert sorted(row["at"] for row in kept) == expected
    assert 50 < len(rows) - len(expected) < len(rows)
    plain = omit_superseded(frame.drop("txn"), ["at"], Significance()).count()
    assert plain == len(significant([row | {"txn": None} for row in rows]))


def test_the_command_orders_and_says_what_it_did(command: CliRunner, tmp_path: Path) -> None:
    rows = [{"source": "a", "clock": clock, "object": "x", "op": "write"} for clock in (3, 1, 2)]
    cut = write_cut(tmp_path / "in", rows, "json", 0)
    out = tmp_path / "out"

    said = command.invoke(app, ["order", str(cut), str(out), "--omit-superseded", "--json"])
    again = command.invoke(app, ["order", str(cut), str(out)])
    forced = command.invoke(app, ["order", str(cut), str(out), "--force", "--to", "parquet"])

    assert json.loads(said.stdout) == {"by": "total", "events": 1, "omitted": 2, "missing": 0, "files": 1, "format": "json"}
    assert "exists already" in str(again.exception)
    assert forced.exit_code == 0, forced.exception
    assert [row["clock"] for row in read(out)] == [1, 2, 3]


BAD: dict[str, tuple[bytes, list[str], str]] = {
    "a broken line": (b'{"source":"a","clock":1}\n{"source"\n', [], "holds a line that is not a JSON object: '{\"source\"'"),
    "bad UTF-8": (b'{"source":"\xff","clock":1}\n', [], "holds bytes that are not UTF-8"),
    "an empty file": (b"", [], "holds no events"),
    "no clock": (b'{"source":"a"}\n', [], "the events have no column 'clock', only source"),
    "a null clock": (b'{"source":"a","clock":1}\n{"source":"b"}\n', [], "an event has no source or no clock"),
    "a clock that is no number": (b'{"source":"a","clock":"x"}\n', [], "column 'clock' must hold whole numbers, but is string"),
    "two events at one clock": (b'{"source":"a","clock":1}\n' * 2, [], "source a has 2 events at clock 1"),
    "a column in the way": (b'{"source":"a","clock":1,"position":0}\n', [], "have a column 'position' already"),
    "a vector without itself": (
        b'{"source":"a","vector":{"b":1}}\n{"source":"b","vector":{"b":1}}\n', ["--causal"], "does not count the event itself",
    ),
    "a vector of nobody": (b'{"source":"a","vector":{"a":1,"c":1}}\n', ["--causal"], "names c, of which there is no event"),
    "vectors that go backwards": (
        b'{"source":"a","vector":{"a":1,"b":1}}\n{"source":"a","vector":{"a":2}}\n{"source":"b","vector":{"b":1}}\n',
        ["--causal"], "the vectors of source a go backwards at its event 2",
    ),
    "equal vectors": (
        b'{"source":"a","vector":{"a":1,"b":1}}\n{"source":"b","vector":{"a":1,"b":1}}\n', ["--causal"],
        "event 1 of source a happened after event 1 of source b, and event 1 of source b happened after event 1 of source a: "
        "a circle, so they have no order",
    ),
    "a circle of three": (
        b'{"source":"a","vector":{"a":1,"b":1,"c":1}}\n{"source":"b","vector":{"a":1,"b":1,"c":1}}\n'
        b'{"source":"c","vector":{"a":1,"b":1,"c":1}}\n', ["--causal"],
        "and event 1 of source c happened after event 1 of source a: a circle",
    ),
    "a circle through events that are not there": (
        b'{"source":"a","vector":{"a":1,"b":5}}\n{"source":"b","vector":{"a":1,"b":4}}\n'
        b'{"source":"b","vector":{"b":3}}\n', ["--causal"],
        "event 4 of source b happened after event 1 of source a, and event 1 of source a happened after event 4 of source b",
    ),
    "a cycle": (
        b'{"source":"a","vector":{"a":1,"b":1}}\n{"source":"b","vector":{"a":1,"b":1}}\n'
        b'{"source":"c","vector":{"b":1,"c":1}}\n',
        ["--causal"], "event 1 of source c includes event 1 of source b, but not all that happened before that event",
    ),
    "two of one number": (b'{"source":"a","vector":{"a":1}}\n' * 2, ["--causal"], "source a has 2 events with the number 1"),
    "arrays of nobody": (b'{"source":"a","vector":[1]}\n', ["--causal"], "need --sources"),
    "columns that differ in case": (
        b'{"source":"a","clock":1}\n{"Source":"b","source":"a","clock":2}\n', [],
        "the columns Source and source differ only in case",
    ),
    "a column twice": (
        b'{"source":"a","source":"b","clock":1}\n', [], "in.json: the column source comes twice; rename one of them",
    ),
    "JSON nested deep": (
        b'{"source":"a","clock":1,"x":' + b"[" * 5000 + b"]" * 5000 + b"}\n", [], "in.json",
    ),
    "a circle of events": (
        b'{"id":"x","after":"z"}\n{"id":"y","after":"x"}\n{"id":"z","after":"y"}\n', ["--id", "id", "--after", "after"],
        "x follows z, and z follows y, and y follows x: a circle, so they have no order",
    ),
    "two events of one name": (
        b'{"id":"x","after":""}\n' * 2, ["--id", "id", "--after", "after"], "have the names of others; 'x' comes twice",
    ),
    "what follows, but not what it is": (b'{"id":"x","after":""}\n', ["--after", "after"], "--id and --after go together"),
    "no object": (b'{"source":"a","clock":1}\n', ["--omit-superseded"], "have no column 'object'"),
}  # fmt: skip


@pytest.mark.parametrize("what", BAD)
def test_bad_input_is_refused_in_one_sentence_and_nothing_is_written(command: CliRunner, tmp_path: Path, what: str) -> None:
    data, arguments, sentence = BAD[what]
    (tmp_path / "in.json").write_bytes(data)

    result = command.invoke(app, ["order", str(tmp_path / "in.json"), str(tmp_path / "out"), *arguments])

    assert isinstance(result.exception, BadInput), result.exception
    assert sentence in str(result.exception)
    assert "\n" not in str(result.exception)
    assert [path.name for path in tmp_path.iterdir()] == ["in.json"]


def test_what_is_not_there_or_mixed_is_refused_before_spark_starts(tmp_path: Path) -> None:
    (tmp_path / "mixed").mkdir()
    (tmp_path / "mixed" / "a.json").touch()
    (tmp_path / "mixed" / "b.parquet").touch()
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "mine.txt").touch()

    for arguments, sentence in (
        (["nowhere", "out"], "there is no"),
        (["mixed", "out"], "both Parquet and JSON"),
        (["other", "out"], "holds no .parquet"),
        (["mixed/a.json", "other", "--force"], "is not a directory of ordered events, so it will not be replaced"),
    ):
        paths = [str(tmp_path / name) if not name.startswith("--") else name for name in arguments]
        assert sentence in str(CliRunner().invoke(app, ["order", *paths]).exception)


def test_events_that_name_their_causes_are_ordered_whatever_their_clocks_say(spark: SparkSession, tmp_path: Path) -> None:
    rng = random.Random(3)
    graph: dict[str, list[str]] = {}
    for number in range(300):
        graph[f"e{number}"] = rng.sample(list(graph), min(len(graph), rng.choice((0, 1, 2))))
    rows = [{"id": event, "after": causes, "git.time": rng.randrange(50)} for event, causes in graph.items()]
    written = []
    for attempt in range(2):
        rng.shuffle(rows)
        source, out = tmp_path / f"in{attempt}", tmp_path / f"out{attempt}"
        source.mkdir()
        for part in range(3):
            lines = [json.dumps(row if attempt else row | {"after": row["after"]}) for row in rows[part::3]]
            (source / f"{part}.json").write_text("\n".join([*lines, ""]))
        done = order_batch(spark, source, out, BatchOrder(by="causal", id="id", after="after", clock="git.time"))
        assert (done.events, done.missing) == (300, 0)
        written.append(read(out))

    assert written[0] == written[1]
    place = {row["id"]: row["position"] for row in written[0]}
    assert all(place[cause] < place[event] for event, causes in graph.items() for cause in causes)


def test_nested_clocks_of_several_parts_order_a_change_stream(spark: SparkSession, tmp_path: Path) -> None:
    rows = [{"table": "t", "source": {"lsn": lsn, "row": row}, "a`b": 1} for lsn, row in ((2, 0), (1, 5), (1, 2), (10, 0))]
    (tmp_path / "in.json").write_text("".join(json.dumps(row) + "\n" for row in rows))

    order_batch(spark, tmp_path / "in.json", tmp_path / "out", BatchOrder(source="table", clock="source.lsn,source.row"))

    assert [(row["source"]["lsn"], row["source"]["row"]) for row in read(tmp_path / "out")] == [(1, 2), (1, 5), (2, 0), (10, 0)]


def test_transactions_stand_together_if_their_position_is_the_first_part_of_the_clock(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Clocks of two sources cannot be compared; positions of transactions can."""
    events = [("b", 900, 1), ("a", 3, 2), ("a", 1, 1), ("b", 901, 2), ("a", 2, 1)]
    lines = [json.dumps({"source": source, "clock": clock, "commit": commit}) for source, clock, commit in events]
    (tmp_path / "in.json").write_text("\n".join(lines) + "\n")
    order_batch(spark, tmp_path / "in.json", tmp_path / "out", BatchOrder(clock="commit,clock"))
    ordered = read(tmp_path / "out")

    assert [(each["commit"], each["source"], each["clock"]) for each in ordered] == [
        (1, "a", 1), (1, "a", 2), (1, "b", 900), (2, "a", 3), (2, "b", 901),
    ]  # fmt: skip
