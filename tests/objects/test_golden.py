"""Table 1 of the paper and the scripts that show where its vectors fail, beside the corrected ones."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from quire.protocols.objects.activity import Activity
from quire.protocols.objects.declarations import ObjectType
from quire.protocols.objects.exchange import Exchange, ObjectOptions
from quire.protocols.objects.links import Link
from quire.protocols.objects.memory import Memory
from quire.protocols.objects.packets import Data, Instance, Mark, Past, Request, Response, Stamp
from quire.protocols.objects.vectors import delivered_floor, dense_key, precedes, prune
from tests.objects.printed import PrintedVectors

GOLDEN = json.loads((Path(__file__).parent.parent / "golden/og.json").read_text())
SCRIPTS = [name for name, part in GOLDEN.items() if isinstance(part, dict) and "script" in part]
COLLECTION = json.loads((Path(__file__).parent.parent / "golden/og_view_gc.json").read_text())

Pairs = set[tuple[str, str]]


class Corrected:
    """Follows a script with the vectors that the protocol uses."""

    def __init__(self, script: dict[str, Any], *, dense: bool = False) -> None:
        self.objects: list[str] = script["objects"]
        self.conflicts = {name: {tuple(pair) for pair in pairs} for name, pairs in script["conflicts"].items()}
        self.memories = {name: Memory(dense, None) for name in self.objects}
        self.dense = dense
        self.clocks = dict.fromkeys(self.objects, 0)
        self.instances: dict[str, Activity] = {}
        self.messages: dict[str, Request | Response] = {}
        self.past: dict[str, Past] = {}
        self.heads: dict[str, tuple[str, str, str, tuple[str, ...]]] = {}
        self.seen: dict[str, list[tuple[int, str, str, str]]] = {name: [] for name in self.objects}
        self.spans: dict[str, list[int]] = {}
        for time, (kind, *rest) in enumerate(script["events"]):
            getattr(self, f"on_{kind}")(time, *rest)

    def conflict(self, name: str, one: str, other: str) -> bool:
        return bool({(one, other), (other, one)} & self.conflicts.get(name, set()))

    def type_of(self, name: str) -> ObjectType:
        ops = sorted({op for pair in self.conflicts.get(name, ()) for op in pair})
        listed = {op: frozenset(other for other in ops if self.conflict(name, op, other)) for op in ops}
        return ObjectType({**{each.op: frozenset() for each in self.instances.values()}, **listed})

    def on_start(self, time: int, name: str, home: str, op: str, request: str | None = None) -> None:
        member = self.objects.index(home)
        instance, stamp = Instance(member, len(self.instances), home, member), Stamp(0, member)
        activity = Activity(instance, op, b"", (stamp, stamp), (instance,), "parallel", False, None, True, {})
        self.instances[name] = activity
        self.spans[name] = [time, 1 << 30]
        self.memories[home].start(activity, self.type_of(home))
        if request is not None:
            self.on_recv(time, request, name)

    def on_send(self, time: int, message: str, name: str, kind: str, op: str, to: list[str]) -> None:
        activity, home = self.instances[name], self.instances[name].instance.object
        self.clocks[home] += 1
        clock = self.clocks[home]
        sends, past = self.memories[home].send(activity, clock, ends=kind == "response")
        stamp = Stamp(clock, activity.instance.member)
        number = len(self.messages)
        if kind == "request":
            self.messages[message] = Request(number, clock, activity.instance, sends, past, (), stamp, tuple(to), op, b"")
        else:
            self.messages[message] = Response(number, clock, activity.instance, sends, past, activity.instance, "ok", b"")
        self.past[message] = dict(past)
        self.heads[message] = (name, kind, op, tuple(to))
        self.seen[home].append((time, "send", message, name))

    def on_recv(self, time: int, message: str, name: str) -> None:
        home = self.instances[name].instance.object
        self.clocks[home] = max(self.clocks[home], self.messages[message].clock)
        self.memories[home].receive(self.instances[name], self.messages[message])
        self.seen[home].append((time, "recv", message, name))

    def on_change(self, time: int, name: str) -> None:
        """Every send is numbered, so changes need no number."""

    def on_commit(self, time: int, name: str) -> None:
        self.spans[name][1] = time
        self.memories[self.instances[name].instance.object].end(self.instances[name])

    on_abort = on_commit

    def vector_order(self) -> Pairs:
        found = set()
        for second, past in self.past.items():
            for first, message in self.messages.items():
                sender = dense_key(message.sender) if self.dense else message.sender
                if first != second and precedes(sender, message.sends, past):
                    found.add((first, second))
        return found

    def defined_order(self) -> Pairs:
        """Significant precedence by its definition."""
        found: Pairs = set()
        for home, events in self.seen.items():
            for time, kind, second, name in events:
                for earlier, _, first, other in events:
                    started, ended = self.spans[name][0], self.spans[other][1]
                    ops = self.instances[other].op, self.instances[name].op
                    related = other == name or (self.conflict(home, *ops) and ended < started)
                    if kind == "send" and (earlier, first) != (time, second) and earlier < time and related:
                        found.add((first, second))
        while more := {(a, d) for a, b in found for c, d in found if b == c} - found:
            found |= more
        return found

    def by_number(self, printed: PrintedVectors) -> Pairs:
        """The paper's ordering rule (2): conflicting requests by the numbers of their instances."""
        found = set()
        for first, (_, kind, op, to) in self.heads.items():
            for second, (_, other_kind, other_op, other_to) in self.heads.items():
                common = [home for home in to if home in other_to and self.conflict(home, op, other_op)]
                if (
                    common
                    and kind == other_kind == "request"
                    and printed.messages[first].number < printed.messages[second].number
                ):
                    found.add((first, second))
        return found


