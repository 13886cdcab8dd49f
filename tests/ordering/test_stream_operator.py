"""The streaming operator against plain Python on random streams: any order, any micro-batches, any partitions."""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from quire.model.errors import BadInput
from quire.pipeline.ordering.stream.intake import Intake, IntakeTask, take_in
from quire.pipeline.ordering.stream.ledger import REJECTED, Ledger, State
from quire.pipeline.ordering.stream.operator import RELEASE, Operator
from quire.pipeline.ordering.stream.options import CausalOrder, OrderOptions, TotalOrder
from quire.pipeline.tasks import run_here
from tests.kit.effort import runs
from tests.ordering import stream_oracle as oracle
from tests.ordering.stream_oracle import CLOCK_MAX, Row

RUNS = runs(50, 100)
COLUMNS: dict[str, pa.DataType] = {
    "source": pa.string(), "clock": pa.int64(), "beat": pa.bool_(), "txn": pa.string(),
    "vector": pa.list_(pa.int64()), "text": pa.string(),
}  # fmt: skip
SCHEMA = pa.schema(COLUMNS)
SOURCES = ("a", "b", "c", "d")


class Stream:
    """An operator in this process, and the micro-batches that it has been given."""

    def __init__(
        self, out: Path, options: OrderOptions, rng: random.Random, rows_per_piece: int = 1 << 18, schema: pa.Schema = SCHEMA
    ) -> None:  # fmt: skip
        self.out, self.options, self.rng, self.rows_per_piece, self.schema = out, options, rng, rows_per_piece, schema
        self.ledger = Ledger(out)
        self.restart()
        self.batch = -1

    def restart(self) -> None:
        self.ledger.prepare(self.options, "parquet")
        self.operator = Operator(self.options, self.ledger, "parquet", rows_per_piece=self.rows_per_piece)

    def give(self, rows: Sequence[Row], partitions: int = 1, now_s: float = 0.0) -> State:
        self.batch += 1
        return self.operator.step(self.batch, lambda task: self._take_in(task, rows, partitions), run_here(RELEASE), now_s)

    def _take_in(self, task: IntakeTask, rows: Sequence[Row], partitions: int) -> list[Intake]:
        shares: list[list[Row]] = [[] for _ in range(partitions)]
        whole = isinstance(self.options, TotalOrder) and self.options.in_runs
        for row in self.rng.sample(list(rows), len(rows)):
            share = hash(row["source"]) % partitions if whole else self.rng.randrange(partitions)
            shares[share].append(row)
        return [take_in(task, pa.Table.from_pylist(share, self.schema).to_batches(max_chunksize=3)) for share in shares]

    def left(self, batch: int | None = None) -> list[Row]:
        return read(self.out, batch)

    def rejected(self, batch: int | None = None) -> Counter[str]:
        return Counter(repr(row) for row in read(self.out / REJECTED, batch))


def read(directory: Path, batch: int | None = None) -> list[Row]:
    pattern = "part-*.parquet" if batch is None else f"part-{batch:010d}-*.parquet"
    return [row for path in sorted(directory.glob(pattern)) for row in pq.read_table(path).to_pylist()]


def row(source: str | None, clock: int | None, **more: Any) -> Row:
    return {"source": source, "clock": clock, "beat": False, "txn": None, "vector": None, "text": ""} | more


def random_stream(rng: random.Random) -> list[list[Row]]:
    """Sources at their own pace, with heartbeats, transactions, and a few rows as they should not be."""
    clocks = dict.fromkeys(SOURCES, 0)
    names: dict[str, str | None] = dict.fromkeys(SOURCES)
    batches: list[list[Row]] = []
    wild = rng.random() < 0.5
    for _ in range(rng.randint(1, 7)):
        batch: list[Row] = []
        for _ in range(rng.choice((0, 1, 5, 20))):
            source = rng.choice(SOURCES[: rng.choice((2, 4, 4))])
            clocks[source] += rng.choice((1, 1, 2, 9))
            if rng.random() < 0.4:
                names[source] = rng.choice((None, "t", "u"))
            beat = rng.random() < 0.15
            batch.append(row(source, clocks[source], beat=beat, txn=names[source], text=str(rng.randrange(3))))
            if wild and rng.random() < 0.2:
                batch.append(
                    rng.choice(
                        (
                            batch[-1] | {"text": "again"}, row(None, 4), row("x", 4), row(source, None),
                            row(source, max(0, clocks[source] - 8), text="old"), row(source, CLOCK_MAX),
                        )
                    )
                )  # fmt: skip
        batches.append(batch)
    if rng.random() < 0.3:
        batches.append([row(source, CLOCK_MAX, beat=True) for source in SOURCES])
    return batches


