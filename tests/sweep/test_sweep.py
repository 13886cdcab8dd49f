"""Sweeps: every cell measured once, kept at once, whatever happens; the same bytes however they were spread."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest

from quire.model.errors import BadInput
from quire.pipeline.tasks import run_here
from quire.simulation.simulate import simulate
from quire.sweep import chunks
from quire.sweep.chunks import CHUNKS, Chunk, ChunkDone, Shares, measure_chunk
from quire.sweep.experiments.simulated import configure
from quire.sweep.grid import Grid, GridFile
from quire.sweep.store import Measured, SweepStore, open_sweep
from quire.sweep.sweeper import SweepResult, sweep, sweep_into
from tests.kit.patience import PATIENCE_S

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def grid(**settings: Any) -> Grid:
    table = {"protocol": ["fifo", "single-phase"], "members": [2, 3], "messages": 5, "seeds": 3, **settings}
    return Grid(GridFile(title="test", grid=(table,)), "test")


def here(grid: Grid, directory: Path, workers: int = 1, **options: Any) -> SweepResult:
    with SweepStore(directory, grid, **options) as store:
        return sweep_into(store, grid, run=run_here(CHUNKS), workers=workers)


def content(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted((directory / "results").iterdir())}


def test_each_cell_holds_what_the_simulator_says_of_it(spark: SparkSession, tmp_path: Path) -> None:
    result = sweep(spark, grid(), tmp_path / "out")
    assert (result.cells, result.measured, result.failed) == (12, 12, 0)
    stored = open_sweep(tmp_path / "out")
    assert len(stored.rows) == 12
    for row in stored.rows:
        alone = simulate(configure(stored.grid.cells[row["cell"]]))  # type: ignore[arg-type]
        assert row["sent"] == alone.messages
        assert row["deliveries"] == alone.deliveries
        assert row["multicasts"] == alone.packets["multicasts"] / alone.messages
        assert row["origin_mean_ms"] == alone.latency.origin.mean  # type: ignore[union-attr]


def test_the_results_are_the_same_bytes_however_they_were_spread(spark: SparkSession, tmp_path: Path) -> None:
    sweep(spark, grid(), tmp_path / "spark")
    here(grid(), tmp_path / "one", workers=1)
    here(grid(), tmp_path / "many", workers=7)
    assert list(content(tmp_path / "spark")) == ["all.parquet"]
    assert content(tmp_path / "spark") == content(tmp_path / "one") == content(tmp_path / "many")


def test_finished_cells_are_not_measured_again_and_a_larger_grid_goes_on(tmp_path: Path) -> None:
    assert here(grid(seeds=2), tmp_path / "out").measured == 8
    assert here(grid(seeds=2), tmp_path / "out").measured == 0
    assert here(grid(seeds=3), tmp_path / "out").measured == 4
    here(grid(seeds=3), tmp_path / "fresh")
    assert content(tmp_path / "out") == content(tmp_path / "fresh")
    assert here(grid(seeds=3), tmp_path / "out", force=True).measured == 12


def test_a_sweep_that_is_killed_goes_on_where_it_was(tmp_path: Path) -> None:
    """Killed after every part that it writes, until it is done: each time it has more, and it never measures one twice."""
    script = (
        "import os, signal, sys\nfrom pathlib import Path\nfrom quire.pipeline.tasks import run_here\n"
        "from quire.sweep.chunks import CHUNKS\nfrom quire.sweep.store import SweepStore\n"
        "from quire.sweep.sweeper import sweep_into\n"
        "from tests.sweep.test_sweep import grid\n"
        "class Killed(SweepStore):\n    def add(self, measured):\n        super().add(measured)\n"
        "        os.kill(os.getpid(), signal.SIGKILL)\n"
        "with Killed(Path(sys.argv[1]), grid()) as store:\n"
        "    sweep_into(store, grid(), run=run_here(CHUNKS), workers=1)\n"
    )
    finished = 0
    for _ in range(3):
        ended = subprocess.run([sys.executable, "-c", script, str(tmp_path / "out")], timeout=PATIENCE_S, check=False)
        assert ended.returncode == -signal.SIGKILL
        assert len(open_sweep(tmp_path / "out").rows) > finished
        finished = len(open_sweep(tmp_path / "out").rows)
    assert here(grid(), tmp_path / "out").measured == 12 - finished
    here(grid(), tmp_path / "fresh")
    assert content(tmp_path / "out") == content(tmp_path / "fresh")


def test_measuring_again_keeps_the_old_results_until_it_is_done_and_can_be_interrupted(tmp_path: Path) -> None:
    out = tmp_path / "out"
    here(grid(), out)
    old = content(out)

    class Interrupted(SweepStore):
        def add(self, measured: Iterable[Measured]) -> None:
            super().add(measured)
            raise KeyboardInterrupt

    with Interrupted(out, grid(), force=True) as store, pytest.raises(KeyboardInterrupt):
        sweep_into(store, grid(), run=run_here(CHUNKS), workers=1)
    assert content(out) == old
    assert len(open_sweep(out).rows) == 12

    again = here(grid(), out, force=True)

    assert 0 < again.measured < 12, "it goes on with what it had measured again"
    assert content(out) == old
    assert sorted(path.name for path in out.iterdir()) == [".lock", "results", "sweep.json"]


def test_a_cell_that_fails_is_named_kept_apart_and_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails_for_seed_1(chunk: Chunk) -> ChunkDone:
        done = measure_chunk(chunk)
        bad = {cell for cell in chunk.cells if b'"seed":1' in chunk.cells[cell]}
        done.measured = [Measured(each.cell, {}, "it broke") if each.cell in bad else each for each in done.measured]
        return done

    def run(tasks: Sequence[Chunk]) -> list[ChunkDone]:
        return [fails_for_seed_1(task) for task in tasks]

    with SweepStore(tmp_path / "out", grid()) as store:
        result = sweep_into(store, grid(), run=run, workers=2)
    assert (result.failed, result.first_failure) == (4, "it broke")
    assert (len(open_sweep(tmp_path / "out").rows), len(open_sweep(tmp_path / "out").errors)) == (8, 4)
    assert here(grid(), tmp_path / "out").measured == 4
    assert not open_sweep(tmp_path / "out").errors


def test_a_fault_of_a_protocol_costs_its_cell_only(monkeypatch: pytest.MonkeyPatch) -> None:
    cells = dict.fromkeys("ab", b'{"members":3,"protocol":"fifo","messages":2}')
    monkeypatch.setattr("quire.sweep.experiments.simulated.simulate", lambda _: 1 // 0)
    done = measure_chunk(Chunk("simulate", cells, 5.0))
    assert [each.error for each in done.measured] == ["ZeroDivisionError: integer division or modulo by zero"] * 2


def test_a_task_stops_when_its_time_is_up_and_the_rest_is_handed_out_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chunks, "TASK_S", 0.0)
    some = grid()
    shares = Shares(some.experiment, some.cells, workers=1)
    seen: list[str] = []
    while shares:
        chunk = shares.take()
        done = measure_chunk(chunk)
        assert len(done.measured) == 1, "no time, but a task always gets on by one cell"
        shares.settle(chunk, done)
        seen += [each.cell for each in done.measured]
    assert sorted(seen) == sorted(some.cells)


def test_heavy_cells_come_first_and_shares_shrink() -> None:
    some = grid(members=[2, 8], seeds=40)
    shares = Shares(some.experiment, some.cells, workers=2)
    sizes, works = [], []
    while shares:
        chunk = shares.take()
        sizes.append(len(chunk.cells))
        works.append(max(some.experiment.work(some.cells[name]) for name in chunk.cells))
    assert sum(sizes) == len(some.cells)
    assert works == sorted(works, reverse=True)
    assert sizes[0] > 5
    assert sizes[-1] == 1


def test_services_are_measured_by_what_only_they_can_say(tmp_path: Path) -> None:
    file = GridFile(
        title="services",
        grid=(
            {"protocol": "sequencer groups=4", "members": 4, "messages": 10, "option": "sequencers", "value": [1, 4]},
            {"protocol": "transactions clients=2", "members": 2, "messages": 2},
            {"protocol": "hierarchy", "members": 9, "messages": 5, "broadcast": 0.0},
        ),
    )
    some = Grid(file, "test")
    here(some, tmp_path / "out")
    one, four, transactions, hierarchy = open_sweep(tmp_path / "out").rows
    assert (one["sequencer_load"], one["carried_out"]) == (1.0, None)
    assert 0.25 <= four["sequencer_load"] < 1.0
    assert 0 < transactions["carried_out"] <= 1
    assert 0 <= transactions["abort_share"] < 1
    assert hierarchy["header_entries"] > 0
    assert hierarchy["hottest"] > 0


def test_a_directory_with_something_else_in_it_is_refused_and_left_alone(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    for force in (False, True):
        with pytest.raises(BadInput, match="exists already and is not a sweep"):
            here(grid(), tmp_path, force=force)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_results_of_another_experiment_or_version_are_not_mixed(tmp_path: Path) -> None:
    here(grid(), tmp_path / "out")
    routes = Grid(GridFile(title="t", experiment="routes", grid=({},)), "test")
    with pytest.raises(BadInput, match="holds results of the experiment simulate, not routes"):
        here(routes, tmp_path / "out")
    description = tmp_path / "out" / "sweep.json"
    description.write_text(description.read_text().replace('"quire": "', '"quire": "0.0.'))
    with pytest.raises(BadInput, match=r"was begun with version 0\.0"):
        here(grid(), tmp_path / "out")


def test_two_sweeps_do_not_write_to_one_directory(tmp_path: Path) -> None:
    with SweepStore(tmp_path / "out", grid()), pytest.raises(BadInput, match="another sweep is writing"):
        here(grid(), tmp_path / "out")


def test_damaged_results_are_named(tmp_path: Path) -> None:
    here(grid(), tmp_path / "out")
    (tmp_path / "out" / "results" / "all.parquet").write_bytes(b"PAR1 no")
    with pytest.raises(BadInput, match="is not a file of results"):
        here(grid(), tmp_path / "out")


def quire(*arguments: object, **options: Any) -> subprocess.CompletedProcess[str]:
    command = [str(Path(sys.executable).with_name("quire")), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False, **options)


def test_the_command_refuses_in_one_sentence_before_spark_starts(tmp_path: Path) -> None:
    (tmp_path / "grid.toml").write_text('title = "t"\n[[grid]]\nload = -1\n')
    for arguments in (
        ("sweep",),
        ("sweep", "nothing", "--out", tmp_path / "o"),
        ("sweep", tmp_path / "grid.toml", "--out", tmp_path / "o"),
    ):
        began = time.perf_counter()
        ended = quire(*arguments)
        assert ended.returncode == 2
        assert ended.stderr.count("\n") == 1
        assert ended.stderr.startswith("quire: ")
        assert not (tmp_path / "o").exists()
        assert time.perf_counter() - began < 30
    assert "sun-load" in quire("sweep", "--list").stdout


def test_results_are_plain_parquet_with_a_column_for_each_setting_and_quantity(tmp_path: Path) -> None:
    here(grid(), tmp_path / "out")
    schema = pq.read_schema(tmp_path / "out" / "results" / "all.parquet")
    assert {"cell", "protocol", "members", "load", "delay", "loss", "seed", "multicasts", "header_bytes", "error"} <= set(
        schema.names
    )
    assert os.listdir(tmp_path / "out" / "results") == ["all.parquet"]
