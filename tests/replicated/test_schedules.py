"""Random schedules of whole groups: all replicas are equal, results are those of the delivered order, and histories are
linearisable."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from typing import Any, NamedTuple

import pytest

from quire.live.network.transports.memory import MemoryEnd
from quire.replicated.machine import Machine
from tests.kit.effort import runs
from tests.kit.virtual_time import run_in_virtual_time
from tests.replicated.kit import Board, all_in, member

MEMBERS = 3
DELAY_S = 0.02


class Operation(NamedTuple):
    """What a client did, from when to when, and what came of it."""

    begin: float
    end: float
    name: str
    arguments: tuple[Any, ...]
    result: Any


def outcome(board: Board, name: str, arguments: tuple[Any, ...]) -> Any:
    """What one copy answers, alone."""
    if name in ("get", "local"):
        return board.get.local(*arguments)
    try:
        context: Any = None
        return board.apply(board._commands[name].encode(arguments, {}), context)
    except (ValueError, KeyError) as error:
        return repr(error)


class Followed(Machine):
    """Keeps the order in which commands are executed, and what came of each."""

    def __init__(self, machine: Machine, order: list[tuple[int, int, bytes, Any]]) -> None:
        super().__init__(machine.states)
        self._order = order

    def execute(self, member: int, number: int, payload: bytes) -> Any:
        try:
            result = super().execute(member, number, payload)
        except (ValueError, KeyError) as error:
            self._order.append((member, number, payload, repr(error)))
            raise
        self._order.append((member, number, payload, result))
        return result


def is_linearisable(history: Sequence[Operation]) -> bool:
    """Whether there is an order of the operations, each at a moment while it was under way, in which one copy gives the same
    results. The search of Wing and Gong: take any operation that began before every other one that is left has ended, and
    look at no pair of what is left and what the copy holds twice."""
    tried: set[tuple[int, str]] = set()
    everything = (1 << len(history)) - 1

    def search(done: int, board: Board) -> bool:
        if done == everything:
            return True
        if (done, board.digest()) in tried:
            return False
        tried.add((done, board.digest()))
        left = [number for number in range(len(history)) if not done >> number & 1]
        first_end = min(history[number].end for number in left)
        for number in left:
            operation = history[number]
            if operation.begin <= first_end:
                copy = Board()
                copy.restore(board.snapshot())
                if outcome(copy, operation.name, operation.arguments) == operation.result and search(done | 1 << number, copy):
                    return True
        return False

    return search(0, Board())


async def client(board: Board, dice: random.Random, history: list[Operation], reads: str) -> None:
    loop = asyncio.get_running_loop()
    for _ in range(dice.randint(2, 4)):
        await asyncio.sleep(dice.uniform(0, DELAY_S))
        key = dice.choice("ab")
        name = dice.choice(("put", "add", "remove", reads, reads, reads))
        value = dice.randint(-1, 3)
        arguments: tuple[Any, ...] = (key, value) if name in ("put", "add") else (key,)
        begin = loop.time()
        result: Any
        try:
            result = board.get.local(key) if name == "local" else await getattr(board, name)(*arguments)
        except (ValueError, KeyError) as error:
            result = repr(error)
        history.append(Operation(begin, loop.time(), name, arguments, result))


def run_schedule(seed: int, monkeypatch: pytest.MonkeyPatch, reads: str = "get") -> list[Operation]:
    """A group of boards under a random load, over links that each take their time."""
    dice = random.Random(seed)

    def schedule(end: MemoryEnd) -> None:
        if end._protocol is not None and end._arrived and not end._scheduled:
            end._scheduled = True
            asyncio.get_running_loop().call_later(dice.uniform(0, DELAY_S), end._hand_over)

    monkeypatch.setattr(MemoryEnd, "_schedule", schedule)
    orders: list[list[tuple[int, int, bytes, Any]]] = [[] for _ in range(MEMBERS)]

    async def main() -> list[Operation]:
        boards = [Board() for _ in range(MEMBERS)]
        groups = [member(me, board) for me, board in enumerate(boards)]
        for group, order in zip(groups, orders, strict=True):
            assert group._commands is not None
            group._commands.machine = Followed(group._commands.machine, order)
        history: list[Operation] = []
        async with all_in(groups):
            await asyncio.gather(*(client(board, dice, history, reads) for board in boards for _ in range(2)))
        assert len({board.digest() for board in boards}) == 1
        assert orders[0] == orders[1] == orders[2]
        alone = Machine(Board())
        for origin, number, payload, result in orders[0]:
            again: Any
            try:
                again = alone.execute(origin, number, payload)
            except (ValueError, KeyError) as error:
                again = repr(error)
            assert again == result
        commands = [each.result for each in history if each.name not in ("get", "local")]
        assert sorted(map(repr, commands)) == sorted(repr(result) for *_, result in orders[0])
        return history

    return run_in_virtual_time(main())


@pytest.mark.parametrize("seed", range(runs(40, 1000)))
def test_replicas_are_equal_and_histories_linearisable(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    history = run_schedule(seed, monkeypatch)
    assert is_linearisable(history), history


def test_local_answers_may_be_old_and_the_search_notices(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not all(is_linearisable(run_schedule(seed, monkeypatch, "local")) for seed in range(40))


def test_the_search_tells_histories_apart() -> None:
    put = Operation(0, 1, "put", ("a", 1), 1)
    assert is_linearisable([put, Operation(0.5, 2, "get", ("a",), None)]), "while the two overlap, either may come first"
    assert is_linearisable([put, Operation(0.5, 2, "get", ("a",), 1)])
    assert not is_linearisable([put, Operation(1.5, 2, "get", ("a",), None)]), "what has ended is seen"
    early, late = Operation(0.2, 0.4, "get", ("a",), 1), Operation(0.5, 0.9, "get", ("a",), None)
    assert not is_linearisable([put, early, late]), "what one has seen the next one sees"
