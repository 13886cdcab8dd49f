"""The golden scripts: every answer and every final state of the corrected protocol, and how the printed one fails."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from quire.model.packets import Packet
from quire.protocols.node import Effects, Send
from quire.protocols.transactions.channels import Clock
from quire.protocols.transactions.durable import Durable
from quire.protocols.transactions.omission import batch_ratio
from quire.protocols.transactions.packets import Done, End, Read, Refused, Write
from quire.protocols.transactions.placement import Placement
from quire.protocols.transactions.quorum_packets import (
    Accepted,
    Decide,
    Denied,
    Ended,
    Fetch,
    Granted,
    Prepare,
    Prewrite,
    Promised,
    Propose,
    Recover,
    Rejected,
    Snapshot,
)
from quire.protocols.transactions.quorum_replica import QuorumReplica
from quire.protocols.transactions.replica import Post, Replica
from quire.protocols.transactions.settings import Settings
from quire.protocols.transactions.timestamps import LATEST_PNO, Timestamp, Version
from quire.protocols.transactions.votes import FIRST, Ballot, Decision, Stance, valid
from tests.transactions import literal

GOLDEN = Path(__file__).parents[1] / "golden"
TBCO = json.loads((GOLDEN / "tbco.json").read_text())
RATIO = json.loads((GOLDEN / "tbco_ratio.json").read_text())
CRASH = json.loads((GOLDEN / "tx_crash.json").read_text())

CLIENT = 7


def to_bytes(value: str | None) -> bytes | None:
    return None if value is None else value.encode()


def to_text(value: bytes | None) -> str | None:
    return None if value is None else value.decode()


class Script:
    """One replica and a script of the first golden file."""

    def __init__(self, objects: int) -> None:
        self.replica = Replica(0, [CLIENT], Settings(), Clock())
        self.objects = objects
        self.names: dict[tuple[Timestamp, int], tuple[str, str]] = {}
        self.written: dict[Timestamp, list[str]] = {}

    def step(self, step: list[Any]) -> list[list[Any]]:
        kind = step[0]
        if kind in ("commit", "abort"):
            t = Timestamp(*step[1])
            keys = tuple(dict.fromkeys(self.written.get(t, ())))
            return self.answers(self.replica.end(End(0, 0, 0, t, kind == "commit", keys)))
        _, name, when, no, key, *value = step
        t = Timestamp(*when)
        number = len(self.names)
        self.names[t, number] = name, kind
        if kind == "r":
            return self.answers(self.replica.request(0, CLIENT, Read(0, 0, 0, t, number, str(key))))
        self.written.setdefault(t, []).append(str(key))
        write = Write(0, 0, 0, t, number, str(key), Version(*t, no), to_bytes(value[0]))
        return self.answers(self.replica.request(0, CLIENT, write))

    def answers(self, outcomes: list[Any]) -> list[list[Any]]:
        found: list[list[Any]] = []
        for outcome in outcomes:
            if isinstance(outcome, Post):
                content = outcome.content
                assert isinstance(content, Done | Refused)
                name, kind = self.names[content.t, content.number]
                if isinstance(content, Refused):
                    found.append([name, "obsolete"])
                elif kind == "w":
                    found.append([name, "ok"])
                else:
                    found.append([name, "ok", list(content.version), to_text(content.value)])
        return found


@pytest.mark.parametrize("name", TBCO["replica_traces"])
def test_a_replica_answers_every_step_and_ends_as_written(name: str) -> None:
    golden = TBCO["replica_traces"][name]
    script = Script(golden["objects"])
    assert [script.step(step) for step in golden["script"]] == golden["outputs"]
    cells = [script.replica.cell(str(key)) for key in range(golden["objects"])]
    assert [[list(cell.wts), to_text(cell.value)] for cell in cells] == golden["final"]
    assert [list(cell.rts) for cell in cells] == golden["rts"]


def request(golden: dict[str, Any]) -> literal.Request:
    return literal.Request(tuple(golden["V"]), (golden["t"][0], golden["t"][1]), golden["op"], golden["o"])


@pytest.mark.parametrize("golden", TBCO["ordering_rule_printed"])
def test_the_printed_order_is_read_as_its_examples_say(golden: dict[str, Any]) -> None:
    a, b = request(golden["a"]), request(golden["b"])
    assert (literal.precedes(a, b), literal.precedes(b, a)) == (golden["a_before_b"], golden["b_before_a"])


@pytest.mark.parametrize("name", ["ordering_rule_cycle", "ordering_rule_cycle3"])
def test_the_printed_order_is_cyclic(name: str) -> None:
    requests = [request(golden) for golden in TBCO[name]]
    assert all(literal.precedes(a, b) for a, b in pairwise([*requests, requests[0]]))


def test_the_printed_rules_fail_where_the_corrected_ones_do_not() -> None:
    first, again, own, crossed, later, earlier = TBCO["literal_failures"]
    assert first["literal"] == again["literal"] == "abort"
    assert not literal.accepts_read((0, 0, 0), (0, 0, 0))
    assert own["literal"] == "obsolete"
    assert not literal.runs_operation(tuple(own["tno"]), tuple(own["v"]))
    replica = literal.Replica()
    one, two = (1, 0), (1, 1)
    steps = (
        replica.read(one, 1, "y"),
        replica.read(two, 1, "x"),
        replica.write(two, 1, "y", "2"),
        replica.write(one, 1, "x", "1"),
    )
    assert crossed["literal"].startswith("all accepted")
    assert steps == (None, None, None, None)
    assert literal.left_over([("w1", "1"), ("w2", "2")])[-1][1] == str(later["literal_final"])
    # A superseded write that is forgotten is missing when its superseder aborts.
    assert [write for write in [("w1", "1"), ("w2", "2")][1:] if write[0] != "w2"] == []
    assert earlier["naive_final"] is None


@pytest.mark.parametrize("golden", RATIO["analytic"] + RATIO["analytic_w"])
def test_the_ratio_of_a_batch_follows_from_its_size(golden: dict[str, Any]) -> None:
    assert batch_ratio(golden["q"], golden["u"], golden["n"], golden["w"]) == pytest.approx(golden["ratio"], abs=1e-6)


GOLDEN_LATEST = 99
"""The golden file's number after every client."""