def check(stream: Stream, expected: oracle.Outcome, seed: int) -> None:
    position = 0
    for batch, (left, rejected) in enumerate(zip(expected.left, expected.rejected, strict=True)):
        numbered = [row | {"position": position + index} for index, row in enumerate(left)]
        position += len(left)
        assert stream.left(batch) == numbered, f"seed {seed}, micro-batch {batch}"
        assert stream.rejected(batch) == Counter(repr(row | {"reason": reason}) for row, reason in rejected), f"seed {seed}"
    state = stream.ledger.last()
    assert state is not None
    assert (state.left, state.waiting_events()) == (position, len(expected.waiting)), f"seed {seed}"


@pytest.mark.parametrize("transactions", [False, True], ids=["events", "transactions"])
def test_random_streams_leave_as_plain_python_says(tmp_path: Path, transactions: bool) -> None:
    sometimes = Counter[str]()
    for seed in range(RUNS):
        rng = random.Random(seed)
        batches = random_stream(rng)
        idle_s = rng.choice((None, 2.0))
        options = TotalOrder(
            sources=SOURCES, idle="wait" if idle_s is None else idle_s, heartbeat="beat",
            transaction="txn" if transactions else None,
        )  # fmt: skip
        stream = Stream(tmp_path / str(seed), options, rng, rows_per_piece=rng.choice((2, 5, 1000)))
        heard = dict.fromkeys(SOURCES, 0)
        silent: list[set[str]] = []
        for now_s, batch in enumerate(batches):
            heard.update({row["source"]: now_s for row in batch if row["source"] in SOURCES})
            silent.append({source for source in SOURCES if idle_s is not None and now_s - heard[source] >= idle_s})
            stream.give(batch, partitions=rng.randint(1, 4), now_s=now_s)
        expected = oracle.total(batches, SOURCES, silent, transactions)
        check(stream, expected, seed)
        sometimes["left"] += any(expected.left)
        sometimes["rejected"] += any(expected.rejected)
        sometimes["waiting"] += bool(expected.waiting)
        sometimes["silent"] += any(silent)
        sometimes["pieces"] += any(stream.out.glob("part-*-00001.parquet"))
    assert min(sometimes[name] for name in ("left", "rejected", "waiting", "silent", "pieces")) > RUNS / 10, sometimes


def random_history(rng: random.Random) -> list[Row]:
    """Events of sources that tell each other how far they are."""
    vectors = {source: [0] * len(SOURCES) for source in SOURCES}
    events = []
    for number in range(rng.randint(1, 40)):
        index = rng.randrange(len(SOURCES))
        vector = vectors[SOURCES[index]]
        if rng.random() < 0.6:
            other = vectors[rng.choice(SOURCES)]
            vector[:] = [max(pair) for pair in zip(vector, other, strict=True)]
        vector[index] += 1
        events.append(row(SOURCES[index], None, vector=list(vector), text=str(number)))
    return events


def test_random_histories_leave_in_causal_order_as_plain_python_says(tmp_path: Path) -> None:
    sometimes = Counter[str]()
    for seed in range(RUNS):
        rng = random.Random(seed)
        events = random_history(rng)
        if rng.random() < 0.5:
            events.extend((events[0] | {"text": "again"}, row("x", None), row("a", None), row("b", None, vector=[1, 0, 2, 3])))
        if rng.random() < 0.3:
            events.remove(rng.choice(events))
        rng.shuffle(events)
        cuts = sorted(rng.sample(range(len(events) + 1), min(3, len(events))))
        batches = [events[start:end] for start, end in zip([0, *cuts], [*cuts, len(events)], strict=True)]
        stream = Stream(tmp_path / str(seed), CausalOrder(sources=SOURCES), rng)
        for batch in batches:
            stream.give(batch, partitions=rng.randint(1, 4))
        expected = oracle.causal(batches, SOURCES)
        check(stream, expected, seed)
        sometimes["waiting"] += bool(expected.waiting)
        sometimes["later"] += sum(bool(left) for left in expected.left) > 1
    assert min(sometimes.values()) > RUNS / 10, sometimes


def test_the_order_does_not_depend_on_micro_batches_or_partitions(tmp_path: Path) -> None:
    for seed in range(8):
        rng = random.Random(seed)
        events = [row(source, clock) for source in SOURCES for clock in rng.sample(range(500), 40)]
        ends = [row(source, CLOCK_MAX, beat=True) for source in SOURCES]
        orders = []
        for attempt in range(4):
            queues = {source: sorted(e["clock"] for e in events if e["source"] == source) for source in SOURCES}
            stream = Stream(
                tmp_path / f"{seed}-{attempt}",
                TotalOrder(sources=SOURCES, idle="wait", heartbeat="beat"),
                rng,
                rows_per_piece=30,
            )
            while any(queues.values()):
                batch = []
                for source, queue in queues.items():
                    count = rng.randint(0, 20)
                    batch += [row(source, clock) for clock in queue[:count]]
                    del queue[:count]
                stream.give(batch, partitions=rng.randint(1, 5))
            stream.give(ends)
            orders.append(stream.left())
        assert [(e["clock"], e["source"]) for e in orders[0]] == sorted((e["clock"], e["source"]) for e in events)
        assert all(order == orders[0] for order in orders), f"seed {seed}"


