"""Sequencers with backups in the simulator: killed and restarted, while clients go on, and what that looks like."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

from quire.model.errors import BadInput
from quire.model.orders import Guarantee
from quire.pipeline.auditing.auditor import audit_here
from quire.pipeline.auditing.verdicts import Verdict
from quire.report.run_report import report_run
from quire.simulation.config import FaultConfig, NetworkConfig, SimulationConfig, WorkloadConfig
from quire.simulation.simulate import SimulationResult, simulate

MEMBERS = 6
FIRST = MEMBERS
"""The first sequencer."""


def config(words: str = "", *, seed: int = 0, messages: int = 60, **options: object) -> SimulationConfig:
    return SimulationConfig(
        protocol="sequencer", members=MEMBERS, seed=seed, options={"sequencers": 3, "groups": 3, "backups": 1, **options},
        network=NetworkConfig(delay="exponential:5", loss=0.05, duplicate=0.05, reorder=True),
        workload=WorkloadConfig(messages=messages, interval_ms=30.0), faults=FaultConfig(words=words),
    )  # fmt: skip


def judged(given: SimulationConfig, directory: Path) -> SimulationResult:
    result = simulate(given, directory)
    audit = audit_here(directory)
    assert Guarantee.MEMBERSHIPS in audit.expected
    assert {each: audit.checks[each].because for each in audit.expected if audit.checks[each].verdict != Verdict.HOLDS} == {}
    return result


@pytest.mark.parametrize(("backups", "order"), [(0, "total"), (0, "causal-total"), (1, "hybrid"), (2, "total")])
def test_clients_go_on_when_sequencers_are_killed_and_restarted(tmp_path: Path, backups: int, order: str) -> None:
    words = "kill 6@300ms, restart 6@2s, kill 7@4s, kill 8@7s, restart 7@6s"
    result = judged(config(words, backups=backups, order=order, changes=4, moves=2, sequencers=4), tmp_path / "run")
    assert result.complete
    assert result.details["failovers"] >= 2  # type: ignore[operator]
    assert result.messages == MEMBERS * 60
    told = [(each.what, each.about) for each in result.happened]
    assert {("kill", "6"), ("restart", "6"), ("kill", "7"), ("restart", "7"), ("kill", "8")} <= {*told}
    taken_over = [about for what, about in told if what == "unit 6"]
    assert taken_over
    assert not taken_over[0].startswith("run by 6")


def test_the_report_tells_who_took_over_and_when(tmp_path: Path) -> None:
    result = judged(config("kill 6@300ms"), tmp_path / "run")
    section = report_run(tmp_path / "run", None).partition('id="what-happened"')[2].partition("</section>")[0]
    rows = re.findall(r"<td[^>]*>([^<]*)</td><td[^>]*>([^<]*)</td><td[^>]*>([^<]*)</td>", section)
    assert rows == [(f"{each.at_s:.3f}", each.what, each.about) for each in result.happened]
    assert rows[0] == ("0.300", "kill", "6")
    assert any(what == "unit 6" and not about.startswith("run by 6") for _, what, about in rows)

    judged(config(), tmp_path / "calm")
    assert "what-happened" not in report_run(tmp_path / "calm", None)


def test_a_message_waits_until_the_others_have_noticed_and_no_longer(tmp_path: Path) -> None:
    calm, killed = (
        judged(msgspec.structs.replace(config(words), network=NetworkConfig(delay="constant:5")), tmp_path / f"run{words}")
        for words in ("", "kill 6@500ms")
    )
    assert calm.happened == ()
    assert calm.latency.origin is not None
    assert killed.latency.origin is not None
    assert calm.latency.origin.max < 1000 <= killed.latency.origin.max < 2000


def test_the_same_seed_gives_the_same_failovers() -> None:
    words = "kill 6@300ms, restart 6@2s"
    one, other = simulate(config(words, seed=7)), simulate(config(words, seed=7))
    assert (one.digest, one.happened) == (other.digest, other.happened)


def test_a_run_ends_when_all_who_knew_a_group_are_lost(tmp_path: Path) -> None:
    words = "kill 6@300ms, kill 7@300ms, kill 8@300ms, restart 6@400ms, restart 7@400ms, restart 8@400ms"
    result = simulate(config(words), tmp_path / "run")
    assert not result.complete
    assert result.details["groups_lost"]


@pytest.mark.parametrize(
    ("words", "options", "why"),
    [
        ("kill 6@1s", {"backups": None}, "give it --backups"),
        ("kill 0@1s", {}, "processes 6 to 8, are killed and restarted, and nothing else"),
        ("stop 6@1s for 1s", {}, "nothing else"),
        ("kill 9@1s", {}, "has members 0 to 8"),
        ("", {"backups": 3}, "3 backups need more than 3 sequencers"),
        ("", {"backups": 0, "pipelined": True}, "pipelined needs a backup"),
    ],
)
def test_what_cannot_be_is_refused(words: str, options: dict[str, Any], why: str) -> None:
    with pytest.raises(BadInput, match=why):
        simulate(config(words, **options))
