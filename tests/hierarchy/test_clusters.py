"""The two orders inside a cluster: the specification's traces step by step, and the encodings of the matrix."""

from __future__ import annotations

from random import Random
from typing import Any

import msgspec
import pytest

from quire.protocols.clusters import encoding as tags
from quire.protocols.clusters.coordinator import Coordinated
from quire.protocols.clusters.matrix import ADAPTIVE, CHANGES, DENSE, Matrix
from tests.hierarchy.trees import GOLDEN
from tests.kit.effort import runs

RUNS = runs(200, 500)


@pytest.mark.parametrize(("encoding", "trace"), [(DENSE, "rst_trace_full"), (CHANGES, "rst_trace_diff")])
def test_a_trace_of_the_matrix_is_as_specified(encoding: str, trace: str) -> None:
    members: list[Matrix[str]] = [Matrix(me, 3, encoding) for me in range(3)]
    sent: dict[str, tuple[int, int, tags.Tag]] = {}
    for step in GOLDEN[trace]:
        if step["ev"] == "send":
            source, dest = step["src"], step["dst"]
            ((slots, code, tag),) = members[source].stamp([dest])
            assert slots == (dest,)
            assert tags.number_in(code, tag, source, dest) == step["sq"]
            assert tags.entry_count(code, tag) == step["entries"]
            assert carried(code, tag, source, dest) == step["tag"]
            sent[step["msg"]] = (source, code, tag)
        else:
            member = members[step["at"]]
            source, code, tag = sent[step["msg"]]
            assert member.receive(source, code, tag, step["msg"]) == step["delivered"]
            assert member.delivered == step["DELIV"]
            assert [member.sent[row * 3 : row * 3 + 3] for row in range(3)] == step["SENT"]
            assert [member.sent[row * 3 + member.me] for row in range(3)] == member.delivered


def carried(code: int, tag: tags.Tag, source: int, dest: int) -> list[list[int]]:
    """The entries as they were before the message was counted, which is how the specification writes them."""
    entries = [list(entry) for entry in tags.entries_in(code, tag)]
    if code == tags.DENSE:
        entries = [[row, col, value - ((row, col) == (source, dest))] for row, col, value in entries]
    return [entry for entry in entries if entry[2]]


def test_a_message_to_several_counts_as_sent_to_all_before_its_first_copy_leaves() -> None:
    for encoding in (DENSE, CHANGES, ADAPTIVE):
        asker, other, last = (Matrix[str](me, 3, encoding) for me in range(3))
        copies = {slot: one for one in asker.stamp([1, 2]) for slot in one.slots}
        assert other.receive(0, copies[1].encoding, copies[1].tag, "question") == ["question"]
        ((_, code, tag),) = other.stamp([2])
        assert last.receive(1, code, tag, "answer") == []
        assert last.receive(0, copies[2].encoding, copies[2].tag, "question") == ["question", "answer"]


def test_repeated_packets_are_dropped() -> None:
    sender, receiver = Matrix[str](0, 2), Matrix[str](1, 2)
    first, second = (sender.stamp([1])[0] for _ in range(2))
    assert receiver.receive(0, second.encoding, second.tag, "b") == []
    assert receiver.receive(0, second.encoding, second.tag, "b") == []
    assert receiver.receive(0, first.encoding, first.tag, "a") == ["a", "b"]
    assert receiver.receive(0, first.encoding, first.tag, "a") == []


def test_a_member_that_joins_has_sent_and_delivered_nothing() -> None:
    old, new = Matrix[str](0, 2, ADAPTIVE), Matrix[str](2, 3, ADAPTIVE)
    old.stamp([1])
    old.grow(3)
    assert old.sent == [0, 1, 0, 0, 0, 0, 0, 0, 0]
    ((_, code, tag),) = old.stamp([2])
    assert new.receive(0, code, tag, "welcome") == ["welcome"]
    narrow = Matrix[str](1, 2, ADAPTIVE)
    ((_, code, tag),) = new.stamp([1])
    assert narrow.receive(2, code, tag, "hello") == []
    assert narrow.size == 3


def random_exchange(random: Random, encoding: str) -> tuple[list[list[str]], list[tuple[int, int, tags.Tag, int, int]]]:
    """Messages between random members, to one or several, received in any order, some twice.

    Returns what each member delivered, and every packet: sender, encoding, tag, and how many entries had changed.
    """
    size = random.randint(2, 6)
    members = [Matrix[str](me, size, encoding) for me in range(size)]
    logs: list[list[str]] = [[] for _ in range(size)]
    flying: list[tuple[int, int, int, tags.Tag, str]] = []
    packets: list[tuple[int, int, tags.Tag, int, int]] = []
    for number in range(random.randint(5, 40)):
        source = random.randrange(size)
        slots = random.sample(range(size), random.randint(1, size) if random.random() < 0.2 else 1)
        if source in slots:
            logs[source].append(f"{number}")
        for to, code, tag in members[source].stamp(slots):
            packets.append((source, code, tag, size, max(members[source].sent)))
            flying += [(source, slot, code, tag, f"{number}") for slot in to]
        for _ in range(random.randint(0, 3)):
            if flying:
                step(random, members, logs, flying)
    while flying:
        step(random, members, logs, flying)
    assert not any(early for member in members for early in member.early)
    return logs, packets


