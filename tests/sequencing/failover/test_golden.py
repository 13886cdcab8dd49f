"""The specification's step scripts: what a copy of a unit, the register and clients do with one input after another."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from quire.protocols.node import Send
from quire.protocols.sequencing import packets as inner
from quire.protocols.sequencing.failover import packets as wire
from quire.protocols.sequencing.failover.configurations import REGISTER
from tests.sequencing.failover.script import Script, address, expected, outputs, shown

GOLDEN = Path(__file__).parents[2] / "golden"


def golden(name: str) -> Any:
    return json.loads((GOLDEN / f"{name}.json").read_text())


@pytest.mark.parametrize("name", ["fo_gate", "fo_fence", "fo_evict"])
def test_every_step_says_what_the_script_says(name: str) -> None:
    case = golden(name)
    script = Script(case)
    for number, step in enumerate(case["steps"]):
        effects = script.step(step["at"], step["in"])
        if step["at"] == "REG":
            # The register also tells the processes, which the script does by steps of its own.
            effects = [each for each in effects if isinstance(each, Send) and not isinstance(each.packet, wire.Configured)]
        if step["at"] == "N1" and step["in"][0] == "LIVE":
            effects = []  # The script's primary does not tell its clients that it is one.
        assert outputs(effects) == expected(step["out"]), (number, step.get("note"))
        for out in step["out"]:
            if out["msg"][0] == "REPL":
                _check_record(script, step["at"], out["msg"])


def _check_record(script: Script, at: str, record: Any) -> None:
    """After the record the groups are as the script's record says they are."""
    _, unit, _, _, _, delta = record
    sequencer = script.unit(unit, at)
    for group, state in delta.items():
        if group == "*":
            assert sorted(sequencer.evicted) == sorted(map(address, state[2]))
        else:
            assert shown(sequencer.groups[group]) == state


def test_a_backup_is_after_a_record_what_the_primary_is() -> None:
    case = golden("fo_gate")
    script = Script(case)
    for step in case["steps"]:
        script.step(step["at"], step["in"])
    for group in case["groups"]:
        assert shown(script.unit("S0", "N1").groups[group]) == shown(script.unit("S0", "N0").groups[group])


def test_a_move_is_committed_by_the_register_and_a_late_transfer_of_it_is_ignored() -> None:
    """The script's source takes a step to begin draining and one to see that it is done; here the same input does both."""
    case = golden("fo_move_commit")
    script = Script(case, order="hybrid")
    source, destination = script.processes[address("N0")], script.processes[address("N1")]
    s0, s1 = address("S0"), address("S1")

    def from_register(packet: Any, unit: int) -> wire.Letter:
        return wire.Letter(unit, REGISTER, 0, packet)

    def letters(effects: Any) -> list[wire.Letter]:
        return [each.packet for each in effects if isinstance(each.packet, wire.Letter)]

    def recorded(process: Any, backup: int, unit: int, effects: Any) -> list[wire.Letter]:
        """The record reaches its backup and is acknowledged; what then leaves."""
        [record] = [each.packet for each in effects if isinstance(each.packet, wire.Record)]
        assert not letters(effects)
        [answer] = script.processes[backup].receive(0, process.address, record)
        assert isinstance(answer, Send)
        return letters(process.receive(0, backup, answer.packet))

    opened = source.receive(0, 20, from_register(inner.Open(1, ("G",), s1), s0))
    [transfer] = recorded(source, address("N1"), s0, opened)
    assert (transfer.to, transfer.by) == (s1, s0)
    assert isinstance(transfer.packet, inner.Transfer)
    suspended = ["moving", 1, {"G": 0}, "S1"]
    assert shown(transfer.packet.state, suspended) == case["steps"][5]["out"][1]["msg"][4][3]

    taken = destination.receive(0, source.address, transfer)
    [done] = recorded(destination, address("N2"), s1, taken)
    assert (done.to, done.packet) == (REGISTER, inner.Done(1))

    committed = inner.Outcome(1, committed=True)
    assert not recorded(source, address("N1"), s0, source.receive(0, 20, from_register(committed, s0)))
    assert not recorded(destination, address("N2"), s1, destination.receive(0, 20, from_register(committed, s1)))
    destination.receive(0, source.address, transfer)
    assert {unit: sorted(script.unit(unit, at).groups) for unit, at in (("S0", "N0"), ("S1", "N1"))} == case["groups_at"]
    assert {unit: sorted(script.unit(unit, at).groups) for unit, at in (("S0", "N1"), ("S1", "N2"))} == case["groups_at"]
    assert script.unit("S0", "N1").forward == {"G": s1}
    assert not script.unit("S1", "N1").moves.taking
