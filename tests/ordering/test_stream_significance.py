"""Superseded writes left out of a stream, against plain Python: any micro-batches, any partitions, any look ahead."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from quire.pipeline.ordering.significance import Significance
from quire.pipeline.ordering.stream.ledger import REJECTED
from quire.pipeline.ordering.stream.operator import RELEASE
from quire.pipeline.ordering.stream.options import TotalOrder
from quire.pipeline.tasks import run_here
from tests.kit.effort import runs
from tests.ordering import stream_oracle as oracle
from tests.ordering import test_batch as batch_oracle
from tests.ordering.stream_oracle import CLOCK_MAX, Row
from tests.ordering.test_stream_operator import COLUMNS, SOURCES, Stream, check, give_dying, read, row

RUNS = runs(40, 150)
SCHEMA = pa.schema(COLUMNS | {"object": pa.string(), "op": pa.string(), "by": pa.string()})
BY = Significance(txn="by")


def access(source: str, clock: int, op: str | None, name: str | None, by: str | None = None, **more: Any) -> Row:
    return row(source, clock, object=name, op=op, by=by) | more


def options_for(within: int, **more: Any) -> TotalOrder:
    return TotalOrder(sources=SOURCES, heartbeat="beat", omit_superseded=BY, within=within, **({"idle": "wait"} | more))


def random_accesses(rng: random.Random) -> list[list[Row]]:
    """Sources that write, read and commit, at about the same pace, with repetitions and latecomers."""
    clocks = dict.fromkeys(SOURCES, 0)
    names: dict[str, str | None] = dict.fromkeys(SOURCES)
    objects = "xyz"[: rng.randint(1, 3)]
    reads = rng.choice((0, 1, 3))
    wild = rng.random() < 0.4
    batches: list[list[Row]] = []
    for _ in range(rng.randint(2, 7)):
        batch: list[Row] = []
        for _ in range(rng.choice((0, 3, 12, 30))):
            source = rng.choice(SOURCES)
            clocks[source] += rng.choice((1, 1, 1, 3))
            if rng.random() < 0.3:
                names[source] = rng.choice((None, "t", "u"))
            op = rng.choice(("write",) * 6 + ("read",) * reads + ("commit", "commit", None))
            name = rng.choice(objects) if op != "commit" or rng.random() < 0.2 else None
            by = rng.choice((None, "1", "2", "3"))
            beat = rng.random() < 0.1
            batch.append(access(source, clocks[source], op, name, by, beat=beat, txn=names[source], text=str(rng.randrange(3))))
            if wild and rng.random() < 0.15:
                again = {"text": rng.choice("abc"), "op": rng.choice(("write", "read"))}
                batch.append(batch[-1] | rng.choice((again, again, {"source": "x"}, {"clock": max(0, clocks[source] - 6)})))
        batches.append(batch)
    if rng.random() < 0.5:
        batches.append([access(source, CLOCK_MAX, None, None, beat=True) for source in SOURCES])
    return batches


@pytest.mark.parametrize("transactions", [False, True], ids=["events", "transactions"])
def test_random_streams_leave_as_plain_python_says(tmp_path: Path, transactions: bool) -> None:
    """QUIRE_SWARM_RUNS=10000 pytest tests/ordering/test_stream_significance.py"""
    sometimes = Counter[str]()
    for seed in range(RUNS):
        rng = random.Random(seed)
        batches = random_accesses(rng)
        within = rng.choice((0, 1, 3, 10, 40, CLOCK_MAX))
        idle_s = rng.choice((None, None, 2.0))
        options = options_for(within, idle=idle_s or "wait", transaction="txn" if transactions else None)
        stream = Stream(tmp_path / str(seed), options, rng, schema=SCHEMA)
        heard = dict.fromkeys(SOURCES, 0)
        silent: list[set[str]] = []
        for now_s, batch in enumerate(batches):
            heard.update({event["source"]: now_s for event in batch if event["source"] in SOURCES})
            silent.append({source for source in SOURCES if idle_s is not None and now_s - heard[source] >= idle_s})
            stream.give(batch, partitions=rng.randint(1, 4), now_s=now_s)
            if idle_s is None and rng.random() < 0.3:
                stream.restart()
        expected = oracle.total(batches, SOURCES, silent, transactions, within)
        check(stream, expected, seed)
        state = stream.ledger.last()
        assert state is not None
        plain = oracle.total(batches, SOURCES, silent, transactions)
        sometimes["omitted"] += state.omitted > 0
        sometimes["held"] += len(expected.waiting) > len(plain.waiting)
        sometimes["early"] += within == CLOCK_MAX and any(expected.left[:-1])
        sometimes["rejected"] += any(expected.rejected)
    assert min(sometimes[name] for name in ("omitted", "held", "early", "rejected")) > RUNS / 30, sometimes


def test_in_the_end_a_stream_that_looks_as_far_as_it_can_leaves_what_a_batch_does(tmp_path: Path) -> None:
    omitted = 0
    for seed in range(40):
        rng = random.Random(seed)
        order: list[Row] = []
        for clock in range(60):
            op = rng.choice(("write", "write", "write", "read"))
            order.append(access(rng.choice(SOURCES), clock, op, rng.choice("xy"), rng.choice((None, "1", "2", "3"))))
        # A transaction commits, if it does, when it has done everything.
        order += [access("a", 60 + number, "commit", None, str(number)) for number in (1, 2, 3) if rng.random() < 0.5]
        stream = Stream(tmp_path / str(seed), options_for(rng.choice((100, CLOCK_MAX))), rng, schema=SCHEMA)
        cut = rng.randint(0, 60)
        stream.give(order[:cut], partitions=2)
        stream.give(order[cut:])

        state = stream.operator.close(run_here(RELEASE))

        expected = batch_oracle.significant([event | {"txn": event["by"]} for event in order])
        assert [event["clock"] for event in stream.left()] == [event["clock"] for event in expected], f"seed {seed}"
        assert (state.left + state.omitted, state.waiting) == (len(order), ())
        omitted += state.omitted
    assert omitted > 100


def test_a_write_waits_until_it_is_superseded_read_or_out_of_reach(tmp_path: Path) -> None:
    def give(*rows: Row) -> list[tuple[int, str]]:
        stream.give([*rows, access("b", rows[-1]["clock"], None, None, beat=True)])
        return [(event["clock"], event["object"]) for event in stream.left(stream.batch)]

    options = TotalOrder(sources=("a", "b"), idle="wait", heartbeat="beat", omit_superseded=BY, within=10)
    stream = Stream(tmp_path / "out", options, random.Random(1), schema=SCHEMA)
    assert give(access("a", 1, "write", "x"), access("a", 2, "read", "y")) == []
    assert give(access("a", 3, "write", "x")) == [(2, "y")]
    assert give(access("a", 4, "read", "x")) == [(3, "x"), (4, "x")]
    assert give(access("a", 5, "write", "x")) == []
    assert give(access("a", 14, "write", "y")) == []
    assert give(access("a", 15, "read", "y")) == [(5, "x"), (14, "y"), (15, "y")]
    # The write of a transaction supersedes when it commits, and not if it has not done so in time.
    assert give(access("a", 16, "write", "x"), access("a", 17, "write", "x", "1"), access("a", 18, "read", "x")) == []
    assert give(access("a", 19, "commit", "x", "1")) == [(17, "x"), (18, "x"), (19, "x")]
    assert give(access("a", 20, "write", "x"), access("a", 21, "write", "x", "2"), access("a", 22, "read", "x")) == []
    assert give(access("a", 30, "read", "z")) == [(20, "x"), (21, "x"), (22, "x"), (30, "z")]


@pytest.mark.parametrize("moment", ["commit", "publish", "tidy", "release_significant", "between"])
def test_a_death_at_any_step_loses_and_repeats_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:  # fmt: skip
    rng = random.Random(7)
    batches = []
    for start in (0, 10, 20, 30):
        accesses = [(rng.choice(("write", "write", "read")), rng.choice("xy")) for _ in range(20)]
        rows = [access("ab"[at % 2], start + at // 2, op, name) for at, (op, name) in enumerate(accesses)]
        batches.append([*rows, access("z", start, "write", "x")])
    options = TotalOrder(sources=("a", "b"), idle="wait", omit_superseded=BY, within=4)
    stream = Stream(tmp_path / "out", options, random.Random(1), schema=SCHEMA)
    give_dying(stream, batches, monkeypatch, moment)

    expected = oracle.total(batches, ("a", "b"), [set() for _ in batches], False, 4)
    check(stream, expected, 7)
    state = stream.ledger.last()
    assert state is not None
    assert (state.omitted > 0, len(expected.waiting) > 0) == (True, True)
    assert len(read(stream.out / REJECTED)) == 4
    assert not list(stream.out.glob(".part*"))
