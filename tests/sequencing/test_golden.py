"""The specification's vectors: contexts, deliveries step by step, a sequencer's outputs, placements that cycle."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from quire.model.messages import Run, pack
from quire.protocols.node import Send
from quire.protocols.sequencing import packets as wire
from quire.protocols.sequencing.contexts import at_most, merge, prune, restrict
from quire.protocols.sequencing.delivery import HoldBack
from quire.protocols.sequencing.events import JOIN, KINDS, Event
from quire.protocols.sequencing.options import SequencingOptions
from quire.protocols.sequencing.placement import components, cycle
from quire.protocols.sequencing.sequencer import Sequencer
from quire.protocols.sequencing.state import GroupState

GOLDEN = Path(__file__).parent.parent / "golden"
P0, STRANGER = 0, 9


def golden(name: str) -> Any:
    return json.loads((GOLDEN / f"{name}.json").read_text())


@pytest.mark.parametrize("case", golden("kb_contexts"))
def test_contexts(case: dict[str, Any]) -> None:
    one, other = case["a"], case["b"]
    assert merge(one, other) == case["merge"]
    assert at_most(one, other) == case["a_le_b"]
    assert (at_most(one, other) and one != other) == case["a_lt_b"]
    assert restrict(one, {"G"}) == case["restrict_a_to_G"]


@pytest.mark.parametrize("case", golden("og_view_gc")["dep_prune"])
def test_what_every_member_has_delivered_is_in_no_context(case: dict[str, Any]) -> None:
    assert prune(case["dep"], case["stable"]) == case["pruned"]


@pytest.mark.parametrize("case", golden("og_view_gc")["group_stable"])
def test_a_group_is_stable_as_far_as_members_and_leavers_have_delivered_it(case: dict[str, Any]) -> None:
    members, departing = ({ord(client): 0 for client in case[who]} for who in ("members", "departing"))
    reached = {ord(client): number for client, number in case["hi"].items()}
    state = GroupState("G", seq=case["seq"], members=members, departing=departing, reached=reached)
    state.collect()
    assert state.stable == case["stable"]


def event(arrives: dict[str, Any]) -> Event:
    kind = KINDS.index(arrives["kind"])
    who = P0 if arrives["who"] == "p0" else STRANGER
    run = Run(who, arrives["seq"], 1)
    request = 1 if kind == JOIN else -1
    return Event(arrives["G"], arrives["seq"], kind, who, request, run, arrives["tot"], arrives["dep"])


@pytest.mark.parametrize("name", golden("kb_delivery"))
def test_deliveries_step_by_step(name: str) -> None:
    case = golden("kb_delivery")[name]
    hold = HoldBack(P0, 1 << 20)
    hold.delivered.update(case["D0"])
    for group, request in case["pending_join"].items():
        hold.join(group, request)
    for step in case["steps"]:
        delivered = hold.take(event(step["arrives"]))
        assert [f"{KINDS[each.kind]}:{each.group}{each.seq}" for each in delivered] == step["delivered"]
        assert hold.delivered == step["D"]
        held = [f"{each.group}{each.seq}" for events in hold.held.values() for each in events.values()]
        assert sorted(held) == sorted(step["held"])


def test_the_outputs_of_a_sequencer() -> None:
    sequencer = Sequencer(10, (10,), 11, SequencingOptions(order="total"))
    for group, members in {"G": (0, 1), "H": (1, 2)}.items():
        sequencer.groups[group] = GroupState(group, members=dict.fromkeys(members, 0), reached=dict.fromkeys(members, 0))
    for step in golden("kb_sequencer"):
        kind, group, who, what, *_ = step["input"]
        client = int(who[1:])
        packet: Any
        if kind == "DOMC":
            counter = eval(what)[2]
            packet = wire.DoMulticast(group, client, counter, counter, Run(client, counter, 1, pack([b"m"])))
        elif kind == "LEAVE":
            packet = wire.Leave(group, client, int(what))
        else:
            packet = wire.LeftAck(group, client, int(what))
        assert _outputs(sequencer.receive(0, client, packet)) == [_expected(each) for each in step["output"]]


def _outputs(effects: Any) -> list[dict[str, Any]]:
    found = []
    for send in effects:
        assert isinstance(send, Send)
        for client in sorted(send.to):
            match send.packet:
                case Event() as each:
                    found.append({"to": client, "G": each.group, "seq": each.seq, "kind": KINDS[each.kind], "tot": each.tot})
                case wire.Ack() as ack:
                    found.append({"to": client, "ack": ack.counter, "seq": ack.seq})
    return found


def _expected(output: dict[str, Any]) -> dict[str, Any]:
    to = int(output["to"][1:])
    if output["msg"] == "ACC":
        return {"to": to, "ack": eval(output["id"])[2], "seq": output["seq"]}
    return {"to": to, **{key: output[key] for key in ("G", "seq", "kind", "tot")}}


@pytest.mark.parametrize("name", ["cycle_three_groups", "cycle_two_sequencers"])
def test_groups_that_overlap_in_a_ring_cycle_under_s2_and_are_brought_together_for_acyclic(name: str) -> None:
    case = golden("kb_counterexamples")[name]
    members = {group: [ord(client) for client in clients] for group, clients in case["groups"].items()}
    locations = {group: int(location[1:]) for group, location in case["sequencers"].items()}
    strong = components(members, 2)
    assert all(len({locations[group] for group in part}) == 1 for part in strong) == case["S2_holds"]
    assert (cycle(members, locations) is None) == case["acyclic"]
    found = cycle(members, locations)
    assert found is not None
    assert cycle(members, {**locations, **dict.fromkeys(found, 0)}) is None


def test_ids_in_events_deadlock_and_are_resolved_before_anything_is_numbered() -> None:
    """K16: the sequence that deadlocks with ids in ACCEPT cannot come about."""
    case = golden("kb_counterexamples")["pipe_deadlock"]
    assert case["deliverable_at_q"] == []
    options = SequencingOptions(order="hybrid", pipelined=True)
    sequencer = Sequencer(10, (10, 11), 12, options)
    sequencer.groups["G"] = GroupState("G", members={0: 0}, reached={0: 0})
    # H is at another sequencer, so a message that names one to H by its id waits until the number is known.
    assert not sequencer.receive(0, 2, wire.DoMulticast("G", 2, 0, 0, Run(2, 1, 1), ids={"H": 0}))
    sends = sequencer.receive(0, 2, wire.DoMulticast("G", 2, 0, 0, Run(2, 1, 1), ctx={"H": 1}))
    events = [send.packet for send in sends if isinstance(send, Send) and isinstance(send.packet, Event)]
    assert [each.dep for each in events] == [{"H": 1}]
