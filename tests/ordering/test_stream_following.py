"""Streams of events that name the events they follow: as plain Python says, however they are cut, and on Spark."""

from __future__ import annotations

import json
import random
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pytest
from typer.testing import CliRunner

from quire.cli.app import app
from quire.model.errors import BadInput
from quire.pipeline.ordering.stream.departed import Names, have_left, with_more
from quire.pipeline.ordering.stream.intake import KEY_CAUSES, KEY_NAME, Intake, IntakeTask, take_in
from quire.pipeline.ordering.stream.ledger import REJECTED, Ledger, State
from quire.pipeline.ordering.stream.operator import RELEASE, Operator
from quire.pipeline.ordering.stream.options import FollowingOrder
from quire.pipeline.tasks import run_here
from tests.kit.effort import runs
from tests.ordering import stream_oracle as oracle
from tests.ordering.stream_oracle import Row
from tests.ordering.test_stream_operator import read

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

RUNS = runs(60, 200)
ORDER = FollowingOrder(id="id", after="after")
SCHEMA = pa.schema({"id": pa.string(), "after": pa.list_(pa.string()), "text": pa.string()})


class Stream:
    """An operator in this process, and the micro-batches that it is given."""

    def __init__(self, out: Path, rng: random.Random) -> None:
        self.out, self.rng, self.batch = out, rng, -1
        self.ledger = Ledger(out)
        self.restart()

    def restart(self) -> None:
        self.ledger.prepare(ORDER, "parquet")
        self.operator = Operator(ORDER, self.ledger, "parquet")

    def give(self, rows: list[Row], partitions: int = 1) -> State:
        self.batch += 1
        return self.repeat(rows, partitions)

    def repeat(self, rows: list[Row], partitions: int = 1) -> State:
        return self.operator.step(self.batch, lambda task: self._take_in(task, rows, partitions), run_here(RELEASE))

    def close(self) -> State:
        return self.operator.close(run_here(RELEASE))

    def _take_in(self, task: IntakeTask, rows: list[Row], partitions: int) -> list[Intake]:
        shares: list[list[Row]] = [[] for _ in range(partitions)]
        for row in self.rng.sample(rows, len(rows)):
            shares[self.rng.randrange(partitions)].append(row)
        tables = [pa.Table.from_pylist(share, SCHEMA) for share in shares]
        named = [table.append_column(KEY_NAME, table["id"]).append_column(KEY_CAUSES, table["after"]) for table in tables]
        return [take_in(task, table.to_batches(max_chunksize=3)) for table in named]


def event(name: str | None, *after: str, text: str = "") -> Row:
    return {"id": name, "after": list(after), "text": text}


def random_history(rng: random.Random) -> list[Row]:
    """Events that follow some of those before them, now and then one that nobody made, and circles."""
    names = [f"{rng.randrange(1000):03}-{number}" for number in range(rng.randint(1, 30))]
    events = []
    for number, name in enumerate(names):
        after = rng.sample(names[:number], min(number, rng.choice((0, 1, 1, 2, 3))))
        if rng.random() < 0.05:
            after.append("nobody")
        events.append(event(name, *after, text=str(number)))
    if rng.random() < 0.3:
        ring = [f"ring-{rng.randrange(100)}-{number}" for number in range(rng.choice((1, 2, 3)))]
        more = rng.sample(names, min(2, len(names)))
        events += [event(one, two, *more[:1]) for one, two in zip(ring, [*ring[1:], ring[0]], strict=True)]
        if rng.random() < 0.5:
            events.append(event("behind", ring[0], *more))
    if rng.random() < 0.4:
        events += [events[0] | {"text": "again"}, event(None, names[0]), event(rng.choice(names), text="another")]
    rng.shuffle(events)
    return events


def test_random_histories_leave_as_plain_python_says(tmp_path: Path) -> None:
    sometimes = Counter[str]()
    for seed in range(RUNS):
        rng = random.Random(seed)
        events, end = random_history(rng), rng.random() < 0.5
        cuts = sorted(rng.sample(range(len(events) + 1), min(4, len(events))))
        batches = [events[start:stop] for start, stop in zip([0, *cuts], [*cuts, len(events)], strict=True)]
        stream = Stream(tmp_path / str(seed), rng)
        for batch in batches:
            stream.give(batch, partitions=rng.randint(1, 3))
            if rng.random() < 0.3:
                stream.restart()
                stream.repeat(batch)
        if end:
            stream.close()

        expected = oracle.following(batches, end=end)

        rows = [row for left in expected.left for row in left]
        assert read(stream.out) == [row | {"position": number} for number, row in enumerate(rows)], f"seed {seed}"
        rejected = Counter(repr(row | {"reason": why}) for bad in expected.rejected for row, why in bad)
        assert Counter(map(repr, read(stream.out / REJECTED))) == rejected, f"seed {seed}"
        state = stream.ledger.last()
        assert state is not None
        assert state.waiting_events() == len(expected.waiting), f"seed {seed}"
        sometimes["waits"] += bool(expected.waiting)
        sometimes["leaves later"] += sum(bool(left) for left in expected.left) > 1
        sometimes["leaves at the end"] += end and bool(expected.left[-1])
        sometimes["is rejected"] += any(expected.rejected)
        sometimes["circle"] += "circle" in repr(expected.rejected)
        sometimes["has left already"] += "left already" in repr(expected.rejected)
    assert min(sometimes[name] for name in ("waits", "leaves later", "is rejected", "circle")) > RUNS / 20, sometimes
    assert min(sometimes[name] for name in ("leaves at the end", "has left already")) > 0, sometimes