def step(
    random: Random, members: list[Matrix[str]], logs: list[list[str]], flying: list[tuple[int, int, int, tags.Tag, str]]
) -> None:
    index = random.randrange(len(flying))
    source, slot, code, tag, item = flying[index]
    assert members[slot].is_possible(source, code, tag, members[slot].size)
    if random.random() > 0.1:
        del flying[index]
    logs[slot] += members[slot].receive(source, code, tag, item)


def test_all_encodings_deliver_the_same_on_random_runs() -> None:
    used: set[int] = set()
    for seed in range(RUNS):
        dense, _ = random_exchange(Random(seed), DENSE)
        changes, _ = random_exchange(Random(seed), CHANGES)
        adaptive, packets = random_exchange(Random(seed), ADAPTIVE)
        assert adaptive == changes == dense, f"seed {seed}"
        used |= {code for _, code, _, _, _ in packets}
    assert used == {tags.DENSE, tags.CHANGES, tags.BITMAP}


def test_the_adaptive_encoding_is_never_larger_than_the_smallest_and_never_wrong() -> None:
    for seed in range(RUNS):
        random = Random(seed)
        width = random.randint(1, 9)
        top = random.choice((1, 3, 127, 128, 300, 70_000, 1 << 33))
        matrix = [random.randint(0, top) for _ in range(width * width)]
        places = sorted(random.sample(range(width * width), random.randint(0, width * width)))
        entries = [(*divmod(place, width), matrix[place]) for place in places]
        number = random.randint(0, top)
        _, tag = tags.write_smallest(number, width, matrix, entries)
        options = (tuple(matrix), tags.write_changes(number, entries), tags.write_bitmap(number, width, entries))
        sizes = [len(msgspec.msgpack.encode(list(option))) for option in options]
        assert len(msgspec.msgpack.encode(list(tag))) <= min(sizes) + 4, "within the length of the list itself"
        assert tags.size_bytes(tag) == min(map(tags.size_bytes, options))
        for each, option in enumerate(options):
            assert tags.is_sound(each, option, width)
            read = list(tags.entries_in(each, option))
            assert read == (entries if each else [(*divmod(p, width), v) for p, v in enumerate(matrix) if v])
            assert not each or tags.number_in(each, option, 0, 0) == number
            assert list(tags.column_in(each, option, 0)) == [
                (row, value) for row, column, value in (read if each else _all(matrix, width)) if column == 0
            ]


def _all(matrix: list[int], width: int) -> list[tuple[int, int, int]]:
    return [(*divmod(place, width), value) for place, value in enumerate(matrix)]


@pytest.mark.parametrize(
    ("code", "tag"),
    [(0, ()), (0, (1, 2)), (0, (1,) * 16), (1, (0, 1)), (1, (0, 5, 0, 1)), (2, (0,)), (2, (0, 2, 3, 1)), (2, (0, 2, 64)),
     (3, (1,)), (1, (0, 0, 1, -1)), (2, (0, 9, 0)), (2, (0, 2, 127, 1, 1, 1, 1, 1, 1, 1))],
)  # fmt: skip
def test_a_tag_that_cannot_be_read_is_not_sound(code: int, tag: tags.Tag) -> None:
    assert not tags.is_sound(code, tag, 3)


def test_a_matrix_that_no_correct_member_sends_is_impossible() -> None:
    member: Matrix[Any] = Matrix(1, 2)
    assert member.is_possible(0, tags.DENSE, (0, 1, 0, 0), 2)
    assert not member.is_possible(0, tags.DENSE, (0, 0, 0, 0), 2), "it does not count itself"
    assert not member.is_possible(0, tags.DENSE, (0, 1, 1, 0), 2), "member 1 has sent nothing"
    assert not member.is_possible(0, tags.CHANGES, (0, 1, 0, 1), 2)
    assert not member.is_possible(1, tags.DENSE, (0, 1, 0, 0), 2), "nobody gets packets of its own"


def test_a_link_to_the_coordinator_keeps_its_order() -> None:
    sender, coordinator = Coordinated[str](1, 2, 0), Coordinated[str](0, 2, 0)
    numbers = [sender.number(0) for _ in range(3)]
    assert numbers == [0, 1, 2]
    assert coordinator.receive(1, 2, "c") == []
    assert coordinator.receive(1, 0, "a") == ["a"]
    assert coordinator.receive(1, 0, "a") == []
    assert coordinator.receive(1, 1, "b") == ["b", "c"]
    assert coordinator.coordinates
    assert not sender.coordinates
