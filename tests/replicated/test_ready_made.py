"""The ready-made objects, in groups in virtual time: what they promise when all goes well, and when holders fall silent."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from typing import Any, TypeVar

import pytest

import quire
from tests.kit.virtual_time import VirtualTimeLoop, run_in_virtual_time
from tests.replicated.kit import all_in, member

R = TypeVar("R", bound=quire.Replicated)


def with_copies(make: Callable[[], R], use: Callable[[Sequence[R]], Coroutine[Any, Any, None]], members: int = 3) -> None:
    """Use a group of these objects, whose clock is the virtual one; afterwards all copies are equal."""

    async def main() -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualTimeLoop)
        copies = [make() for _ in range(members)]
        groups = [member(me, copy, members) for me, copy in enumerate(copies)]
        for group in groups:
            assert group._commands is not None
            group._commands._wall_ns = loop.wall_ns
        async with all_in(groups):
            await use(copies)
        assert len({copy.digest() for copy in copies}) == 1

    run_in_virtual_time(main())


def test_a_dictionary_does_what_dictionaries_do() -> None:
    async def use(copies: Sequence[quire.ReplicatedDict[str, int]]) -> None:
        one, two, three = copies
        await one.set("a", 1)
        assert await two.setdefault("a", 5) == 1
        assert await two.setdefault("b", 2) == 2
        assert await three.replace("a", 1, 10)
        assert not await three.replace("a", 1, 11)
        assert await three.replace("c", None, 3)
        await one.update({"d": 4, "e": 5})
        assert await two.pop("d") == 4
        with pytest.raises(KeyError):
            await two.pop("d")
        assert (await one.discard("e"), await one.discard("e")) == (True, False)
        assert await two.items() == {"a": 10, "b": 2, "c": 3}
        assert (await three.get("a"), await three.get("z")) == (10, None)
        assert (await one.contains("b"), await one.size()) == (True, 3)
        await one.clear()
        assert await three.size() == 0

    with_copies(quire.ReplicatedDict[str, int], use)


def test_a_counter_gives_every_caller_a_number_of_its_own() -> None:
    async def use(copies: Sequence[quire.ReplicatedCounter]) -> None:
        numbers = await asyncio.gather(*(copy.add() for _ in range(100) for copy in copies))
        assert sorted(numbers) == list(range(1, 301))
        assert await copies[0].reset(5) == 300
        assert await copies[1].add(-7) == -2
        await copies[1].reset(2**63)
        with pytest.raises(OverflowError, match="must fit into 64 bits"):
            await copies[1].add(2**63)
        assert await copies[2].get() == 2**63

    with_copies(quire.ReplicatedCounter, use)


def test_each_item_of_a_queue_goes_to_one_taker_and_the_oldest_first() -> None:
    async def use(copies: Sequence[quire.ReplicatedQueue[int]]) -> None:
        got: list[list[int]] = [[] for _ in range(6)]
        taken: asyncio.Queue[int] = asyncio.Queue()

        async def take(copy: quire.ReplicatedQueue[int], mine: list[int]) -> None:
            while True:
                mine.append(await copy.get())
                taken.put_nowait(mine[-1])

        takers = [asyncio.ensure_future(take(copies[number % 3], mine)) for number, mine in enumerate(got)]
        for number in range(0, 60, 3):
            await asyncio.gather(*(copy.put(number + me) for me, copy in enumerate(copies)))
        assert sorted([await taken.get() for _ in range(60)]) == list(range(60))
        assert all([item // 3 for item in mine] == sorted(item // 3 for item in mine) for mine in got)
        for taker in takers:
            taker.cancel()
        await asyncio.gather(*takers, return_exceptions=True)
        assert await copies[1].size() == 0
        await copies[0].put(1)
        await copies[1].put(2)
        assert await copies[2].take(5) == [1, 2]
        assert await copies[2].take() == []

    with_copies(quire.ReplicatedQueue[int], use)


def test_an_item_whose_taker_was_cancelled_is_first_again() -> None:
    async def use(copies: Sequence[quire.ReplicatedQueue[str]]) -> None:
        for item in ("a", "b"):
            await copies[0].put(item)
        await copies[1].size()
        asked = asyncio.ensure_future(copies[1].get())
        while not copies[1]._asking:
            await asyncio.sleep(0)
        asked.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asked
        for _ in range(2):  # The command is executed, and then what it took is given back.
            await copies[1].size()
        await copies[1].put("c")
        assert await copies[2].take(3) == ["a", "b", "c"]

    with_copies(quire.ReplicatedQueue[str], use)


def test_one_of_all_holds_a_lock_and_tokens_only_grow() -> None:
    async def use(copies: Sequence[quire.Lock]) -> None:
        inside, tokens = 0, list[int]()

        async def work(lock: quire.Lock) -> None:
            nonlocal inside
            for _ in range(3):
                async with lock.hold(5) as lease:
                    inside += 1
                    assert inside == 1
                    tokens.append(lease.token)
                    await asyncio.sleep(7)  # It is renewed meanwhile.
                    inside -= 1

        await asyncio.gather(*(work(copy) for copy in copies for _ in range(2)))
        assert tokens == list(range(1, 19))
        assert await copies[0].holder() is None

    with_copies(quire.Lock, use)


def test_a_lock_that_is_not_renewed_goes_to_the_next_when_its_lease_has_expired() -> None:
    async def use(copies: Sequence[quire.Lock]) -> None:
        loop = asyncio.get_running_loop()
        first = await copies[0].acquire(10)
        assert first is not None
        assert first.token == 1
        assert await copies[1].acquire(10) is None
        renewed = await copies[0].renew(1, 20)
        assert renewed is not None
        assert renewed.until == pytest.approx(loop.time() + 20, abs=1)
        assert await copies[1].renew(2, 20) is None
        async with copies[1].hold(10) as lease:
            assert loop.time() >= renewed.until
            assert (lease.member, lease.token) == (1, 2)
            assert await copies[0].renew(1, 20) is None
            assert not await copies[0].release(1)
            holder = await copies[2].holder()
            assert holder is not None
            assert holder.token == 2
        third = await copies[2].acquire(1)
        assert third is not None
        await asyncio.sleep(2)
        assert await copies[2].renew(third.token, 1) is None, "nobody else has it, but it has expired"
        with pytest.raises(quire.BadInput, match="more than 0 seconds"):
            await copies[2].acquire(-1)

    with_copies(quire.Lock, use)


def test_a_holder_that_could_not_renew_is_stopped_before_another_can_hold_the_lock() -> None:
    async def use(copies: Sequence[quire.Lock]) -> None:
        loop = asyncio.get_running_loop()
        stopped_at = until = 0.0

        async def work() -> None:
            nonlocal stopped_at, until
            async with copies[0].hold(9) as lease:
                until = lease.until
                vars(copies[0])["renew"] = lambda *_: loop.create_future()  # No answer comes.
                try:
                    await asyncio.sleep(100)
                finally:
                    stopped_at = loop.time()

        with pytest.raises(quire.LeaseLost, match="the lease with token 1 ended"):
            await work()
        assert 0 < stopped_at <= until
        second = await copies[1].acquire(1)
        assert second is None or second.token == 2

    with_copies(quire.Lock, use)


def test_waiting_for_a_lock_can_be_cancelled_and_leaves_it_free() -> None:
    async def use(copies: Sequence[quire.Lock]) -> None:
        for _ in range(20):
            waiting = asyncio.ensure_future(copies[0].hold(1000).__aenter__())
            await asyncio.sleep(0)
            waiting.cancel()
            with suppress(asyncio.CancelledError):
                await waiting
        async with asyncio.timeout(100):
            async with copies[1].hold(5):
                pass

    with_copies(quire.Lock, use)


def test_members_that_stand_lead_one_after_the_other_and_everybody_sees_who() -> None:
    async def use(copies: Sequence[quire.Election]) -> None:
        seen: list[list[int | None]] = [[] for _ in copies]

        async def watch(election: quire.Election, mine: list[int | None]) -> None:
            async for lease in election.changes():
                mine += [None if lease is None else lease.member]

        watchers = [asyncio.ensure_future(watch(copy, mine)) for copy, mine in zip(copies, seen, strict=True)]

        async def stand(election: quire.Election) -> None:
            async with election.lead(4) as lease:
                await asyncio.sleep(10)
                current = await election.holder()
                assert current is not None
                assert current.token == lease.token

        await asyncio.gather(*(stand(copy) for copy in copies))
        lease = await copies[2].acquire(3)
        assert lease is not None
        await asyncio.sleep(10)  # Nobody renews it, and everybody notices.
        for mine in seen:
            leaders = [member for member in mine if member is not None]
            assert sorted(leaders[:3]) == [0, 1, 2]
            assert leaders[3:] == [2]
            assert mine[-1] is None
        for watcher in watchers:
            watcher.cancel()
        await asyncio.gather(*watchers, return_exceptions=True)

    with_copies(quire.Election, use)
