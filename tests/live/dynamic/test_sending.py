"""Messages that are sent by a call each: their order and numbers, what else runs meanwhile, and where sending ends."""

from __future__ import annotations

import asyncio

import pytest

import quire
from quire.live.dynamic.submitting import SINGLE_BYTES_MAX, SINGLES_MAX, UNSETTLED_MESSAGES_MAX
from tests.live.dynamic.kit import WAYS, crash, founded, run
from tests.live.dynamic.test_states import Board


@pytest.mark.parametrize("way", WAYS)
def test_however_messages_are_sent_they_keep_their_order_and_numbers(way: str) -> None:
    async def main() -> None:
        async with founded(way) as members:
            group, changing = members["a"].group, bytearray(b"6")
            sent: list[bytes] = [b"0", b"1", b"2", b"3", b"4", bytes(SINGLE_BYTES_MAX + 1), b"6", b"7", b"8", b"9", b"10"]
            assert [await group.multicast(payload) for payload in sent[:2]] == [0, 1]
            assert await group.multicast_many(sent[2:4]) == 2
            delivered = group.submit(sent[4])
            assert await group.multicast(sent[5]) == 5
            assert await group.multicast(changing) == 6
            changing[:] = b"x"
            assert await group.multicast(sent[7]) == 7
            assert await asyncio.create_task(group.multicast(sent[8])) == 8
            both = await asyncio.gather(group.multicast(sent[9]), asyncio.wait_for(group.multicast(sent[10]), 1))
            assert list(both) == [9, 10]
            for member in members.values():
                await member.has(sent[-1])
                assert member.payloads == sent
            assert (await delivered).seq == 4
            assert group.accepted == group.acknowledged == len(sent)

    run(way, main())


def test_whoever_sends_without_a_pause_lets_others_run() -> None:
    async def main() -> None:
        turns = 0

        async def count() -> None:
            nonlocal turns
            while True:
                await asyncio.sleep(0)
                turns += 1

        async with founded("memory") as members:
            counting = asyncio.create_task(count())
            await asyncio.sleep(0)
            before = turns
            for _ in range(4 * SINGLES_MAX):
                await members["a"].group.multicast(b"")
            assert 3 <= turns - before < SINGLES_MAX
            counting.cancel()

    run("memory", main())


def test_whoever_waited_for_its_own_message_goes_on_before_those_that_read() -> None:
    async def main() -> None:
        async with founded("memory") as members:
            member = members["a"]
            for payload in (b"1", b"2"):
                await member.group.execute(payload)
                assert payload not in member.payloads
                await member.has(payload)

    run("memory", main())


def test_whoever_reaches_nobody_stops_sending_once_too_much_is_unsettled() -> None:
    async def main() -> None:
        async with founded("memory", delivery="uniform") as members:
            group = members["a"].group
            for name in "bc":
                await crash(members[name].group)
            with pytest.raises(quire.NoQuorum):
                await _send_for_ever(group)
            unsettled = group.accepted - group.acknowledged
            assert UNSETTLED_MESSAGES_MAX < unsettled <= UNSETTLED_MESSAGES_MAX + SINGLES_MAX

    run("memory", main())


async def _send_for_ever(group: quire.DynamicGroup) -> None:
    while True:
        await group.multicast(b"short")


@pytest.mark.parametrize("way", ["closes", "fails"])
def test_a_message_is_refused_from_the_moment_on_when_the_group_ends_here(way: str) -> None:
    async def main() -> None:
        async with founded("memory") as members:
            group = members["a"].group
            await group.multicast(b"first")
            ending = asyncio.create_task(group.close()) if way == "closes" else None
            if ending is None:
                group.failed(quire.GroupFailed("it is broken"))
            else:
                await asyncio.sleep(0)
            with pytest.raises(quire.GroupClosed if way == "closes" else quire.GroupFailed):
                await group.multicast(b"second")
            if ending is not None:
                await ending

    run("memory", main())


def test_messages_between_commands_stay_messages() -> None:
    async def main() -> None:
        board = Board()
        async with founded("memory", "a", state=board) as members:
            for payload in (b"one", b"two", b"three"):
                await members["a"].group.multicast(payload)
            await board.put("key", 1)
            await members["a"].has(b"three")
            assert members["a"].payloads == [b"one", b"two", b"three"]

    run("memory", main())