def test_names_that_never_arrived_are_counted_at_the_end(tmp_path: Path) -> None:
    stream = Stream(tmp_path / "out", random.Random(1))
    stream.give([event("b", "a", "nobody"), event("c", "b"), event("a")])

    state = stream.close()

    assert [row["id"] for row in read(stream.out)] == ["a", "b", "c"]
    assert (state.left, state.missing, state.rejected, state.waiting_events()) == (3, 1, 0, 0)


def _halves(names: list[int]) -> np.ndarray:
    """Halves that are often equal, as those of two names hardly ever are."""
    return np.array([[name % 7 for name in names], names], np.int64)


def test_what_has_left_is_known_in_whatever_files_it_is(tmp_path: Path) -> None:
    files: tuple[Names, ...] = ()
    left: set[int] = set()
    rng = random.Random(5)
    counts = set()
    for _ in range(60):
        more = [name for name in rng.sample(range(2000), rng.choice((0, 1, 5, 40))) if name not in left]
        files = with_more(str(tmp_path), files, _halves(more)) if more else files
        left.update(more)
        counts.add(len(files))
        wanted = rng.sample(range(2000), 50)
        found = have_left(str(tmp_path), files, _halves(wanted))
        assert found.tolist() == [name in left for name in wanted]
    assert sum(names.count for names in files) == len(left)
    assert 1 < max(counts) < 10


def test_files_of_names_that_were_merged_are_removed(tmp_path: Path) -> None:
    stream = Stream(tmp_path / "out", random.Random(1))
    for number in range(20):
        state = stream.give([event(f"e{number}", *([f"e{number - 1}"] if number else []))])
    assert {path.name for path in stream.ledger.waiting.iterdir()} == {names.file for names in state.names}
    assert sum(names.count for names in state.names) == 20


def test_the_command_orders_a_stream_by_what_events_follow(command: CliRunner, tmp_path: Path) -> None:
    commits = tmp_path / "commits"
    commits.mkdir()
    arguments = ["order", str(commits), str(tmp_path / "out"), "--stream", "--once", "--id", "id", "--after", "after", "--json"]
    (commits / "1.jsonl").write_text('{"id": "c", "after": "a b"}\n{"id": "a", "after": ""}\n{"id": "d", "after": "lost"}\n')
    first = command.invoke(app, arguments)
    (commits / "2.jsonl").write_text('{"id": "b", "after": "a"}\n{"id": "a", "after": ""}\nnot JSON\n')

    second = command.invoke(app, [*arguments, "--end"])

    assert (first.exit_code, second.exit_code) == (0, 0)
    assert json.loads(first.stdout) | {"out": ""} == {
        "out": "", "left": 1, "waiting": 2, "rejected": 0, "omitted": 0, "missing": 0, "micro_batches": 1,
    }  # fmt: skip
    assert json.loads(second.stdout) | {"out": ""} == {
        "out": "", "left": 4, "waiting": 0, "rejected": 2, "omitted": 0, "missing": 1, "micro_batches": 2,
    }  # fmt: skip
    rows = read(tmp_path / "out")
    assert [(row["id"], row["position"]) for row in rows] == [("a", 0), ("b", 1), ("c", 2), ("d", 3)]
    assert set(rows[0]) == {"id", "after", "_corrupt_record", "position"}
    reasons = {row["reason"] for row in read(tmp_path / "out" / REJECTED)}
    assert reasons == {"an event of its name has left already", "it has no name"}


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--id", "id"], "--id and --after go together"),
        (["--id", "id", "--after", "after", "--source", "x"], "--vector and --source do not go with them"),
        (["--id", "id", "--after", "after", "--clock", "x"], "need neither --clock nor --sources"),
        (["--id", "id", "--after", "after", "--idle", "wait"], "are for total order"),
        (["--id", "id", "--after", "after", "--omit-superseded"], "needs total order"),
        (["--id", "id", "--after", "cause"], "the events have no column 'cause', only "),
        (["--id", "id", "--after", "time"], "column 'time' must hold names, or arrays of them, but is bigint"),
    ],
)
def test_what_makes_no_sense_is_refused_in_one_sentence(
    command: CliRunner, tmp_path: Path, arguments: list[str], sentence: str
) -> None:  # fmt: skip
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "1.jsonl").write_text('{"id": "a", "after": "", "time": 3}\n')

    result = command.invoke(app, ["order", str(tmp_path / "in"), str(tmp_path / "out"), "--stream", *arguments])

    assert isinstance(result.exception, BadInput)
    assert sentence in str(result.exception)
    assert not (tmp_path / "out").exists()


def test_arrays_and_fields_inside_others_name_causes_in_a_stream_of_ones_own(spark: SparkSession, tmp_path: Path) -> None:
    from quire.pipeline import order_stream

    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "1.jsonl").write_text(
        '{"span": {"id": 3, "links": [2, null]}}\n{"span": {"id": 2, "links": [1]}}\n{"span": {"id": 1, "links": null}}\n'
    )
    events = spark.readStream.schema("span struct<id: long, links: array<long>>").json(str(tmp_path / "in"))

    query = order_stream(events, tmp_path / "out", FollowingOrder(id="span.id", after="span.links"), available_now=True)
    query.awaitTermination()

    assert [row["span"]["id"] for row in read(tmp_path / "out")] == [1, 2, 3]
