"""State over members that change: joiners get it, commands are executed once everywhere, and reads see what was completed."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

import pytest

import quire
from tests.live.dynamic.kit import WAYS, Member, crash, cut_off, founded, mend, places, run, together


class Board(quire.Replicated):
    items: dict[str, int]

    @quire.command
    def put(self, key: str, value: int) -> int:
        self.items[key] = value
        return len(self.items)

    @quire.command
    def fail(self) -> None:
        self.items["never"] = 0
        raise ValueError("not like that")

    @quire.query
    def get(self, key: str) -> int | None:
        return self.items.get(key)


class Tape:
    """A state that its application keeps, from the messages that it reads."""

    def __init__(self) -> None:
        self.lines: list[bytes] = []

    def snapshot(self) -> Iterable[bytes]:
        return [line + b"\n" for line in self.lines]

    def restore(self, chunks: Iterable[bytes]) -> None:
        self.lines = b"".join(chunks).splitlines()


def founders(way: str, state: Any, names: str = "abc", **chosen: Any) -> list[quire.DynamicGroup]:
    where = places(way, names)
    return [quire.join("test", me=n, members=where, order="total", transport=way, state=state(n), **chosen) for n in names]


def joiner(way: str, contact: str, state: Any, **chosen: Any) -> quire.DynamicGroup:
    at = places(way, "d")["d"] if way == "tcp" else "127.0.0.1:7500"
    return quire.join("test", me="d", at=at, contact=[contact], order="total", transport=way, state=state, **chosen)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("delivery", ["uniform", "fast"])
def test_commands_and_queries_of_all_members_and_of_one_that_joins(way: str, delivery: Any) -> None:
    async def main() -> None:
        boards = {name: Board() for name in "abcd"}
        async with together(founders(way, boards.__getitem__, delivery=delivery)) as members:
            assert await boards["a"].put("x", 1) == 1
            assert await boards["b"].put("y", 2) == 2
            assert await boards["c"].get("x") == 1
            with pytest.raises(ValueError, match="not like that"):
                await boards["c"].fail()
            await members["a"].group.multicast(b"a message between commands")
            contact = str(members["b"].group.settings.address)
            async with together([joiner(way, contact, boards["d"], delivery=delivery)]) as more:
                assert boards["d"].items == {"x": 1, "y": 2}
                assert more["d"].of(quire.Restored) or not boards["d"].items
                assert await boards["d"].put("z", 3) == 3
                assert await boards["a"].get("z") == 3
                await members["c"].has(b"a message between commands")
                for board in boards.values():
                    assert await board.get("z") == 3
                    assert board.items == {"x": 1, "y": 2, "z": 3}

    run(way, main())


def test_a_joiner_gets_a_state_of_many_chunks_while_commands_go_on() -> None:
    async def main() -> None:
        boards = {name: Board() for name in "abcd"}
        for name in "abc":
            boards[name].items.update({f"key {number}": number for number in range(100_000)})
        async with together(founders("tcp", boards.__getitem__)) as members:
            stop, counts = asyncio.Event(), 0

            async def go_on() -> int:
                nonlocal counts
                while not stop.is_set():
                    await boards["a"].put(f"new {counts}", counts)
                    counts += 1
                return counts

            going_on = asyncio.ensure_future(go_on())
            contact = str(members["c"].group.settings.address)
            async with together([joiner("tcp", contact, boards["d"])]) as more:
                assert more["d"].group.view is not None
                stop.set()
                assert await going_on > 0
                assert await boards["d"].get(f"new {counts - 1}") == counts - 1
                assert boards["d"].items == boards["a"].items
                assert len(boards["d"].items) == 100_000 + counts

    run("tcp", main())


def test_who_holds_a_lock_and_is_gone_holds_it_no_more() -> None:
    async def main() -> None:
        locks = {name: quire.Lock() for name in "abc"}
        async with together(founders("memory", locks.__getitem__)) as members:
            lease = await locks["c"].acquire(1e6)
            assert lease is not None
            assert members["a"].group.name_of(lease.member) == "c"
            assert await locks["a"].acquire(1e6) is None
            await crash(members["c"].group)
            await members["a"].is_in("a", "b")
            held = await locks["a"].acquire(1e6)
            assert held is not None
            assert await locks["b"].holder() == held
            assert members["b"].group.name_of(held.member) == "a"
            assert members["a"].group.name_of(lease.member) is None

    run("memory", main())


def test_a_read_waits_for_a_majority_and_never_sees_the_past() -> None:
    async def main() -> None:
        boards = {name: Board() for name in "abc"}
        async with together(founders("memory", boards.__getitem__)) as members:
            await boards["a"].put("x", 1)
            c = str(members["c"].group.settings.address)
            cut_off(c)
            await members["a"].is_in("a", "b")
            await boards["a"].put("x", 2)
            read = asyncio.ensure_future(boards["c"].get("x"))
            await members["c"].told(quire.Blocked)
            assert not read.done()
            assert boards["c"].get.local("x") == 1
            mend(c)
            assert await read == 2

    run("memory", main())


def test_what_was_executed_while_its_member_was_away_is_reported_and_not_done_twice() -> None:
    """Fast delivery takes over the others' state, so that results of commands come with it and are not known."""

    async def main() -> None:
        counters = {name: quire.ReplicatedCounter() for name in "abc"}
        async with together(founders("memory", counters.__getitem__, delivery="fast")) as members:
            await counters["c"].add(1)
            c = str(members["c"].group.settings.address)
            await members["a"].is_in("a", "b", "c")
            results = [asyncio.ensure_future(counters["c"].add(1)) for _ in range(5)]
            await asyncio.sleep(0)
            cut_off(c)
            await members["a"].is_in("a", "b")
            mend(c)
            told = await asyncio.gather(*results, return_exceptions=True)
            assert all(isinstance(each, int | quire.OutcomeUnknown) for each in told)
            assert await counters["a"].get() == await counters["c"].get() == 6

    run("memory", main())


