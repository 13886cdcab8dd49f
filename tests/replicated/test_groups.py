"""Replicated objects in live groups, through memory and in virtual time, and over real sockets once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from functools import partial

import pytest

import quire
from quire.live import Group
from tests.kit.virtual_time import run_in_virtual_time
from tests.live.conftest import addresses as addresses
from tests.live.running import crash, run
from tests.replicated.kit import Board, Tape, all_in, member, with_boards


def test_a_command_is_executed_everywhere_and_returns_the_result_of_the_local_execution() -> None:
    async def use(boards: Sequence[Board], groups: Sequence[Group]) -> None:
        assert await boards[0].put("a", 1) == 1
        assert await boards[1].put("b", 2) == 2
        assert await boards[2].get("a") == 1
        assert boards[2].get.local("b") == 2

    with_boards(use)


def test_a_command_that_raises_raises_at_its_caller_and_changes_no_replica() -> None:
    async def use(boards: Sequence[Board], groups: Sequence[Group]) -> None:
        await boards[0].put("a", 1)
        with pytest.raises(ValueError, match="b may not be -1"):
            await boards[1].put("b", -1)
        with pytest.raises(KeyError):
            await boards[2].remove("nothing")
        assert await asyncio.gather(*(board.everything() for board in boards)) == [{"a": 1}] * 3
        assert [board.log for board in boards] == [["a"]] * 3
        assert [board.puts for board in boards] == [1, 1, 1]
        assert [board.lists for board in boards] == [{"a": [1]}] * 3

    with_boards(use)


def test_many_commands_at_once_leave_as_few_runs_and_are_executed_in_one_order() -> None:
    async def use(boards: Sequence[Board], groups: Sequence[Group]) -> None:
        calls = [board.add("n") for _ in range(300) for board in boards]
        assert sorted(await asyncio.gather(*calls)) == list(range(1, 901))
        packets = sum(group._driver.arrived for group in groups)
        assert packets < 100, "each command would have needed packets of its own"

    with_boards(use)


def test_wrong_arguments_are_refused_at_the_caller_and_nothing_is_sent() -> None:
    async def use(boards: Sequence[Board], groups: Sequence[Group]) -> None:
        with pytest.raises(quire.BadInput, match=r"Board\.put: Expected `int`, got `str` - at `value`"):
            await boards[0].put("a", "x")  # type: ignore[arg-type]
        with pytest.raises(TypeError, match=r"Board\.put: Missing required argument 'value'"):
            await boards[0].put("a")  # type: ignore[call-arg]
        with pytest.raises(quire.BadInput, match=r"Board\.put has an argument that cannot be encoded"):
            await boards[0].put("a", 2**70)
        with pytest.raises(quire.TooLarge):
            await boards[0].put("a" * (2 << 20), 1)
        assert groups[0]._outbox.accepted == 0

    with_boards(use)


def test_messages_of_the_application_are_iterated_and_commands_are_not() -> None:
    async def use(boards: Sequence[Board], groups: Sequence[Group]) -> None:
        await groups[0].multicast(b"one")
        await boards[0].put("a", 1)
        await groups[0].multicast_many([b"", b"three"])
        message = await groups[1].execute(b"four")
        assert message.payload == b"four"
        for group in groups:
            found = []
            async for each in group:
                found.append(each.payload)
                if each.payload == b"four":
                    break
            assert found == [b"one", b"", b"three", b"four"]

    with_boards(use)


def test_commands_are_executed_where_nobody_iterates_and_do_not_fill_the_inbox() -> None:
    async def main() -> None:
        boards = [Board(), Board()]
        async with all_in([member(me, board, 2, inbox_messages_max=10) for me, board in enumerate(boards)]) as groups:
            await asyncio.gather(*(boards[0].add("n") for _ in range(1000)))
            assert all(group._inbox.messages == 0 for group in groups)
            assert await boards[1].get("n") == 1000

    run_in_virtual_time(main())


def test_several_objects_of_a_group_are_told_apart_by_their_names() -> None:
    async def main() -> None:
        states: list[dict[str, quire.State]] = [{"one": Board(), "two": Board(), "tape": Tape()} for _ in range(2)]
        async with all_in([member(me, state, 2) for me, state in enumerate(states)]) as groups:
            one, two = states[0]["one"], states[0]["two"]
            assert isinstance(one, Board)
            assert isinstance(two, Board)
            assert await one.put("a", 1) == 1
            assert await two.put("b", 2) == 1
            assert await groups[1].apply(b"x", "tape") == 1
            assert await groups[0].apply(b"y", "tape") == 2
            with pytest.raises(ValueError, match="bad"):
                await groups[0].apply(b"bad", "tape")
            with pytest.raises(quire.BadInput, match=r"no state 'three', but 'one', 'two', 'tape'"):
                await groups[0].apply(b"x", "three")
            assert (await one.everything(), await two.everything()) == ({"a": 1}, {"b": 2})
        for state in states:
            assert isinstance(state["tape"], Tape)
            assert state["tape"].payloads == [b"x", b"y"]

    run_in_virtual_time(main())


def test_queries_that_come_together_share_a_round_and_those_that_come_meanwhile_share_the_next() -> None:
    async def use(boards: Sequence[Board], groups: Sequence[Group]) -> None:
        before = groups[0]._outbox.accepted
        first = [asyncio.ensure_future(boards[0].get("a")) for _ in range(50)]
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        second = [asyncio.ensure_future(boards[0].get("a")) for _ in range(50)]
        await asyncio.gather(*first, *second)
        assert groups[0]._outbox.accepted - before == 2

    with_boards(use)


def test_a_query_sees_what_anybody_has_done_before_it() -> None:
    async def use(boards: Sequence[Board], groups: Sequence[Group]) -> None:
        for number in range(20):
            await boards[number % 3].put("a", number)
            assert await boards[(number + 1) % 3].get("a") == number

    with_boards(use)


def test_what_a_caller_gets_is_a_copy() -> None:
    async def use(boards: Sequence[Board], groups: Sequence[Group]) -> None:
        await boards[0].put("a", 1)
        for found in (await boards[0].everything(), boards[0].everything.local()):
            found["a"] = 7
        assert boards[0].items == {"a": 1}

    with_boards(use)


def test_nothing_can_be_changed_outside_of_a_command() -> None:
    async def use(boards: Sequence[Board], groups: Sequence[Group]) -> None:
        with pytest.raises(quire.BadInput, match="outside a command"):
            boards[0].items["a"] = 1
        with pytest.raises(quire.BadInput, match="outside a command"):
            boards[0].puts = 3
        with pytest.raises(quire.BadInput, match="outside a command"):
            boards[0].log.append("a")

    with_boards(use)


def test_the_context_says_who_called_and_its_time_never_goes_back() -> None:
    async def main() -> None:
        boards = [Board(), Board()]
        groups = [member(me, board, 2) for me, board in enumerate(boards)]
        for group, time_ns in zip(groups, (5_000_000_000, 3_000_000_000), strict=True):
            assert group._commands is not None
            group._commands._wall_ns = partial(int, time_ns)
        async with all_in(groups):
            assert await boards[0].when() == (0, 5.0)
            assert await boards[1].when() == (1, 5.0)

    run_in_virtual_time(main())


def test_a_group_without_total_order_is_refused_a_state() -> None:
    with pytest.raises(quire.BadInput, match="a state needs a total order, which causal-vector does not keep"):
        quire.join("board", me=0, members=["127.0.0.1:7000"], order="causal", state=Board())
    with pytest.raises(quire.BadInput, match="a object cannot be a state: it needs the methods snapshot and restore"):
        quire.join("board", me=0, members=["127.0.0.1:7000"], order="total", state=object())  # type: ignore[call-overload]


@pytest.mark.parametrize("other", [None, Tape(), {"": Board(items={"a": 1})}])
def test_members_with_different_states_do_not_become_a_group(other: quire.State | None) -> None:
    async def main() -> None:
        groups = [member(0, Board(), 2), member(1, other, 2)]
        found = await asyncio.gather(*(group.__aenter__() for group in groups), return_exceptions=True)
        assert any(isinstance(each, quire.BadInput) and "has state" in str(each) for each in found)

    run_in_virtual_time(main())


def test_an_object_in_no_group_says_so_and_one_whose_group_has_ended_may_go_to_another() -> None:
    async def main() -> None:
        board = Board()
        with pytest.raises(quire.BadInput, match="not in a group"):
            await board.put("a", 1)
        for number in range(2):
            async with all_in([member(0, board, 1)]):
                await board.put("a", number)
                with pytest.raises(quire.BadInput, match="already in a group"):
                    member(0, board, 1)
        assert board.get.local("a") == 1

    run_in_virtual_time(main())


def test_whoever_waits_is_told_when_the_group_fails() -> None:
    async def main() -> None:
        busy, idle = Board(), Board()
        groups = [member(0, {"busy": busy, "idle": idle}, 2), member(1, {"busy": Board(), "idle": Board()}, 2)]
        await asyncio.gather(*(group.__aenter__() for group in groups))
        waiting = asyncio.ensure_future(idle.changed())
        await crash(groups[1])

        async def call() -> None:
            while True:
                await busy.put("a", 1)

        async def read() -> None:
            while True:
                await busy.get("a")

        for each in (call(), read(), waiting):
            with pytest.raises(quire.MemberUnreachable):
                await each
        with pytest.raises(quire.NotDelivered):
            await groups[0].close()

    run_in_virtual_time(main())


def test_a_command_that_is_not_declared_everywhere_ends_the_group_and_names_who_sent_it() -> None:
    async def main() -> None:
        boards = [Board(), Board()]
        groups = [member(me, board, 2) for me, board in enumerate(boards)]
        await asyncio.gather(*(group.__aenter__() for group in groups))
        # The first leaves at once, and the others together.
        first, *calls = boards[0].put("b", 1), groups[0].apply(b"\x91\xa4nope"), boards[0].put("a", 1)
        assert await first == 1
        for call in calls:
            with pytest.raises(quire.PeerMisbehaved, match="it called Board in a way that is not declared here"):
                await call
        assert boards[0].items == {"b": 1}, "nothing is executed after what could not be"
        for group in groups:
            with pytest.raises((quire.NotDelivered, quire.GroupFailed)):
                await group.close()

    run_in_virtual_time(main())


@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
def test_boards_are_kept_equal_over_real_sockets(addresses: Callable[[int], list[str]], loop: str) -> None:
    async def main() -> None:
        where = addresses(3)
        boards = [Board() for _ in where]
        groups = [
            quire.join("board", me=me, members=where, order="total", state=board, timeout_s=20)
            for me, board in enumerate(boards)
        ]
        async with AsyncExitStack() as stack:
            await asyncio.gather(*(stack.enter_async_context(group) for group in groups))
            await asyncio.gather(*(board.add("n") for _ in range(500) for board in boards))
            assert await asyncio.gather(*(board.get("n") for board in boards)) == [1500] * 3
            await asyncio.gather(*(group.close() for group in groups))
        assert len({board.digest() for board in boards}) == 1

    run(main(), loop, seconds=60)
