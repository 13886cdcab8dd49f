"""Ctrl-C, at any moment, of every command that works on Spark: one word, exit code 130, nothing half-written, nobody left."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from quire.simulation.config import SimulationConfig, WorkloadConfig
from quire.simulation.simulate import simulate
from tests.cli.commands import Command
from tests.kit.effort import cases

pytestmark = pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="finds the processes in /proc")

SHELL, JAVA, WORKERS = "spark-submit", "/bin/java -cp", "-m quire.pipeline.daemon"
"""What a command starts, one after the other."""

SORTING = ".out.*/sorted/*"
"""What Spark writes before it starts any workers to order events."""

ON_SPARK = ["--master", "local[2]"]
"""For what is judged without it if it is small."""

SENTENCE = "quire: interrupted\n"


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run, logs, events and a grid that keep Spark busy for longer than it takes to be interrupted."""
    inputs = tmp_path_factory.mktemp("inputs")
    config = SimulationConfig(protocol="single-phase", members=4, workload=WorkloadConfig(messages=2_000, interval_ms=1))
    simulate(config, inputs / "run")
    lines = [json.dumps({"host": f"h{number % 50}", "text": "x"}) for number in range(100_000)]
    (inputs / "log.jsonl").write_text("\n".join(lines))
    (inputs / "events").mkdir()
    rows = [json.dumps({"source": number % 3, "clock": number}) for number in range(10_000)]
    (inputs / "events" / "a.json").write_text("\n".join(rows))
    grid = 'title = "t"\n[[grid]]\nprotocol = "single-phase"\nmembers = [4, 5]\nmessages = 5000\nseeds = 100\n'
    (inputs / "grid.toml").write_text(grid)
    return inputs


def words(inputs: Path, out: Path) -> dict[str, list[str | Path]]:
    """Every command that works on Spark, and writes to `out` if it writes anything."""
    return {
        "audit": ["audit", inputs / "run", *ON_SPARK],
        "run": ["run", "--members", "2", "--messages", "10000", "--out", out, *ON_SPARK],
        "order": ["order", inputs / "events", out],
        "order --stream": ["order", inputs / "events", out, "--stream", "--sources", "0,1,2", "--idle", "wait"],
        "import": ["import", inputs / "log.jsonl", "--out", out, *ON_SPARK],
        "export": ["export", inputs / "run", "--out", out, *ON_SPARK],
        "sweep": ["sweep", inputs / "grid.toml", "--out", out],
        "causality": ["causality", inputs / "run", "--out", out],
        "report": ["report", inputs / "run", "--out", out, *ON_SPARK],
    }


@pytest.fixture
def interrupted(inputs: Path, tmp_path: Path) -> Callable[..., str]:
    """Start a command, wait for the moment, interrupt it; returns what it says, and checks what is the same for all."""

    def interrupted(name: str, moment: str, *, group: bool, number: signal.Signals = signal.SIGINT) -> str:
        temporary = tmp_path / "temporary"
        with Command(*words(inputs, tmp_path / "out")[name], temporary=temporary) as command:
            if moment == SORTING:
                command.wait_for_file(tmp_path, SORTING)
            else:
                # The shell becomes Java within milliseconds, between two looks.
                command.wait_for_process(*((SHELL, JAVA) if moment == SHELL else (moment,)))
            command.interrupt(group=group, number=number)
            code, out, complaints = command.end()
            assert (code, out) == (130, ""), complaints
            assert complaints.endswith(SENTENCE)
            assert "Traceback" not in complaints
            command.wait_until_alone()
        assert not list(temporary.iterdir()), "no temporary file is left"
        return complaints

    return interrupted


