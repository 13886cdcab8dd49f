"""Quorums, the largest cut that has all its causes, and what is left of a view: against the specification's vectors, and
against what they are defined by, on every small case or on random ones.

The vectors count a member's messages from 1; here the first is number 0, which only their names have to be changed for.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations, product
from pathlib import Path
from typing import Any

import pytest

from quire.model.messages import make_run
from quire.model.packets import Packet
from quire.protocols import causal_vector, fifo
from quire.protocols.registry import create
from quire.protocols.single_phase.packets import Operations
from quire.views.closure import closed
from quire.views.packets import Data
from quire.views.view import Participant, Tie, View

GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "views_functions.json").read_text())
TIES: tuple[Tie, ...] = ("senior", "strict")


def view_of(weights: Sequence[int]) -> View:
    return View(1, tuple(Participant(str(rank), 1, weight) for rank, weight in enumerate(weights)), {})


def data(origin: int, first: int, causes: Sequence[int], count: int = 1) -> Data:
    return Data(1, fifo.Cast(make_run(origin, first, [b""] * count)), "s", first + 1, tuple(causes), 0, None)


class TestQuorum:
    @pytest.mark.parametrize("case", GOLDEN["quorum"])
    def test_equals_the_specification(self, case: dict[str, Any]) -> None:
        assert view_of(case["weights"]).is_quorum([str(name) for name in case["names"]], case["tie"]) == case["quorum"]

    def test_any_two_quorums_have_a_member_in_common(self) -> None:
        checked = 0
        for members in range(1, 6):
            names = [str(rank) for rank in range(members)]
            parts = [part for size in range(members + 1) for part in combinations(names, size)]
            for weights, tie in product(product(range(4), repeat=members), TIES):
                if not any(weights):
                    continue
                view = view_of(weights)
                quorums = {frozenset(part) for part in parts if view.is_quorum(part, tie)}
                # Two that do not meet: the one lies in what the other leaves over, which then is a quorum, too.
                assert not any(frozenset(names) - quorum in quorums for quorum in quorums), (weights, tie)
                assert frozenset(names) in quorums
                checked += 1
        assert checked == 2 * (4 + 16 + 64 + 256 + 1024 - 5)


def causes_of(members: int, origin: int, number: int, others: Mapping[str, int]) -> list[int]:
    return [number if rank == origin else others.get(str(rank), 0) for rank in range(members)]


def is_closed(cut: Sequence[int], runs: Sequence[Data]) -> bool:
    return all(
        all(count <= cut[member] for member, count in enumerate(one.causes))
        for one in runs
        if one.run.end <= cut[one.run.origin]
    )


def cuts_between_runs(longest: Sequence[int], runs: Sequence[Data]) -> Iterator[tuple[int, ...]]:
    ends = [{0} | {one.run.end for one in runs if one.run.origin == rank} for rank in range(len(longest))]
    return product(*(sorted(end) for end in ends))


class TestClosure:
    @pytest.mark.parametrize("case", GOLDEN["closure"])
    def test_equals_the_specification(self, case: dict[str, Any]) -> None:
        members = len(case["longest"])
        runs = [
            data(int(origin), number, causes_of(members, int(origin), number, others))
            for origin, messages in case["deps"].items()
            for number, others in enumerate(messages)
        ]
        longest = [case["longest"][str(rank)] for rank in range(members)]
        assert list(closed(longest, runs)) == [case["closed"][str(rank)] for rank in range(members)]

    def test_is_the_largest_cut_between_runs_that_has_all_its_causes(self) -> None:
        choose = random.Random(1)
        shortened = 0
        for _ in range(2000):
            members = choose.randint(1, 4)
            runs, longest = [], [0] * members
            for rank in range(members):
                for _ in range(choose.randint(0, 3)):
                    causes = [choose.choice((0, 0, 0, 1, 2, 3)) for _ in range(members)]
                    causes[rank] = longest[rank]
                    runs.append(data(rank, longest[rank], causes, count := choose.randint(1, 2)))
                    longest[rank] += count
            found = closed(longest, choose.sample(runs, len(runs)))
            candidates = [cut for cut in cuts_between_runs(longest, runs) if is_closed(cut, runs)]
            assert found == tuple(map(max, zip(*candidates, strict=True)))
            assert found in candidates
            shortened += found != tuple(longest)
        assert shortened > 500


PROTOCOLS = {"single-phase": "single-phase", "causal": "causal-vector", "fifo": "fifo"}
"""What the vectors and what the library call them."""


def packet_of(protocol: str, members: int, message: Mapping[str, Any]) -> Packet:
    run = make_run(message["origin"], message["seq"] - 1, [b""])
    if protocol == "single-phase":
        return Operations(message["ts"], run)
    if protocol == "causal":
        return causal_vector.Cast(run, tuple(message["deps"].get(str(rank), 0) for rank in range(members)))
    return fifo.Cast(run)


def remainder(protocol: str, members: int, packets: Sequence[Packet], delivered: Sequence[int]) -> list[tuple[int, int]]:
    left = create(PROTOCOLS[protocol], 0, members, {}).remainder(packets, delivered)
    return [(one.run.origin, number) for one in left for number in range(one.run.first, one.run.end)]


class TestRemainder:
    @pytest.mark.parametrize("protocol", PROTOCOLS)
    @pytest.mark.parametrize("case", GOLDEN["remainder"])
    def test_equals_the_specification(self, protocol: str, case: dict[str, Any]) -> None:
        members = len(case["order"])
        packets = [packet_of(protocol, members, message) for message in case["messages"]]
        left = remainder(protocol, members, packets, [0] * members)
        assert [[origin, number + 1] for origin, number in left] == case[protocol]

    @pytest.mark.parametrize("protocol", PROTOCOLS)
    def test_depends_on_the_set_only_and_keeps_causes_first(self, protocol: str) -> None:
        for seed in range(300):
            choose = random.Random(seed)
            members = choose.randint(1, 4)
            messages = history(choose, members)
            packets = [packet_of(protocol, members, message) for message in messages]
            left = remainder(protocol, members, packets, [0] * members)
            assert sorted(left) == sorted((message["origin"], message["seq"] - 1) for message in messages)
            shuffled = choose.sample(packets, len(packets))
            assert remainder(protocol, members, shuffled, [0] * members) == left
            if protocol != "fifo":
                assert_causes_first(messages, left)
            # A member that has delivered the beginning of it delivers the rest.
            known = choose.randint(0, len(left))
            delivered = [sum(origin == rank for origin, _ in left[:known]) for rank in range(members)]
            assert remainder(protocol, members, shuffled, delivered) == left[known:]


def history(choose: random.Random, members: int) -> list[dict[str, Any]]:
    """Messages of members that deliver some of each other's in between, with the times and causes that follow."""
    delivered = [[0] * members for _ in range(members)]
    clocks = [0] * members
    sent: list[list[dict[str, Any]]] = [[] for _ in range(members)]
    for _ in range(choose.randint(0, 10)):
        me = choose.randrange(members)
        for other in range(members):
            for message in sent[other][delivered[me][other] : delivered[me][other] + choose.randint(0, 2)]:
                if all(delivered[me][int(rank)] >= count for rank, count in message["deps"].items() if int(rank) != other):
                    delivered[me][other] += 1
                    clocks[me] = max(clocks[me], message["ts"])
        clocks[me] += 1
        delivered[me][me] = len(sent[me])
        deps = {str(rank): count for rank, count in enumerate(delivered[me])}
        sent[me].append({"origin": me, "seq": len(sent[me]) + 1, "ts": clocks[me], "deps": deps})
    return [message for messages in sent for message in messages]


def assert_causes_first(messages: Sequence[dict[str, Any]], left: Sequence[tuple[int, int]]) -> None:
    place = {identity: index for index, identity in enumerate(left)}
    for message in messages:
        for rank, count in message["deps"].items():
            for number in range(count):
                assert place[int(rank), number] < place[message["origin"], message["seq"] - 1]
