"""Whatever a command changes before it fails is taken back, and a snapshot shows one moment, whatever happens meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from itertools import islice
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import quire
from quire.replicated.machine import Machine
from tests.replicated.kit import Board, Tape


class Item(msgspec.Struct):
    """It can be changed in place."""

    name: str = ""
    marks: list[int] = []


class Mixed(quire.Replicated):
    numbers: dict[str, int]
    lists: dict[str, list[int]]
    items: dict[int, Item]
    words: list[str]
    things: list[Item]
    item: Item
    total: int
    ratio: float


KEYS = st.sampled_from("abcd")
NUMBERS = st.integers(-5, 5)
Step = Callable[[Mixed], object]


def try_to(step: Step) -> Step:
    """What a command does that catches what goes wrong in between."""

    def tried(mixed: Mixed) -> None:
        with suppress(KeyError, IndexError, ValueError):
            step(mixed)

    return tried


def append_to(lists: Iterable[list[int]], number: int) -> None:
    for each in lists:
        each.append(number)


def steps() -> st.SearchStrategy[Step]:
    """Everything that can be done to the fields."""

    def step(make: Callable[[str, int, str, int], Step]) -> st.SearchStrategy[Step]:
        return st.builds(make, KEYS, NUMBERS, KEYS, NUMBERS).map(try_to)

    return st.one_of(
        step(lambda k, n, _, __: lambda m: m.numbers.__setitem__(k, n)),
        step(lambda k, _, __, ___: lambda m: m.numbers.__delitem__(k)),
        step(lambda k, n, _, __: lambda m: m.numbers.pop(k, n)),
        step(lambda _, __, ___, ____: lambda m: m.numbers.popitem()),
        step(lambda k, n, _, __: lambda m: m.numbers.setdefault(k, n)),
        step(lambda k, n, j, o: lambda m: m.numbers.update({k: n}, **{j: o})),
        step(lambda _, __, ___, ____: lambda m: m.numbers.clear()),
        step(lambda k, n, _, __: lambda m: m.numbers.__ior__({k: n})),
        step(lambda k, n, _, __: lambda m: setattr(m, "numbers", {k: n})),
        step(lambda k, n, _, __: lambda m: m.lists.setdefault(k, []).append(n)),
        step(lambda k, n, _, __: lambda m: m.lists[k].insert(0, n)),
        step(lambda k, n, _, __: lambda m: m.lists.pop(k).append(n)),
        step(lambda _, n, __, ___: lambda m: append_to(m.lists.values(), n)),
        step(lambda _, n, __, ___: lambda m: append_to((each for _, each in m.lists.items()), n)),
        step(lambda k, n, _, __: lambda m: dict(m.lists)[k].append(n)),
        step(lambda k, n, _, __: lambda m: (m.lists | {"z": [0]})[k].append(n)),
        step(lambda k, n, _, __: lambda m: m.lists.copy()[k].append(n)),
        step(lambda k, n, _, __: lambda m: {**m.lists}[k].append(n)),
        step(lambda _, __, ___, ____: lambda m: m.lists.clear()),
        step(lambda k, n, _, o: lambda m: m.items.setdefault(n, Item(k)).marks.append(o)),
        step(lambda k, n, _, __: lambda m: setattr(m.items[n], "name", k)),
        step(lambda k, _, __, ___: lambda m: m.words.append(k)),
        step(lambda k, _, j, __: lambda m: m.words.extend([k, j])),
        step(lambda k, n, _, __: lambda m: m.words.__setitem__(n, k)),
        step(lambda k, n, j, _: lambda m: m.words.__setitem__(slice(n, n + 2), [k, j])),
        step(lambda _, n, __, ___: lambda m: m.words.pop(n)),
        step(lambda _, __, ___, ____: lambda m: m.words.pop()),
        step(lambda _, n, __, ___: lambda m: m.words.__delitem__(n)),
        step(lambda k, _, __, ___: lambda m: m.words.remove(k)),
        step(lambda k, n, _, __: lambda m: m.words.insert(n, k)),
        step(lambda _, __, ___, ____: lambda m: m.words.sort()),
        step(lambda _, __, ___, ____: lambda m: m.words.reverse()),
        step(lambda _, __, ___, ____: lambda m: m.words.clear()),
        step(lambda k, _, __, ___: lambda m: m.words.__iadd__([k])),
        step(lambda _, __, ___, ____: lambda m: m.words.__imul__(2) if len(m.words) < 50 else None),
        step(lambda k, n, _, __: lambda m: m.things.append(Item(k, [n]))),
        step(lambda k, n, _, __: lambda m: setattr(m.things[n], "name", k)),
        step(lambda k, n, _, __: lambda m: m.item.marks.append(n)),
        step(lambda k, _, __, ___: lambda m: setattr(m, "item", Item(k))),
        step(lambda _, n, __, ___: lambda m: setattr(m, "total", m.total + n)),
        step(lambda _, n, __, ___: lambda m: setattr(m, "ratio", n)),
    )


def run_steps(mixed: Mixed, todo: list[Step], fail: bool) -> None:
    for step in todo:
        step(mixed)
    if fail:
        raise RuntimeError("failed")


def shown(mixed: Mixed) -> dict[str, Any]:
    """What the fields hold, without regard to the order of dictionaries."""
    return {name: msgspec.to_builtins(vars(mixed)[name]) for name in mixed._fields}


def in_order(mixed: Mixed) -> list[Any]:
    return [list(vars(mixed)[name]) for name in ("numbers", "lists", "items")]


@settings(max_examples=300)
@given(st.lists(steps(), max_size=12), st.lists(steps(), max_size=12), st.lists(steps(), max_size=12))
def test_a_failed_command_leaves_everything_as_it_was(before: list[Step], failing: list[Step], after: list[Step]) -> None:
    mixed, plain = Mixed(), Mixed()
    for each in (mixed, plain):
        each._change(run_steps, before, False)
    with pytest.raises(RuntimeError):
        mixed._change(run_steps, failing, True)
    assert shown(mixed) == shown(plain)
    if in_order(mixed) == in_order(plain):  # What was removed and put back is last; other replicas have it there too.
        for each in (mixed, plain):
            each._change(run_steps, after, False)
        assert shown(mixed) == shown(plain)


@settings(max_examples=300)
@given(st.lists(st.tuples(st.lists(steps(), max_size=6), st.booleans()), max_size=8), st.integers(0, 8), st.randoms())
def test_a_snapshot_shows_the_moment_in_which_it_was_begun(
    commands: list[tuple[list[Step], bool]], begin: int, random: Any
) -> None:
    mixed = Mixed()
    chunks: Iterator[bytes] = iter(())
    read: list[bytes] = []
    expected: tuple[Any, ...] = ()
    for number, (todo, fail) in enumerate([*commands, ([], False)]):
        if number == min(begin, len(commands)):
            expected = (shown(mixed), in_order(mixed), mixed.digest())
            chunks = mixed.snapshot()
        try:
            mixed._change(run_steps, todo, fail)
        except RuntimeError:
            assert fail
        read += islice(chunks, random.randint(0, 2))
    read += chunks
    assert mixed._ledger.watchers == []
    other = Mixed(numbers={"z": 1}, words=["z"], total=9)
    other.restore(read)
    assert (shown(other), in_order(other), other.digest()) == expected


@pytest.mark.parametrize(
    "get",
    [
        lambda lists: lists["a"],
        lambda lists: lists.get("a"),
        lambda lists: lists.setdefault("a", []),
        lambda lists: lists.pop("a"),
        lambda lists: lists.popitem()[1],
        lambda lists: next(iter(lists.values())),
        lambda lists: next(iter(lists.items()))[1],
        lambda lists: lists.copy()["a"],
        lambda lists: dict(lists)["a"],
        lambda lists: {**lists}["a"],
        lambda lists: (lists | {})["a"],
        lambda lists: ({} | lists)["a"],
    ],
)
def test_a_value_that_is_changed_in_place_is_as_before_however_the_command_got_it(get: Callable[[Any], list[int]]) -> None:
    mixed = Mixed(lists={"a": [1]})
    chunks = mixed.snapshot()

    def change(it: Mixed, fail: bool) -> None:
        get(it.lists).append(2)
        if fail:
            raise RuntimeError("failed")

    with pytest.raises(RuntimeError):
        mixed._change(change, True)
    assert mixed.lists == {"a": [1]}
    mixed._change(change, False)
    other = Mixed()
    other.restore(chunks)
    assert other.lists == {"a": [1]}


def test_what_changes_twice_before_its_chunk_is_read_is_shown_as_it_was() -> None:
    board = Board(items={"a": 1, "b": 2})
    chunks = board.snapshot()
    for value in (3, 4):
        board._change(lambda it, value: it.items.__setitem__("a", value), value)
    board._change(lambda it: it.items.pop("b"))
    other = Board()
    other.restore(chunks)
    assert (other.items, board.items) == ({"a": 1, "b": 2}, {"a": 4})


def test_a_large_dictionary_is_read_in_chunks_of_bounded_size_while_it_changes() -> None:
    board = Board(items={f"key {number}": number for number in range(50_000)})
    before = board.digest()
    chunks = board.snapshot()
    read = [next(chunks) for _ in range(5)]
    board._change(lambda it: it.items.clear())
    board._change(lambda it: it.items.update({"key 7": 0}))
    read += chunks
    assert len(read) > 10
    assert max(map(len, read)) < 1 << 17
    other = Board()
    other.restore(read)
    assert other.digest() == before != board.digest()


def test_a_snapshot_that_nobody_reads_to_its_end_is_forgotten() -> None:
    board = Board(items={f"key {number}": number for number in range(1000)})
    abandoned, unread = board.snapshot(), board.snapshot()
    next(abandoned)
    assert len(board._ledger.watchers) == 2
    del abandoned, unread
    assert board._ledger.watchers == []


@pytest.mark.parametrize("spoil", ["cut", "twice", "bytes", "field", "type"])
def test_a_damaged_snapshot_is_refused_and_changes_nothing(spoil: str) -> None:
    board = Board(items={"a": 1})
    chunks = list(Board(items={"b": 2}).snapshot())
    match spoil:
        case "cut":
            chunks.pop()
        case "twice":
            chunks.append(chunks[0])
        case "bytes":
            chunks[0] = chunks[0][:-1]
        case "field":
            chunks[0] = msgspec.msgpack.encode(["nothing", []])
        case "type":
            chunks[0] = msgspec.msgpack.encode(["items", [["b", "x"]]])
    before = board.digest()
    with pytest.raises(quire.BadInput, match="a snapshot of Board"):
        board.restore(chunks)
    assert board.digest() == before


def test_a_field_that_was_declared_later_begins_with_its_default() -> None:
    class Older(quire.Replicated):
        items: dict[str, int]

    class Newer(quire.Replicated):
        items: dict[str, int]
        level: int = 3

    newer = Newer(level=8)
    newer.restore(Older(items={"a": 1}).snapshot())
    assert (newer.items, newer.level) == ({"a": 1}, 3)


def test_everything_of_a_member_is_restored_with_the_time_of_its_last_command() -> None:
    def machine() -> tuple[Machine, Board, Tape]:
        board, tape = Board(), Tape()
        return Machine({"board": board, "tape": tape}), board, tape

    one, board, _ = machine()
    one.execute(0, 0, one.command("board", board._commands["put"].encode(("a", 1), {}), 5_000_000_000))
    one.execute(1, 0, one.command("tape", b"x", 4_000_000_000))
    two, copy, tape = machine()
    two.restore(one.snapshot())
    assert (copy.items, tape.payloads, two.latest_ns) == ({"a": 1}, [b"x"], 5_000_000_000)
    assert two.beginning() == one.beginning() != machine()[0].beginning()
    with pytest.raises(quire.BadInput, match="is not complete"):
        two.restore(list(one.snapshot())[:-1])
    assert list(two.snapshot()) == list(one.snapshot())


def test_what_is_to_be_done_when_a_member_is_gone_is_done_like_a_command() -> None:
    class Seats(quire.Replicated):
        taken: dict[int, str]

        def member_left(self, member: int) -> None:
            del self.taken[member]

    seats, lock = Seats(taken={1: "a", 2: "b"}), quire.Lock(lease=quire.Lease(1, 1, 100.0))
    machine = Machine({"seats": seats, "lock": lock})
    seats._ledger.shut = True
    machine.member_left(1)
    assert (seats.taken, lock.lease) == ({2: "b"}, None)
    with pytest.raises(KeyError):
        machine.member_left(1)
    assert seats.taken == {2: "b"}