def to_ballot(number: int) -> Ballot:
    return FIRST if number == 0 else Ballot(number // 100, 0, number % 100)


def ballot_number(ballot: Ballot) -> int:
    return 0 if ballot == FIRST else ballot.round * 100 + ballot.replica


def to_decision(golden: list[Any]) -> Decision:
    outcome, writes = golden
    return Decision(outcome == "commit", {key: (Version(*tno), to_bytes(value)) for key, (tno, value) in writes.items()})


def from_decision(decision: Decision) -> list[Any]:
    writes = {key: [list(version), to_text(value)] for key, (version, value) in decision.writes.items()}
    return ["commit" if decision.commit else "abort", writes]


def from_timestamp(t: Timestamp) -> list[int]:
    return [t.tid, GOLDEN_LATEST if t.pno == LATEST_PNO else t.pno]


def from_state(state: Durable) -> dict[str, Any]:
    cell = state.cell("0")
    rts = max(cell.rts, state.floor)
    return {
        "wts": [list(cell.wts)],
        "val": [to_text(cell.value)],
        "rts": [from_timestamp(rts)],
        "pend": [{str(list(t)): [list(each.version), to_text(each.value)] for t, each in cell.prewrites.items()}],
        "prom": {str(list(t)): ballot_number(ballot) for t, ballot in state.promised.items()},
        "accd": {str(list(t)): [ballot_number(ballot), from_decision(value)] for t, (ballot, value) in state.accepted.items()},
        "dec": {str(list(t)): from_decision(decision) for t, decision in state.decided.items()},
        "inc": state.incarnation,
        "kinc": {str(replica): known for replica, known in state.known.items()},
    }


class CrashScript:
    """Three replicas and a script of the third golden file. Client c has address 3 + c there and c in timestamps."""

    def __init__(self) -> None:
        self.placement = Placement(3)
        self.settings = Settings(cap_step=5)
        self.replicas = [QuorumReplica(address, self.placement, self.settings, lambda: 0.0) for address in range(3)]
        self.snapshots: dict[str, Snapshot] = {}

    def packet(self, golden: list[Any]) -> Packet:
        match golden:
            case ["W", t, number, key, tno, value]:
                return Prewrite(Timestamp(*t), number, str(key), Version(*tno), to_bytes(value))
            case ["R", t, number, key]:
                return Fetch(Timestamp(*t), number, str(key))
            case ["PREP", t, ballot]:
                return Prepare(Timestamp(*t), to_ballot(ballot))
            case ["ACC", t, ballot, decision]:
                return Propose(Timestamp(*t), to_ballot(ballot), to_decision(decision))
            case ["DEC", t, decision]:
                return Decide(Timestamp(*t), to_decision(decision))
            case ["XREQ", _, incarnation]:
                return Recover(incarnation)
            case ["XREP", *_]:
                return self.snapshots[json.dumps(golden)]
        raise AssertionError(golden)

    def answer(self, replica: int, packet: Packet) -> list[Any]:
        match packet:
            case Granted(known=known, t=t, number=number, version=version, value=value):
                seen = None if version is None else list(version)
                return ["OK", replica, packet.incarnation, names(known), list(t), number, seen, to_text(value)]
            case Denied(known=known, t=t, number=number, hint=hint):
                return ["OBS", replica, packet.incarnation, names(known), list(t), number, from_timestamp(hint)]
            case Ended(known=known, t=t, decision=decision):
                return ["ENDED", replica, packet.incarnation, names(known), list(t), from_decision(decision)]
            case Promised(known=known, t=t, ballot=ballot, accepted=accepted):
                held = None if accepted is None else [ballot_number(accepted[0]), from_decision(accepted[1])]
                return ["PROM", replica, packet.incarnation, names(known), list(t), ballot_number(ballot), held]
            case Accepted(known=known, t=t, ballot=ballot):
                return ["ACCD", replica, packet.incarnation, names(known), list(t), ballot_number(ballot)]
            case Rejected(known=known, t=t, ballot=ballot):
                return ["NACK", replica, packet.incarnation, names(known), list(t), ballot_number(ballot)]
            case Snapshot(known=known):
                state = from_state(self.replicas[replica].state)
                fields = [state[name] for name in ("wts", "val", "rts", "pend", "prom", "accd", "dec", "inc", "kinc")]
                golden = ["XREP", replica, packet.incarnation, names(known), fields, packet.asker]
                self.snapshots[json.dumps(golden)] = packet
                return golden
        raise AssertionError(packet)

    def step(self, step: dict[str, Any]) -> None:
        replica = step["replica"]
        if "RESTART" in step["in"]:
            self.restart(replica, step)
            return
        kind, number = step["from"]
        # The golden file numbers clients and replicas apart: a client is told from a replica by what it may send.
        effects = self.receive(replica, number, step["in"], of_client=kind == "c")
        sends = [effect for effect in effects if isinstance(effect, Send)]
        expected = [(out["to"][1], out["msg"]) for out in step["out"]]
        assert [(send.to[0], self.answer(replica, send.packet)) for send in sends] == expected, step

    def receive(self, replica: int, source: int, golden: list[Any], *, of_client: bool) -> Effects:
        del of_client
        return self.replicas[replica].receive(0, source, self.packet(golden))

    def restart(self, replica: int, step: dict[str, Any]) -> None:
        old = self.replicas[replica].state
        if "blank" in step["in"]:
            self.replicas[replica] = QuorumReplica(replica, self.placement, self.settings, lambda: 0.0, lost=step["inc"])
            return
        assert old.cap == step["cap"]
        state = old.without_read_timestamps()
        self.replicas[replica] = QuorumReplica(replica, self.placement, self.settings, lambda: 0.0, state)
        assert from_state(state)["rts"] == step["rts"]


def names(known: dict[int, int]) -> dict[str, int]:
    return {str(replica): incarnation for replica, incarnation in known.items()}


@pytest.mark.parametrize("name", [name for name in CRASH if name != "quorum_validity"])
def test_replicas_survive_crashes_step_by_step(name: str) -> None:
    script = CrashScript()
    for step in CRASH[name]["steps"]:
        script.step(step)
    assert [from_state(replica.state) for replica in script.replicas] == CRASH[name]["state"]


@pytest.mark.parametrize("golden", CRASH["quorum_validity"])
def test_a_vote_counts_unless_somebody_knows_a_later_life_of_the_voter(golden: dict[str, Any]) -> None:
    votes = {
        int(replica): Stance(incarnation, {int(other): known for other, known in others.items()})
        for replica, (incarnation, others) in golden["votes"].items()
    }
    assert sorted(valid(votes, {})) == golden["valid"]
