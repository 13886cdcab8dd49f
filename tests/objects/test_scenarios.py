"""What the printed rules do in the scenes of the specification, and what the corrected ones do there."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from quire.objects.call import Call
from quire.protocols.objects.node import ObjectNode
from quire.protocols.objects.queue import ObjectQueue
from quire.simulation.network import Split
from tests.objects.faults import HeadOnly, ResponsesWaitForRequests, StableByDescendants, StableByNextOfSender, _never_dies
from tests.objects.stage import Play, Stage, calls, nothing

GOLDEN = json.loads((Path(__file__).parent.parent / "golden/og.json").read_text())["scenarios"]
AGAINST = [("op0", "op1")]
SELF = [("op1", "op1")]


def waits_for_a_response(node_class: type[ObjectNode], *, to_both: bool) -> Stage:
    """A runs op0 at o0 and calls op1 of o1; meanwhile Z, which is older, calls op1 at o0, and at o1 before A does."""
    stage = Stage([AGAINST, SELF, []], {"o0": {"op0": calls("o1", "op1", "A calls", after_s=0.06)}}, node_class=node_class)
    stage.at(0, 2, calls(["o0", "o1"] if to_both else "o0", "op1", "Z", after_s=0.04))
    stage.at(0.5, 0, nothing)
    stage.at(1, 0, calls("o0", "op0", "A"))
    return stage


def outcome(stage: Stage, ended: bool) -> dict[str, object]:
    return {"active": [0] if stage.active(0) else [], "RQ0": stage.waiting(0), "stuck": not ended}


@pytest.mark.parametrize(("rule", "node_class"), [("literal", ResponsesWaitForRequests), ("corrected", ObjectNode)])
def test_a_response_must_not_wait_for_a_request_that_waits_for_its_instance(rule: str, node_class: type[ObjectNode]) -> None:
    stage = waits_for_a_response(node_class, to_both=True)
    assert outcome(stage, stage.run(3)) == GOLDEN["G7"][rule]


@pytest.mark.parametrize(("rule", "node_class"), [("head_only", HeadOnly), ("any", ObjectNode)])
def test_what_waits_at_the_head_must_not_stop_the_rest(rule: str, node_class: type[ObjectNode]) -> None:
    stage = waits_for_a_response(node_class, to_both=False)
    assert outcome(stage, stage.run(3)) == GOLDEN["G10"][rule]


@pytest.mark.parametrize(("rule", "node_class"), [("printed_or", StableByNextOfSender), ("floor", ObjectNode)])
def test_the_next_message_of_one_sender_says_nothing_of_the_others(rule: str, node_class: type[ObjectNode]) -> None:
    # The link from o0 to o2 is cut for a while, so the first message is late; the second goes by o1.
    late = Split(((0,), (2,)), 0, 100_000_000)
    plays = {"o0": {"op0": first_to_both()}, "o1": {"op1": calls("o2", "op1", "m")}}
    stage = Stage([[], [], SELF], plays, node_class=node_class, splits=[late])
    stage.at(0, 0, calls("o0", "op0", "A"))
    assert stage.run(1)
    assert stage.ran["o2"] == GOLDEN["G8_or"]["delivered_at_2"][rule]


def first_to_both() -> Play:
    async def play(call: Call) -> None:
        late, quick = call.invoke("o2", "op1", "m'"), call.invoke("o1", "op1", "q")
        await quick
        await late

    return play


@pytest.mark.parametrize(("rule", "node_class"), [("printed_and", StableByDescendants), ("floor", ObjectNode)])
def test_a_member_that_has_nothing_to_say_must_not_stop_the_others(rule: str, node_class: type[ObjectNode]) -> None:
    stage = Stage([[], SELF, []], {}, node_class=node_class)
    stage.at(0, 0, calls("o1", "op1", "m"))
    stage.run(1)
    assert len(stage.ran["o1"]) == GOLDEN["G8_and"]["delivered_at_1"][rule]


def test_targets_of_one_call_that_call_each_other_are_called_one_after_the_other() -> None:
    # One request would have to run at each before what the other calls there, and could not end before it.
    plays = {"o0": {"op0": calls("o1", "op1", "from o0")}, "o1": {"op0": calls("o0", "op1", "from o1")}}
    stage = Stage([AGAINST, AGAINST], plays)
    stage.at(0, 0, calls(["o0", "o1"], "op0", "both"))
    assert stage.run(1)
    assert stage.done == [None]
    assert stage.ran["o0"][-2:] == ["both", "from o1"]
    assert stage.ran["o1"][-2:] == ["from o0", "both"]


@pytest.mark.parametrize("rule", ["plain", "wait_die"])
def test_calls_in_a_cycle_end_because_the_younger_one_gives_way(rule: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if rule == "plain":
        monkeypatch.setattr(ObjectQueue, "must_die", _never_dies)
    plays = {
        "o0": {"op0": calls("o1", "op1", "A calls", after_s=0.05)},
        "o1": {"op0": calls("o0", "op1", "B calls", after_s=0.05)},
    }
    stage = Stage([AGAINST, AGAINST], plays)
    stage.at(0, 0, calls("o0", "op0", "A"))
    stage.at(1, 1, calls("o1", "op0", "B"))
    ended = stage.run(2)
    assert ended == (rule == "wait_die")
    found = {
        "active": stage.active(0) + stage.active(1),
        "restarts": sum(executor.died for executor in stage.executors),
        "queued": stage.waiting(0) + stage.waiting(1),
    }
    assert found == GOLDEN["G11"][rule]