@pytest.mark.parametrize(
    ("moment", "group", "number"),
    cases(
        # Signals other than Ctrl-C that end a command are interruptions, too.
        [(SHELL, True, signal.SIGHUP), (JAVA, False, signal.SIGTERM)],
        [(moment, group, signal.SIGINT) for moment in (SHELL, JAVA, WORKERS) for group in (True, False)],
    ),
    ids=lambda value: {True: "as a terminal does", False: "as kill does"}.get(value, str(value)),
)
def test_an_audit_can_be_interrupted_from_the_start_of_java_to_the_end(
    interrupted: Callable[..., str], moment: str, group: bool, number: signal.Signals
) -> None:
    assert interrupted("audit", moment, group=group, number=number) == SENTENCE


@pytest.mark.parametrize(
    ("name", "moment"), cases([("order", SORTING)], [(name, WORKERS) for name in ("import", "export", "causality")])
)
def test_nothing_is_written_unless_it_is_whole(interrupted: Callable[..., str], tmp_path: Path, name: str, moment: str) -> None:
    assert interrupted(name, moment, group=True) == SENTENCE
    assert [path.name for path in tmp_path.iterdir()] == ["temporary"]


def test_a_run_that_was_not_audited_stays(interrupted: Callable[..., str], tmp_path: Path) -> None:
    said = interrupted("run", SHELL, group=True)

    assert said == f"quire: the run is in {tmp_path / 'out'}, but was not audited\n{SENTENCE}"
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["run.json", "trace"]


def test_a_sweep_keeps_what_it_measured_and_can_go_on(interrupted: Callable[..., str], tmp_path: Path) -> None:
    said = interrupted("sweep", WORKERS, group=True)
    assert said == f"quire: 200 cells are left; the same command resumes with them\n{SENTENCE}"
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [".lock", "results", "sweep.json"]


def test_a_stream_ends_between_two_steps(interrupted: Callable[..., str], tmp_path: Path) -> None:
    said = interrupted("order --stream", WORKERS, group=True)

    assert said.startswith("quire: stopped; ")
    assert said.endswith(f"the same command resumes there\n{SENTENCE}")


@pytest.mark.parametrize("name", ["report", "import"])
def test_what_is_done_here_can_be_interrupted(inputs: Path, tmp_path: Path, name: str) -> None:
    """What is small needs no Spark, so it is interrupted as soon as it begins to judge or to read."""
    (tmp_path.parent / "log.jsonl").write_text('{"host":"a"}\n')
    what = {"report": inputs / "run", "import": tmp_path.parent / "log.jsonl"}[name]
    words: list[str | Path] = [name, what, "--out", tmp_path / "out"]
    with Command(*words, temporary=tmp_path / "temporary", interrupted_by_import="numba") as command:
        assert command.end() == (130, "", SENTENCE)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["interrupting", "temporary"]


def test_a_simulation_can_be_interrupted_while_it_writes(tmp_path: Path) -> None:
    words: list[str | Path] = ["simulate", "--members", "3", "--messages", "1000000", "--out", tmp_path / "out"]
    with Command(*words, temporary=tmp_path / "temporary") as command:
        command.wait_for_file(tmp_path, ".out.*/new/trace")
        command.interrupt(group=True)
        assert command.end() == (130, "", SENTENCE)
    assert [path.name for path in tmp_path.iterdir()] == ["temporary"]


@pytest.mark.parametrize("module", ["typer", "msgspec", "quire.model.errors"])
def test_ctrl_c_while_the_command_itself_is_loaded_is_one_word_too(tmp_path: Path, module: str) -> None:
    words: list[str | Path] = ["audit", tmp_path / "nothing"]
    with Command(*words, temporary=tmp_path / "temporary", interrupted_by_import=module) as command:
        assert command.end() == (130, "", SENTENCE)


def test_a_command_in_the_background_that_ignores_ctrl_c_goes_on_ignoring_it(inputs: Path, tmp_path: Path) -> None:
    """A shell starts it so, and Ctrl-C is meant for what is in the foreground."""
    with Command("audit", inputs / "run", *ON_SPARK, temporary=tmp_path / "temporary", ignoring=signal.SIGINT) as command:
        command.wait_for_process(WORKERS)
        command.interrupt(group=True)
        code, out, complaints = command.end()
    assert (code, complaints) == (0, "")
    assert "holds: expected" in out
