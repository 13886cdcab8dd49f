"""Members come, go, crash and are cut off, and the others go on."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import quire
from tests.live.dynamic.kit import WAYS, Member, crash, cut_off, founded, mend, part, places, run, talk, together


def joiner(way: str, name: str, at: str, contact: str, **chosen: Any) -> quire.DynamicGroup:
    settings: dict[str, Any] = {"order": "total", "transport": way} | chosen
    return quire.join("test", me=name, at=at, contact=[contact], **settings)


def address(member: Member) -> str:
    return str(member.group.settings.address)


@pytest.mark.parametrize("way", WAYS)
def test_somebody_joins_under_load_and_has_the_same_order_from_then_on(way: str) -> None:
    async def main() -> None:
        async with founded(way) as members:
            stop = asyncio.Event()
            talking = asyncio.ensure_future(talk(members.values(), stop))
            await members["a"].until(lambda member: len(member.payloads) > 50)
            at = places(way, "d")["d"] if way == "tcp" else "127.0.0.1:7500"
            async with together([joiner(way, "d", at, address(members["b"]))]) as more:
                d = more["d"]
                await d.group.execute(b"hello")
                stop.set()
                counts = await talking
                for member in (*members.values(), d):
                    await member.has(b"hello", *(f"{name}:{count - 1}".encode() for name, count in counts.items()))
                orders = [member.order for member in members.values()]
                assert orders[0] == orders[1] == orders[2]
                view = d.of(quire.View)[0]
                assert view.members == ("a", "b", "c", "d")
                since = [event for event in members["a"].of(quire.ViewMessage) if event.view >= view.number]
                assert [event for event in d.of(quire.ViewMessage) if event.view >= view.number] == since

    run(way, main())


def test_whoever_has_more_to_catch_up_with_than_may_wait_for_its_application_comes_in() -> None:
    async def main() -> None:
        async with founded("memory") as members:
            contact = address(members["a"])
            async with together([joiner("memory", "d", "127.0.0.1:7500", contact)]) as more:
                # What d was given is good for the next that joins, with everything that was delivered since.
                await more["d"].is_in("a", "b", "c", "d")
            sent = 0
            while sent <= members["a"].group.settings.network.inbox_messages_max:
                await members["a"].group.multicast_many([b"x"] * 4096)
                sent += 4096
            await members["a"].until(lambda member: len(member.payloads) == sent)
            async with together([joiner("memory", "e", "127.0.0.1:7501", contact)]) as more:
                await more["e"].until(lambda member: len(member.payloads) == sent)

    run("memory", main())


@pytest.mark.parametrize("way", WAYS)
def test_whoever_leaves_has_everything_delivered_that_it_sent(way: str) -> None:
    async def main() -> None:
        async with founded(way) as members:
            sent = [f"last words {number}".encode() for number in range(100)]
            await members["c"].group.multicast_many(sent)
            await members["c"].group.leave()
            for name in "ab":
                await members[name].is_in("a", "b")
                assert members[name].payloads == sent
            await members["c"].reading
            assert members["c"].error is None
            with pytest.raises(quire.GroupClosed):
                await members["c"].group.multicast(b"too late")
            await members["a"].group.execute(b"and on")
            await members["b"].has(b"and on")

    run(way, main())


def test_whoever_has_left_is_missed_by_nobody_and_whoever_crashed_is_said_to_be_lost_once() -> None:
    told: list[quire.Event] = []

    async def main() -> None:
        async with founded("memory", "abcd", on_event=told.append) as members:
            told.clear()
            await members["d"].group.leave()
            await asyncio.sleep(10)
            assert [event.kind for event in told if event.peers == ("d",)] == []
            await crash(members["c"].group)
            await members["a"].is_in("a", "b")
            await members["b"].is_in("a", "b")
            await asyncio.sleep(10)
            assert [event.kind for event in told if event.peers == ("c",)] == ["disconnected", "disconnected", "lost", "lost"]

    run("memory", main())


def test_leaving_the_block_leaves_the_group_and_the_last_one_closes_it() -> None:
    async def main() -> None:
        where = places("memory", "ab")
        a, b = (quire.join("test", me=name, members=where, order="total", transport="memory") for name in "ab")
        await asyncio.gather(a.__aenter__(), b.__aenter__())
        await a.execute(b"both")
        await b.__aexit__(None, None, None)
        await a.execute(b"one")
        assert a.view is not None
        assert a.view.members == ("a",)
        await a.__aexit__(None, None, None)
        with pytest.raises(quire.GroupClosed):
            await a.multicast(b"none")

    run("memory", main())


@pytest.mark.parametrize("way", WAYS)
def test_a_member_that_crashes_is_missed_at_once_and_the_others_go_on_in_one_order(way: str) -> None:
    async def main() -> None:
        async with founded(way, timeout_s=60) as members:
            stop = asyncio.Event()
            survivors = [members["a"], members["b"]]
            talking = asyncio.ensure_future(talk(survivors, stop))
            await members["c"].group.execute(b"I was here")
            await crash(members["c"].group)
            for member in survivors:
                await member.is_in("a", "b")
            # Nobody waited for the timeout: its address refused connections.
            await members["a"].group.execute(b"without c")
            stop.set()
            counts = await talking
            for member in survivors:
                await member.has(b"without c", *(f"{name}:{count - 1}".encode() for name, count in counts.items()))
            assert survivors[0].events == survivors[1].events

    run(way, main())


def test_members_that_all_lost_each_other_in_the_same_moment_come_together_again() -> None:
    """They all connect to each other in the same moment, too."""

    async def main() -> None:
        async with founded("memory") as members:
            for member in members.values():
                cut_off(address(member))
            await asyncio.sleep(3)
            for member in members.values():
                mend(address(member))
            talking = [asyncio.ensure_future(member.group.execute(b"here")) for member in members.values()]
            _, waiting = await asyncio.wait(talking, timeout=5)
            assert not waiting

    run("memory", main())


def test_a_member_that_was_cut_off_is_excluded_comes_back_and_misses_nothing() -> None:
    async def main() -> None:
        async with founded("memory") as members:
            c = members["c"]
            await c.group.execute(b"before")
            cut_off(address(c))
            for name in "ab":
                await members[name].is_in("a", "b")
            await c.told(quire.Blocked)
            blocked = c.of(quire.Blocked)[0]
            assert blocked.missing == ("a", "b")
            assert "without them there is no majority" in blocked.why
            meanwhile = c.group.submit(b"from the minority")
            await members["a"].group.execute(b"meanwhile")
            assert not meanwhile.done()
            mend(address(c))
            for member in members.values():
                await member.is_in("a", "b", "c")
            await c.told(quire.Excluded)
            await c.told(quire.Unblocked)
            # What it submitted while it was cut off is executed once, after it has come back.
            assert (await meanwhile).payload == b"from the minority"
            await members["b"].group.execute(b"after")
            for member in members.values():
                await member.has(b"after")
                assert member.payloads == [b"before", b"meanwhile", b"from the minority", b"after"]

    run("memory", main())


def test_told_not_to_come_back_a_member_ends_with_its_exclusion() -> None:
    async def main() -> None:
        async with founded("memory", rejoin=False) as members:
            c = members["c"]
            cut_off(address(c))
            for name in "ab":
                await members[name].is_in("a", "b")
            waiting = c.group.submit(b"who knows")
            mend(address(c))
            with pytest.raises(quire.OutcomeUnknown):
                await waiting
            await c.reading
            assert isinstance(c.error, quire.MemberExcluded)
            assert isinstance(c.events[-1], quire.Excluded)
            with pytest.raises(quire.MemberExcluded):
                await c.group.multicast(b"still there?")

    run("memory", main())


def test_a_minority_says_so_when_its_queue_is_full() -> None:
    async def main() -> None:
        async with founded("memory") as members:
            c = members["c"]
            cut_off(address(c))
            await c.told(quire.Blocked)

            async def fill() -> None:
                while True:
                    await c.group.multicast(bytes(100_000))

            with pytest.raises(quire.NoQuorum, match="a, b of view 2 cannot be reached") as caught:
                await fill()
            assert caught.value.silent == ("a", "b")
            with pytest.raises(quire.NoQuorum):
                c.group.submit(b"more")
            accepted = c.group._submitting.accepted
            mend(address(c))
            await members["a"].until(lambda member: len(member.payloads) == accepted)
            await c.group.multicast(b"there is room again")
            await members["a"].has(b"there is room again")

    run("memory", main())


def test_halves_go_on_where_the_senior_is() -> None:
    async def main() -> None:
        async with founded("memory", "abcd") as members:
            for one, other in ("ac", "ad", "bc", "bd"):
                part(address(members[one]), address(members[other]))
            await members["a"].is_in("a", "b")
            await members["c"].told(quire.Blocked)
            await members["d"].told(quire.Blocked)
            await members["b"].group.execute(b"the senior's half")
            assert members["c"].payloads == members["d"].payloads == []
            mend(address(members["a"]))
            mend(address(members["b"]))
            for member in members.values():
                await member.is_in("a", "b", "c", "d")
                await member.has(b"the senior's half")

    run("memory", main())


def test_an_application_that_does_not_read_makes_the_others_wait_and_loses_nothing() -> None:
    async def main() -> None:
        where = places("memory", "ab")
        happened: list[quire.Event] = []
        usual: dict[str, Any] = {"order": "total", "transport": "memory", "on_event": happened.append}
        a, b = (quire.join("test", me=name, members=where, **usual) for name in "ab")
        await asyncio.gather(a.__aenter__(), b.__aenter__())
        reader, sent = Member(a), 0
        try:
            async with asyncio.timeout(5):
                while True:
                    await a.multicast(bytes(100_000))
                    sent += 1
        except TimeoutError:
            pass
        assert b._node.paused
        assert b._inbox.bytes < 100 << 20
        assert [event.peers for event in happened if event.kind == "unread"] == [("b",)]
        late = Member(b)
        await late.until(lambda member: len(member.payloads) >= sent)
        await a.execute(b"end")
        await late.has(b"end")
        assert late.order == reader.order
        await crash(a)
        await crash(b)

    run("memory", main())


def test_metrics_tell_of_the_view() -> None:
    async def main() -> None:
        async with founded("memory") as members:
            await members["a"].group.execute(b"x")
            text = members["a"].group.metrics()
            assert 'quire_view{group="test",member="a"} 2' in text
            assert 'quire_members{group="test",member="a"} 3' in text
            assert 'quire_messages_delivered_total{group="test",member="a",origin="a"} 1' in text

    run("memory", main())