def pairs(listed: list[list[str]]) -> Pairs:
    return {(first, second) for first, second in listed}


@pytest.mark.parametrize("name", SCRIPTS)
def test_the_printed_vectors_are_those_of_the_paper(name: str) -> None:
    part = GOLDEN[name]
    printed = PrintedVectors(part["script"]["objects"], part["receive_rule"])
    printed.follow(part["script"]["events"])
    for message, expected in part["messages"].items():
        found = printed.messages[message]
        assert printed.shown(found.number) == expected["tno"]
        assert list(map(printed.shown, found.vector)) == expected["V"]
        assert list(map(printed.shown, found.receipt)) == expected["RV"]
    order = {(a, b) for a in printed.messages for b in printed.messages if a != b and printed.precedes(a, b)}
    by_number = Corrected(part["script"]).by_number(printed)
    significant = pairs(part["significant_precedence"])
    assert order == pairs(part["paper_vector_order"])
    assert by_number == pairs(part["paper_rule2"])
    assert significant - order == pairs(part["under"])
    assert order - significant == pairs(part["over"])
    assert {(a, b) for a, b in order if (b, a) in by_number} == pairs(part["contradiction"])


@pytest.mark.parametrize("name", SCRIPTS)
def test_the_corrected_vectors_say_exactly_what_precedes_what(name: str) -> None:
    part = GOLDEN[name]
    corrected = Corrected(part["script"])
    names = {activity.instance: instance for instance, activity in corrected.instances.items()}
    for message, expected in part["messages"].items():
        found = corrected.messages[message]
        assert [found.clock, found.sender.object] == expected["ts"]
        assert [names[found.sender], found.sends] == [expected["inst"], expected["k"]]
        assert {names[instance]: mark.sends for instance, mark in corrected.past[message].items()} == expected["iv"]
    assert corrected.vector_order() == corrected.defined_order() == pairs(part["significant_precedence"])
    # The dense vectors miss nothing; what they add is the price of their size.
    assert Corrected(part["script"], dense=True).vector_order() >= pairs(part["significant_precedence"])


@pytest.mark.parametrize("name", ["O1_compatible_inherits", "O2_max_component"])
def test_dense_vectors_order_what_is_unrelated(name: str) -> None:
    over = Corrected(GOLDEN[name]["script"], dense=True).vector_order() - pairs(GOLDEN[name]["significant_precedence"])
    assert over == pairs(GOLDEN[name]["over"])


def test_table_1_lets_the_fourth_message_go_first() -> None:
    order = pairs(GOLDEN["table1"]["paper_vector_order"])
    assert order == {("m1", "m2"), ("m1", "m3"), ("m1", "m5"), ("m2", "m5"), ("m3", "m5")}
    assert not any("m4" in pair for pair in order)


@pytest.mark.parametrize("case", GOLDEN["stability"])
def test_a_message_is_stable_when_no_member_can_send_an_older_one(case: dict[str, Any]) -> None:
    exchange = Exchange(case["me"], case["n"], ObjectOptions())
    for member, known in case["known"].items():
        exchange.links[int(member)].known = known
    assert exchange.is_stable(Stamp(*case["ts"])) == case["stable"]


@pytest.mark.parametrize("case", GOLDEN["sequence"])
def test_messages_are_taken_in_sequence_and_gaps_are_known(case: dict[str, Any]) -> None:
    link = Link(1, window=100)
    assert link.received + 1 == case["rsq_start"]
    for arrival, accepted, gap in zip(case["arrivals"], case["accepted"], case["gap_after"], strict=True):
        sender = Instance(1, 0, "", 1)
        content = Response(arrival, arrival, sender, arrival, (), Instance(0, 0, "", 0), "ok", b"")
        packet = Data(arrival, 0, content)
        link.check(packet)
        assert [each.number for each in link.take(0, packet)] == accepted
        assert list(link.missing()) == gap


@pytest.mark.parametrize("case", COLLECTION["iv_prune"])
def test_what_is_delivered_everywhere_is_forgotten(case: dict[str, Any]) -> None:
    rows = {int(member): {int(source): clock for source, clock in row.items()} for member, row in case["rows"].items()}
    floor = {source: delivered_floor(rows, case["view"], source) for source in rows}

    def vector(marks: dict[str, list[int]]) -> Past:
        return {Instance(member, 0, name, member): Mark(sends, clock, False) for name, (sends, clock, member) in marks.items()}

    past = vector(case["iv"])
    prune(past, floor)
    assert past == vector(case["pruned"])