class Killed(BaseException):
    pass


class DiesAfterTwo:
    """Renames the state and the first file of a micro-batch, and no more."""

    def __init__(self) -> None:
        self.left, self.replace = 2, os.replace

    def __call__(self, old: Path, new: Path) -> None:
        if not self.left:
            raise Killed
        self.left -= 1
        self.replace(old, new)


def give_dying(stream: Stream, batches: Sequence[list[Row]], monkeypatch: pytest.MonkeyPatch, moment: str) -> None:
    """Give all micro-batches; in each but the first the operator dies at that moment, and does it again after a restart.

    A moment is a step of the ledger, a function of the operator, or between two renames."""

    def die(*_: object) -> None:
        raise Killed

    for number, batch in enumerate(batches):
        if number:
            with monkeypatch.context() as patch:
                if moment.startswith("release"):
                    patch.setattr(f"quire.pipeline.ordering.stream.operator.{moment}", die)
                elif moment == "between":
                    patch.setattr("quire.pipeline.ordering.stream.ledger.os.replace", DiesAfterTwo())
                else:
                    patch.setattr(Ledger, moment, die)
                with pytest.raises(Killed):
                    stream.give(batch)
            stream.batch -= 1
            stream.restart()
        stream.give(batch)


@pytest.mark.parametrize("moment", ["commit", "publish", "tidy", "release", "between"])
def test_a_death_at_any_step_loses_and_repeats_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:  # fmt: skip
    options = TotalOrder(sources=("a", "b"), idle="wait")
    stream = Stream(tmp_path / "out", options, random.Random(1), rows_per_piece=3)
    batches = [[row(s, c) for s in ("a", "b") for c in range(start, start + 5)] for start in (0, 5, 10, 15)]
    del batches[-1][-1]
    give_dying(stream, batches, monkeypatch, moment)

    keys = [(e["clock"], e["source"]) for e in stream.left()]
    assert keys == [(c, s) for c in range(20) for s in ("a", "b")][: len(keys)]
    assert [e["position"] for e in stream.left()] == list(range(39))
    assert not list(stream.out.glob(".part*"))
    assert not list(stream.ledger.waiting.iterdir())


def test_a_source_that_is_passed_over_is_fenced(tmp_path: Path) -> None:
    stream = Stream(tmp_path / "out", TotalOrder(sources=("a", "b"), idle=10.0), random.Random(1))
    stream.give([row("a", 1), row("a", 5)], now_s=0)
    assert stream.left() == []

    stream.give([row("a", 7)], now_s=10)
    assert [e["clock"] for e in stream.left()] == [1, 5, 7]

    state = stream.give([row("b", 6, text="late"), row("b", 9), row("a", 9)], now_s=11)
    assert [(e["clock"], e["source"]) for e in stream.left()] == [(1, "a"), (5, "a"), (7, "a"), (9, "a"), (9, "b")]
    assert state.rejected == 1
    assert read(stream.out / REJECTED)[0]["reason"] == "it is late: 6 is not above 7, which source b had already reached"


def test_a_transaction_leaves_at_the_place_of_its_first_event_when_its_source_has_moved_on(tmp_path: Path) -> None:
    stream = Stream(tmp_path / "out", TotalOrder(sources=("a", "b"), idle="wait", transaction="txn"), random.Random(1))
    stream.give([row("a", 1, txn="t"), row("a", 4, txn="t"), row("b", 2), row("b", 9)])
    assert stream.left() == []

    stream.give([row("a", 6, txn="t")])
    assert stream.left() == []

    stream.give([row("a", 8)])
    assert [(e["source"], e["clock"]) for e in stream.left()] == [("a", 1), ("a", 4), ("a", 6), ("b", 2), ("a", 8)]


def test_pieces_are_of_about_the_same_size(tmp_path: Path) -> None:
    stream = Stream(tmp_path / "out", TotalOrder(sources=("a", "b"), idle="wait"), random.Random(1), rows_per_piece=1000)
    stream.give([row(s, c) for s in ("a", "b") for c in range(5000)], partitions=3)

    sizes = [pq.read_metadata(path).num_rows for path in sorted(stream.out.glob("part-*"))]
    assert sum(sizes) == 10_000
    assert 8 <= len(sizes) <= 12
    assert max(sizes) < 1500