@pytest.mark.parametrize("way", WAYS)
def test_a_state_that_the_application_keeps_is_handed_on_as_far_as_it_was_read(way: str) -> None:
    async def main() -> None:
        tapes = {name: Tape() for name in "abcd"}

        async def keep(group: quire.DynamicGroup) -> None:
            async for message in group:
                await asyncio.sleep(0)
                tapes[group.me].lines.append(message.payload)

        groups = founders(way, tapes.__getitem__)
        await asyncio.gather(*(group.__aenter__() for group in groups))
        keeping = [asyncio.ensure_future(keep(group)) for group in groups]
        await groups[0].multicast_many([b"%d" % number for number in range(500)])
        late = joiner(way, str(groups[1].settings.address), tapes["d"])
        await late.__aenter__()
        keeping.append(asyncio.ensure_future(keep(late)))
        await late.execute(b"end")
        await groups[2].close()
        await asyncio.gather(*keeping)
        expected = [*(b"%d" % number for number in range(500)), b"end"]
        assert [tape.lines for tape in tapes.values()] == [expected] * 4
        for group in (*groups, late):
            await group.close()

    run(way, main())


def test_whoever_joins_has_its_state_before_it_is_a_member_whom_others_wait_for() -> None:
    async def main() -> None:
        tapes = {name: Tape() for name in "abcd"}
        for name in "abc":
            tapes[name].lines = [b"of old"]
        groups = founders("memory", tapes.__getitem__)
        await asyncio.gather(*(group.__aenter__() for group in groups))
        late = joiner("memory", str(groups[1].settings.address), tapes["d"])
        await late.__aenter__()
        assert tapes["d"].lines == [b"of old"]
        await groups[0].close()
        for group in (*groups, late):
            await group.close()

    run("memory", main())


def test_messages_and_commands_keep_one_order() -> None:
    async def main() -> None:
        boards = {name: Board() for name in "ab"}
        async with together(founders("memory", boards.__getitem__, "ab")) as members:
            a: Member = members["a"]
            calls = []
            for number in range(10):
                await a.group.multicast(b"%d" % number)
                calls.append(boards["a"].put("n", number))
            await asyncio.gather(*calls)
            await members["b"].has(b"9")
            assert members["b"].payloads == a.payloads == [b"%d" % number for number in range(10)]
            assert [seq for _, seq in a.order] == list(range(0, 20, 2))

    run("memory", main())


def test_apply_needs_a_state() -> None:
    async def main() -> None:
        async with founded("memory", "a") as members:
            with pytest.raises(quire.BadInput, match="no state with an apply"):
                members["a"].group.apply(b"x")

    run("memory", main())


def test_the_senior_may_be_leaving_when_another_member_is_gone() -> None:
    """In the view without the other it has nothing to say any more of who is gone, and goes on with what it has to do."""

    async def main() -> None:
        events: list[quire.Event] = []
        boards = {name: Board() for name in "abc"}
        groups = founders("memory", boards.__getitem__, on_event=events.append)
        async with together(groups) as members:
            for name, board in boards.items():
                await board.put(name, 1)
            groups[0]._ending = "this member is leaving, so nothing more can be sent"
            await crash(groups[2])
            await members["a"].is_in("a", "b")
            await members["b"].is_in("a", "b")
            await asyncio.sleep(5)
            assert [event.peers for event in events if event.kind == "disconnected"] == [("c",)] * 2

    run("memory", main())
