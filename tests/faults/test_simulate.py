"""`quire simulate --faults`: the same words for the same processes on virtual connections, and the same bytes for a seed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from typer.testing import CliRunner

from quire.cli.app import app
from quire.model.errors import BadInput
from quire.model.faults import render_faults
from quire.pipeline.auditing.auditor import audit_here
from quire.report.write import write_report
from quire.simulation.config import FaultConfig, NetworkConfig, Pause, SimulationConfig, WorkloadConfig
from quire.simulation.simulate import SimulationResult, simulate
from tests.faults.chaos.groups import make_round

ISSUED = "kill 2@1s, stop 3@2s for 4s, partition 0,1|2,3,4@8s for 5s, restart 2@10s"


def config(words: str, members: int = 5, seed: int = 0, protocol: str = "single-phase", **load: Any) -> SimulationConfig:
    return SimulationConfig(
        protocol=protocol,
        members=members,
        seed=seed,
        network=NetworkConfig(delay="uniform:1:20"),
        workload=WorkloadConfig(**{"messages": 60, "interval_ms": 100.0, **load}),
        faults=FaultConfig(words=words),
    )


def check(given: SimulationConfig, out: Path) -> SimulationResult:
    """Everything comes to its end, and all that is promised holds."""
    result = simulate(given, out)
    assert result.complete
    audit = audit_here(out)
    assert {name: audit.checks[name].because for name in audit.expected if audit.checks[name].verdict != "holds"} == {}
    assert {"virtual-synchrony", "once"} <= set(audit.expected)
    return result


def test_the_words_of_a_live_run_mean_the_same(tmp_path: Path) -> None:
    result = check(config(ISSUED), tmp_path / "run")

    told = [(each.what, each.about) for each in result.happened]
    assert told[0] == ("view 2", "0, 1, 2, 3, 4")
    for each in (
        ("kill", "2"), ("view 3", "0, 1, 3, 4"), ("stop", "3"), ("view 4", "0, 1, 4"), ("continue", "3"), ("excluded", "3"),
        ("partition", "0,1|2,3,4"), ("blocked", "4"), ("restart", "2"), ("heal", "0,1|2,3,4"), ("unblocked", "4"),
    ):  # fmt: skip
        assert each in told
    assert set(told[-1][1].split(", ")) == {"0", "1", "2", "3", "4"}
    assert result.crashed == ()
    assert result.messages >= 300
    write_report(tmp_path / "run", tmp_path / "report.html", audit_here(tmp_path / "run"))
    assert "virtual-synchrony" in (tmp_path / "report.html").read_text()


def test_who_was_stopped_for_longer_than_the_timeout_learns_at_once_that_it_was_excluded(tmp_path: Path) -> None:
    result = check(config("stop 2@2s for 3s", 3), tmp_path / "run")

    at_s = {(each.what, each.about): each.at_s for each in result.happened}
    assert 0 < at_s["excluded", "2"] - at_s["continue", "2"] < 0.3
    assert ("blocked", "2") not in at_s


def test_a_seed_gives_the_same_bytes(tmp_path: Path) -> None:
    one, same, other = (
        simulate(config("kill 1@300ms, restart 1@1s", 3, seed), tmp_path / name)
        for name, seed in (("one", 1), ("same", 1), ("other", 2))
    )
    assert one.digest == same.digest != other.digest
    assert one.happened == same.happened


@pytest.mark.parametrize("protocol", ["single-phase", "causal-vector", "fifo"])
@pytest.mark.parametrize("seed", range(4))
def test_random_faults_lose_nothing(tmp_path: Path, protocol: str, seed: int) -> None:
    round = make_round(seed, 8, True)
    check(config(render_faults(round.faults), round.members, seed, protocol), tmp_path / "run")


def test_a_hierarchy_goes_on_without_its_agents_and_is_made_anew_with_those_who_are_there(tmp_path: Path) -> None:
    given = config("kill 0@1s, kill 3@2s, restart 0@4s, stop 1@5s for 3s", 6, protocol="hierarchy")
    result = check(msgspec.structs.replace(given, options={"branching": 2, "leaf": 3}), tmp_path / "run")
    assert result.crashed == (3,)
    assert "causal" in audit_here(tmp_path / "run").expected


def test_a_hierarchy_that_is_paused_or_parted_and_has_no_crash_is_a_fixed_group() -> None:
    given = config("", 4, protocol="hierarchy")
    faults = FaultConfig(pauses=(Pause(1, 100.0, 50.0),))
    assert not simulate(msgspec.structs.replace(given, faults=faults)).happened


def test_who_is_killed_for_good_has_crashed_and_a_blocking_load_waits(tmp_path: Path) -> None:
    result = check(config("kill 0@1s", 3, mode="blocking", batch=3), tmp_path / "run")
    assert result.crashed == (0,)


def test_a_member_whose_disk_is_full_ends_and_comes_back_when_there_is_room(tmp_path: Path) -> None:
    result = check(config("full 1@1s for 2s", 3), tmp_path / "run")

    told = [(each.what, each.about) for each in result.happened]
    assert told.index(("full", "1")) < told.index(("view 3", "0, 2")) < told.index(("room", "1"))
    assert (told[-1][1], result.crashed) == ("0, 2, 1", ())


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (
            ("--protocol", "two-phase"),
            "groups of two-phase are fixed and end with their first fault; choose one of single-phase",
        ),
        (("--links", "raw"), "leave out --links, or the faults"),
        (("--receipts",), "receipts are not recorded"),
        (("--members", "2"), "'kill 2@1s' names member 2, but a group of 2 has members 0 to 1"),
    ],
)
def test_what_is_not_simulated_is_refused_in_a_sentence(arguments: tuple[str, ...], says: str) -> None:
    done = CliRunner().invoke(app, ["simulate", "--faults", "kill 2@1s", *arguments])
    assert isinstance(done.exception, BadInput)
    assert says in str(done.exception)


def test_a_person_sees_what_happened_and_a_program_too() -> None:
    words = ["simulate", "--faults", "kill 2@100ms, restart 2@500ms", "--messages", "20"]
    shown = CliRunner().invoke(app, words)
    assert "what happened" in shown.stdout
    assert "view 3" in shown.stdout
    said = json.loads(CliRunner().invoke(app, [*words, "--json"]).stdout)
    assert {"at_s": 0.1, "what": "kill", "about": "2"} in said["happened"]


@pytest.mark.parametrize("seed", range(2))
def test_who_is_alone_delivers_after_a_restart_what_it_had_written(tmp_path: Path, seed: int) -> None:
    words = "kill 2@200ms, kill 1@600ms, kill 0@1.5s, restart 0@1.6s, restart 1@1.7s, restart 2@1.8s"
    result = check(config(words, 3, seed, interval_ms=0.3, messages=4000), tmp_path / "run")
    assert ("view 4", "0") in [(each.what, each.about) for each in result.happened]