WISHES = TotalOrder(sources=("a", "b"), idle="wait")


def test_another_order_is_not_continued(tmp_path: Path) -> None:
    stream = Stream(tmp_path / "out", WISHES, random.Random(1))
    stream.give([row("a", 1)])

    with pytest.raises(BadInput, match="holds another order"):
        Ledger(tmp_path / "out").prepare(TotalOrder(sources=("a", "c"), idle="wait"), "parquet")
    with pytest.raises(BadInput, match="holds another order"):
        Ledger(tmp_path / "out").prepare(TotalOrder(sources=("a", "b"), idle=3.0), "parquet")


@pytest.mark.parametrize(("patience_s", "left_after_five_seconds"), [(3.0, 1), (60.0, 0)])
def test_an_order_may_be_continued_with_another_patience_which_counts_from_then_on(
    tmp_path: Path, patience_s: float, left_after_five_seconds: int
) -> None:
    stream = Stream(tmp_path / "out", TotalOrder(sources=("a", "b"), idle=20.0), random.Random(1))
    assert stream.give([row("a", 1)], now_s=0).left == 0

    stream.options = TotalOrder(sources=("a", "b"), idle=patience_s)
    stream.restart()

    assert stream.give([], now_s=10).left == 0, "nobody is silent for long yet, as far as it knows that continues"
    assert stream.give([], now_s=15).left == left_after_five_seconds
    assert stream.give([], now_s=70).left == 1


def test_a_source_that_has_ended_does_not_fence_others_beyond_all_clocks(tmp_path: Path) -> None:
    options = TotalOrder(sources=("a", "b"), idle=5.0, heartbeat="beat")
    stream = Stream(tmp_path / "out", options, random.Random(1))
    stream.give([row("b", CLOCK_MAX, beat=True)], now_s=0)

    state = stream.give([row("b", CLOCK_MAX, beat=True)], now_s=5)

    assert state.marks == (CLOCK_MAX, CLOCK_MAX)
    assert stream.give([row("a", 1)], now_s=6).rejected == 1


def test_a_directory_with_other_things_is_refused(tmp_path: Path) -> None:
    (tmp_path / "letter.txt").write_text("dear")

    with pytest.raises(BadInput, match="holds no order to continue"):
        Ledger(tmp_path).prepare(WISHES, "parquet")


def test_a_checkpoint_that_was_set_back_is_refused(tmp_path: Path) -> None:
    stream = Stream(tmp_path / "out", WISHES, random.Random(1))
    stream.give([row("a", 1)])
    stream.give([row("b", 1)])
    stream.batch = -1

    with pytest.raises(BadInput, match="its checkpoint was changed"):
        stream.give([row("a", 1)])


def test_closing_lets_go_what_waits_and_everything_after_is_late(tmp_path: Path) -> None:
    stream = Stream(tmp_path / "out", WISHES, random.Random(1))
    stream.give([row("a", 1), row("b", 1), row("a", 5), row("a", 7)])
    assert len(stream.left()) == 2

    for _ in range(2):  # The second time there is nothing left to do.
        closed = stream.operator.close(run_here(RELEASE))
        assert [e["clock"] for e in stream.left()] == [1, 1, 5, 7]
        assert (closed.left, closed.waiting_events()) == (4, 0)
    assert stream.give([row("b", 9)]).rejected == 1


def test_events_in_a_circle_are_set_apart_with_the_circle_and_others_go_on(tmp_path: Path) -> None:
    stream = Stream(tmp_path / "out", CausalOrder(sources=("a", "b", "c")), random.Random(1))
    stream.give([row("a", None, vector=[1, 0, 0]), row("a", None, vector=[2, 1, 0]), row("b", None, vector=[0, 2, 0])])
    state = stream.give([row("b", None, vector=[3, 1, 0]), row("c", None, vector=[1, 0, 1])])

    assert (state.left, state.rejected, state.waiting_events()) == (2, 2, 1)
    assert {rejected["reason"] for rejected in read(stream.out / REJECTED)} == {
        "event 2 of source a happened after event 1 of source b, and event 1 of source b happened after event 2 of source a: "
        "a circle, so they have no order"
    }


def test_closing_a_causal_order_rejects_what_waits_for_events_that_never_came(tmp_path: Path) -> None:
    stream = Stream(tmp_path / "out", CausalOrder(sources=("a", "b")), random.Random(1))
    stream.give([row("a", None, vector=[1, 0]), row("b", None, vector=[2, 1])])

    state = stream.operator.close(run_here(RELEASE))

    assert (state.left, state.rejected, state.waiting_events()) == (1, 1, 0)
    assert read(stream.out / REJECTED)[0]["reason"] == "an event that happened before it never arrived"
