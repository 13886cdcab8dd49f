"""The benchmark itself: every contender does what it is measured for, and nothing is left behind."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import msgspec
import pytest
from typer.testing import CliRunner

from quire.bench.assignment import Assignment, Report
from quire.bench.load import HEAD_BYTES, Supply, Tally
from quire.bench.measure import (
    ALL_SEND,
    CEILINGS,
    IN_ONE_SIZE,
    OURS,
    RAW,
    RAW_ALL_SEND,
    ZEROMQ,
    Config,
    Latency,
    Results,
    Throughput,
    check,
    measure,
    move_load,
    rivals_for,
)
from quire.bench.processes import BenchFailed, Processes
from quire.bench.soak import Sample, judge_memory, soak
from quire.bench.targets import judge
from quire.cli.app import app
from quire.live.runs.fleet import free_addresses
from quire.model.errors import BadInput
from tests.kit.effort import cases
from tests.kit.patience import PATIENCE_S

QUIRE = [sys.executable, "-c", "from quire.cli.main import main; main()"]
TINY = ["bench", "--members", "2", "--messages", "500", "--rounds", "1", "--size", "64", "--round-trips", "20"]


def silently(_: str) -> None:
    pass


@pytest.fixture(scope="module")
def tiny() -> Results:
    """What the real command measures when each contender moves a little: all of them, because starting processes takes long."""
    done = subprocess.run([*QUIRE, *TINY, "--json"], capture_output=True, text=True, timeout=PATIENCE_S, check=True)
    printed = json.loads(done.stdout)
    assert set(printed) == {"results", "targets"}
    assert {"name", "wanted", "measured", "met"} == set(printed["targets"][0])
    return msgspec.convert(printed["results"], Results)


class TestLoad:
    def assignment(self, **load: object) -> Assignment:
        return Assignment(contender="", me=1, members=3, addresses=(), **load)  # type: ignore[arg-type]

    @pytest.mark.parametrize("messages", [1, 3, 4, 5, 8, 9])
    def test_as_many_messages_are_supplied_as_are_wanted_and_the_last_says_so(self, messages: int) -> None:
        supply, tally = Supply(self.assignment(messages=messages), batch=4), Tally(64)
        batches = [list(batch) for batch in supply.batches()]
        for batch in batches[:-1]:
            tally.take_each(batch)
        assert tally.senders_done == 0
        tally.take_each(batches[-1])
        assert tally.senders_done == 1
        assert supply.sent == tally.delivered == messages

    def test_supply_ends_after_its_time(self) -> None:
        tally = Tally(64)
        for packed in Supply(self.assignment(seconds=0.01)).packed_batches():
            tally.take_together(packed)
        assert tally.senders_done == 1

    def test_the_digest_does_not_depend_on_how_messages_travelled_but_on_their_order(self) -> None:
        messages = [message for batch in Supply(self.assignment(messages=10)).batches() for message in batch]
        together, each, reordered = Tally(64), Tally(64), Tally(64)
        together.take_together(b"".join(messages))
        each.take_each(messages[:3])
        each.take_each(messages[3:])
        reordered.take_each(messages[::-1])
        assert together.digest() == each.digest() != reordered.digest()

    def test_a_message_without_room_for_its_head_is_refused(self) -> None:
        with pytest.raises(BadInput, match=f"at least {HEAD_BYTES} bytes, not 7"):
            Supply(self.assignment(size=7))


class TestContenders:
    # Every one of them takes part in the tiny run below, too.
    @pytest.mark.parametrize("contender", cases(OURS[:1], [*OURS[1:], *IN_ONE_SIZE, *CEILINGS]))
    @pytest.mark.parametrize("size", cases([1024], [64]))
    def test_everybody_delivers_everything_as_promised(self, contender: str, size: int) -> None:
        figures = asyncio.run(move_load(contender, size, Config(messages=3000)))
        assert figures.deliveries_per_s > 0
        assert figures.cpu_s_per_million > 0

    @pytest.mark.parametrize("contender", ZEROMQ)
    def test_the_zeromq_sequencer_orders(self, contender: str) -> None:
        pytest.importorskip("zmq")
        assert asyncio.run(move_load(contender, 64, Config(messages=3000))).deliveries_per_s > 0

    def test_lost_messages_are_noticed(self) -> None:
        reports = [Report(me=me, sent=5, delivered=10 - me, digests=("a",)) for me in range(2)]
        with pytest.raises(BenchFailed, match="'x' lost messages: member 1 delivered 9 of 10"):
            check("x", reports)

    def test_another_order_is_noticed(self) -> None:
        reports = [Report(me=me, sent=5, delivered=10, digests=(str(me),)) for me in range(2)]
        with pytest.raises(BenchFailed, match="'x' is out of order: members 0 and 1"):
            check("x", reports)


class TestMeasure:
    def test_a_tiny_run_gives_every_row_and_judges_the_targets(self, tiny: Results) -> None:
        rows = {row.contender: row for row in tiny.throughput}
        assert {*OURS, *IN_ONE_SIZE, *CEILINGS} <= set(rows)
        assert all(rows[name].to_runs for name in IN_ONE_SIZE)
        assert rows["quire fast"].to_fixed
        assert [name for name, row in rows.items() if row.to_disk] == ["quire journal"]
        assert rows["quire runs"].to_runs == rows["ceiling opaque"].to_ceiling == 1.0
        latency = {row.contender: row for row in tiny.latency}
        assert {RAW, "quire", "quire, lookahead=0", ALL_SEND} <= set(latency)
        assert latency[RAW].to_raw == latency[RAW_ALL_SEND].mean_to_raw == latency[RAW_ALL_SEND].p99_to_raw == 1.0
        assert latency[ALL_SEND].mean_to_raw
        durable = {row.contender: row.to_sync for row in tiny.latency}
        assert durable["quire, journal"]
        assert durable["quire"] is None
        judged = [target.name for target in judge(tiny)]
        assert len(judged) >= 8
        assert sum("fixed" in name or "journal" in name or "durable" in name for name in judged) == 4

    def test_without_rivals_quire_is_alone(self) -> None:
        assert rivals_for(Config(rivals=False)) == ((), "")

    def test_where_zeromq_is_missing_one_sentence_says_so(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("quire.bench.measure.find_spec", lambda _: None)
        rivals, left_out = rivals_for(Config())
        assert rivals == CEILINGS
        assert "install quire[bench]" in left_out

    def test_targets_are_met_or_missed(self) -> None:
        runs = {"contender": "quire runs", "deliveries_per_s": 2e6, "cpu_s_per_million": 0.6, "to_zeromq": 0.9}
        results = Results(
            config=Config(), cores=2, load_before=0.0, load_after=0.0, left_out="",
            throughput=(Throughput(size=64, **runs), Throughput(size=1024, **runs)),  # type: ignore[arg-type]
            latency=(Latency(contender="quire", mean_us=1.0, p50_us=1.0, p99_us=1.0, to_raw=1.9),),
        )  # fmt: skip
        assert [target.met for target in judge(results)] == [True, False, False, True, True]

    def test_large_messages_through_a_sequencer_have_targets_of_their_own(self) -> None:
        rows = [
            Throughput(contender=name, size=1024, deliveries_per_s=1e6, cpu_s_per_million=1.0, to_zeromq=1.5)
            for name in ("quire sequencer", "quire sequencer direct")
        ]
        results = Results(
            config=Config(), cores=2, load_before=0.0, load_after=0.0, left_out="", throughput=tuple(rows), latency=()
        )
        assert [(target.name, target.wanted, target.met) for target in judge(results)] == [
            ("sequencer, 1 KiB: to zmq 64", ">= 1.3", True),
            ("sequencer direct, 1 KiB: to zmq 64", ">= 1.8", False),
        ]

    @pytest.mark.parametrize(
        "wish", [{"members": 1}, {"members": 17}, {"rounds": 0}, {"sizes": (4,)}, {"seconds": 0.0}, {"messages": 0}]
    )
    def test_what_makes_no_sense_is_refused(self, wish: dict[str, int]) -> None:
        with pytest.raises(BadInput, match="must be from"):
            asyncio.run(measure(Config(**wish), silently))  # type: ignore[arg-type]


class TestSoak:
    def test_under_full_load_memory_is_flat_and_nothing_is_lost(self) -> None:
        seconds = float(os.environ.get("QUIRE_SOAK_SECONDS", "3"))
        result = asyncio.run(soak(seconds, members=3, size=64, say=silently))
        assert result.deliveries == 3 * result.sent > 0
        assert result.flat, f"memory grew by {result.growth_bytes} bytes"

    def test_growing_memory_is_noticed(self) -> None:
        mib = 1 << 20
        growing = [Sample(float(at), member, at, (100 + at * member) * mib) for at in range(40) for member in (0, 1)]
        assert judge_memory(growing) == (20 * mib, False)
        assert judge_memory([sample for sample in growing if sample.member == 0]) == (0, True)


def children_of(parent: int) -> list[int]:
    """Processes that a process has started, as Linux tells."""
    tasks = Path(f"/proc/{parent}/task")
    return [int(child) for task in tasks.glob("*/children") for child in task.read_text().split()]


def is_alive(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def wait_until(reached: object) -> None:
    assert callable(reached)
    deadline = time.monotonic() + PATIENCE_S
    while not reached():
        assert time.monotonic() < deadline, "it took too long"
        time.sleep(0.01)


class TestProcesses:
    def assignments(self, contender: str) -> list[Assignment]:
        addresses = free_addresses(2)
        return [Assignment(contender=contender, me=me, members=2, addresses=addresses, messages=10) for me in range(2)]

    def test_a_process_that_fails_is_named_with_its_last_words(self) -> None:
        with pytest.raises(BenchFailed, match=r"process \d of 'no such thing' ended with code 1 \(KeyError: 'no such thing'\)"):
            asyncio.run(Processes(self.assignments("no such thing"), 1.0).run())

    def test_what_takes_too_long_is_stopped(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("quire.bench.processes.EXTRA_S", 0.1)
        with pytest.raises(BenchFailed, match="took longer than"):
            asyncio.run(Processes(self.assignments("quire runs"), 0.0).run())

    @pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="asks Linux for the processes")
    @pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
    def test_no_process_is_left_behind(self, number: signal.Signals) -> None:
        command = subprocess.Popen([*QUIRE, "bench", "--soak", "60"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        try:
            wait_until(lambda: len(children_of(command.pid)) == 3)
            children = children_of(command.pid)
            command.send_signal(number)
            _, errors = command.communicate(timeout=PATIENCE_S)
        finally:
            command.kill()
        wait_until(lambda: not any(map(is_alive, children)))
        assert "Traceback" not in errors
        assert command.returncode == (130 if number == signal.SIGINT else -number)


class TestCommand:
    def test_the_command_prints_tables(self, tiny: Results, monkeypatch: pytest.MonkeyPatch) -> None:
        async def measured(config: Config, _: object) -> Results:
            assert config == tiny.config
            return tiny

        monkeypatch.setattr("quire.bench.measure.measure", measured)
        done = CliRunner().invoke(app, TINY)
        assert done.exit_code == 0
        assert all(name in done.stdout for name in ("targets", *OURS, *IN_ONE_SIZE, *CEILINGS))
        assert done.stderr.strip() == (f"quire: {tiny.left_out}" if tiny.left_out else "")

    @pytest.mark.parametrize(
        ("wish", "sentence"),
        [
            ("--members 1", "quire: members must be from 2 to 16, not 1"),
            ("--rivals some", "quire: --rivals must be all or none, not 'some'"),
            ("--soak 0", "quire: soak must be from 1 to 86400 seconds, not 0"),
        ],
    )
    def test_bad_input_is_one_sentence(self, wish: str, sentence: str) -> None:
        done = subprocess.run([*QUIRE, "bench", *wish.split()], capture_output=True, text=True, timeout=PATIENCE_S, check=False)
        assert (done.returncode, done.stderr.strip()) == (2, sentence)
