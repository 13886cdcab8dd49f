"""Founding: who has to be there, what members must have in common, and what is refused."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any

import pytest

import quire
from quire.live.network.transports.memory import MemoryNetwork
from quire.live.settings import read_address
from tests.live.dynamic.kit import WAYS, Member, crash, founded, places, run, together

PROTOCOLS = ("single-phase", "causal-vector", "fifo")


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("delivery", ["uniform", "fast"])
def test_founders_deliver_what_each_of_them_sends(way: str, protocol: str, delivery: str) -> None:
    async def main() -> None:
        async with founded(way, protocol=protocol, delivery=delivery) as members:
            for number in range(20):
                for member in members.values():
                    await member.group.multicast(f"{member.group.me}{number}".encode())
            everything = {f"{name}{number}".encode() for name in "abc" for number in range(20)}
            for member in members.values():
                await member.has(*everything)
                assert member.group.view == quire.View(2, ("a", "b", "c"))
                assert member.group.view.senior == "a"
                assert member.events[0] == member.group.view
                for name in "abc":
                    assert [seq for origin, seq in member.order if origin == name] == list(range(20))
            if protocol == "single-phase":
                assert members["a"].events == members["b"].events == members["c"].events
                keys = [event.order_key for event in members["a"].of(quire.ViewMessage)]
                assert keys == [(2, position) for position in range(60)]

    run(way, main())


@pytest.mark.parametrize("way", WAYS)
def test_execute_returns_the_message_with_its_position(way: str) -> None:
    async def main() -> None:
        async with founded(way) as members:
            first = await members["b"].group.execute(b"first")
            second = await members["a"].group.execute(b"second")
            assert first == quire.ViewMessage("b", 0, b"first", 2, 0)
            assert second == quire.ViewMessage("a", 0, b"second", 2, 1)
            assert await members["b"].group.multicast(b"third") == 1
            pipelined = [members["c"].group.submit(str(number).encode()) for number in range(50)]
            assert [message.payload for message in await asyncio.gather(*pipelined)] == [str(n).encode() for n in range(50)]

    run(way, main())


def test_with_journals_a_majority_begins_and_a_founder_that_comes_late_is_let_in(tmp_path: Path) -> None:
    async def main() -> None:
        where = places("tcp", "abc")

        def founder(name: str) -> quire.DynamicGroup:
            return quire.join("test", me=name, members=where, order="total", journal=tmp_path / name, timeout_s=0.5)

        async with together([founder("a"), founder("b")]) as members:
            a, b = members["a"], members["b"]
            await a.is_in("a", "b")
            await a.group.execute(b"without c")
            async with together([founder("c")]) as late:
                c = late["c"]
                await c.is_in("a", "b", "c")
                await a.is_in("a", "b", "c")
                await c.group.execute(b"with c")
                for member in (a, b, c):
                    await member.has(b"without c", b"with c")
                assert c.payloads == a.payloads

    run("tcp", main())


def test_without_journals_founders_wait_for_all_because_none_can_know_that_it_was_not_started_before() -> None:
    async def main() -> None:
        where = places("memory", "abc")

        def founder(name: str) -> quire.DynamicGroup:
            return quire.join("test", me=name, members=where, order="total", transport="memory")

        first = [founder("a"), founder("b")]
        entering = [asyncio.ensure_future(group.__aenter__()) for group in first]
        await asyncio.sleep(60)
        assert not any(each.done() for each in entering)
        async with together([founder("c")]) as members:
            await asyncio.gather(*entering)
            await members["c"].is_in("a", "b", "c")
            await first[0].execute(b"together")
            await members["c"].has(b"together")

    run("memory", main())


def test_a_founder_that_stays_alone_says_who_did_not_come() -> None:
    async def main() -> None:
        where = places("memory", "abc")
        alone = quire.join("test", me="a", members=where, order="total", transport="memory", join_s=30)
        with pytest.raises(quire.NoQuorum, match=r"join_s \(30 s\): waiting for b \(127.0.0.1:7001\), c \(127") as caught:
            await alone.__aenter__()
        assert caught.value.silent == ("b", "c")

    run("memory", main())


def test_a_group_of_one_needs_nobody() -> None:
    async def main() -> None:
        async with founded("memory", "a") as members:
            assert (await members["a"].group.execute(b"alone")).position == 0
            assert members["a"].group.view == quire.View(2, ("a",))

    run("memory", main())


OTHERS: dict[str, tuple[dict[str, Any], str]] = {
    "protocol": ({"order": "causal"}, "runs causal-vector .* runs single-phase|runs single-phase .* runs causal-vector"),
    "delivery": ({"delivery": "fast"}, "uniform without a journal"),
    "state": ({"state": quire.ReplicatedCounter()}, "without a state"),
    "group": ({}, "this is group"),
}


@pytest.mark.parametrize("what", OTHERS)
def test_a_founder_with_other_settings_is_refused_in_one_sentence(what: str) -> None:
    given, sentence = OTHERS[what]

    async def main() -> None:
        where = places("memory", "ab")
        usual: dict[str, Any] = {"order": "total", "transport": "memory", "members": where}
        groups = [
            quire.join("test", me="a", **usual),
            quire.join("other" if what == "group" else "test", me="b", **(usual | given)),
        ]
        entered = await asyncio.gather(*(group.__aenter__() for group in groups), return_exceptions=True)
        for error in entered:
            assert isinstance(error, quire.BadInput)
        assert any(re.search(sentence, str(error)) for error in entered)

    run("memory", main())


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("other", [{"order": "causal"}, {"weights": {"a": 2}}], ids=["protocol", "weights"])
@pytest.mark.parametrize("first", ["ac", "ab"])
def test_a_founder_learns_of_a_misfit_between_two_others(way: str, other: dict[str, Any], first: str) -> None:
    """Whether it is there when they find out, or comes a moment later."""

    async def main() -> None:
        usual: dict[str, Any] = {"order": "total", "transport": way, "members": places(way, "abc")}
        groups = {name: quire.join("test", me=name, **(usual | (other if name == "b" else {}))) for name in "abc"}
        entering = {name: asyncio.ensure_future(groups[name].__aenter__()) for name in first}
        while not (groups["a"]._failure or groups["a"]._node._connections):
            await asyncio.sleep(0.001)
        at = asyncio.get_running_loop().time()
        entering |= {name: asyncio.ensure_future(groups[name].__aenter__()) for name in "abc" if name not in first}
        errors = dict(zip(entering, await asyncio.gather(*entering.values(), return_exceptions=True), strict=True))
        for error in errors.values():
            assert isinstance(error, quire.BadInput)
            assert re.match(r"'[abc]' (runs .*, and '[abc]' runs|was given the founding members .*, and '[abc]') ", str(error))
        assert way == "tcp" or asyncio.get_running_loop().time() - at < 3

    run(way, main())


def test_a_founder_that_cannot_see_the_misfit_itself_believes_another_and_says_who_told_it() -> None:
    async def main() -> None:
        where = places("memory", "abc")
        usual: dict[str, Any] = {"transport": "memory", "members": where}
        groups = {name: quire.join("test", me=name, order="causal" if name == "b" else "total", **usual) for name in "abc"}
        entering = [asyncio.ensure_future(groups[name].__aenter__()) for name in "ab"]
        while groups["a"]._failure is None:
            await asyncio.sleep(0.001)
        MemoryNetwork.of(asyncio.get_running_loop()).cut_off(read_address(where["b"]))
        with pytest.raises(quire.BadInput, match=r"'a' runs .*, and 'b' runs .* \(reported by 'a'\)"):
            await groups["c"].__aenter__()
        await asyncio.gather(*entering, return_exceptions=True)

    run("memory", main())


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "two-phase": ({"protocol": "two-phase"}, "groups of two-phase are fixed"),
    "coordinator": ({"protocol": "coordinator"}, "groups of coordinator are fixed"),
    "matrix": ({"protocol": "matrix"}, "groups of matrix are fixed"),
    "no order": ({"order": None}, "give either an order or a protocol"),
    "unknown order": ({"order": "alphabetical"}, "there is no order"),
    "delivery": ({"delivery": "slow"}, "choose uniform or fast"),
    "not a member": ({"me": "z"}, "me='z' is not one of the members a, b, c"),
    "a number": ({"me": 0}, "me=0 is for members in a list"),
    "a list": ({"members": ["127.0.0.1:1", "127.0.0.1:2"]}, "members in a list are numbered from 0: give me as a number"),
    "name": ({"me": "a b", "members": {"a b": "127.0.0.1:1"}}, "a member's name has"),
    "address": ({"members": {"a": "nowhere"}}, "is not an address"),
    "same address": ({"members": {"a": "127.0.0.1:1", "b": "127.0.0.1:1"}}, "its own address"),
    "elsewhere": ({"members": {"a": "10.0.0.1:7000"}}, "not a loopback address"),
    "at": ({"at": "127.0.0.1:9"}, "the addresses of founders are in members"),
    "no contact": ({"members": None, "at": "127.0.0.1:9"}, "that of a current member"),
    "contact is text": ({"members": None, "at": "127.0.0.1:9", "contact": "127.0.0.1:8"}, "contact must be a list"),
    "weights": ({"weights": {"z": 1}}, "weights name 'z'"),
    "weight": ({"weights": {"a": -1}}, "a weight is a whole number"),
    "no weight": ({"weights": {"a": 0, "b": 0, "c": 0}}, "at least one member needs a weight"),
    "state": ({"order": "causal", "state": quire.ReplicatedCounter()}, "needs a total order"),
    "no state": ({"state": object()}, "cannot be a state"),
    "secret": ({"secret": "short"}, "at least 16 bytes"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_makes_no_sense_is_refused_in_one_sentence(what: str) -> None:
    given, sentence = REFUSED[what]
    usual: dict[str, Any] = {"me": "a", "members": places("memory", "abc"), "order": "total"}
    if "protocol" in given:
        del usual["order"]
    with pytest.raises(quire.BadInput, match=sentence) as caught:
        quire.join("test", **(usual | given))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("way", WAYS)
def test_closing_ends_the_group_for_everybody_after_everything_is_delivered(way: str) -> None:
    async def main() -> None:
        async with founded(way) as members:
            for member in members.values():
                for number in range(10):
                    await member.group.multicast(f"{member.group.me}{number}".encode())
            await members["b"].group.close()
            for member in members.values():
                await member.reading
                assert member.error is None
                assert len(member.payloads) == 30
                with pytest.raises(quire.GroupClosed):
                    await member.group.multicast(b"too late")
                await member.group.close()
            assert members["a"].order == members["b"].order == members["c"].order

    run(way, main())


def test_weights_count_members_more_than_once() -> None:
    async def main() -> None:
        async with founded("memory", "ab", weights={"b": 2}, timeout_s=0.5) as members:
            await crash(members["a"].group)
            b: Member = members["b"]
            await b.is_in("b")
            await b.group.execute(b"alone")

    run("memory", main())


def test_what_was_accepted_before_closing_is_delivered_though_nobody_has_flushed_it_yet() -> None:
    async def main() -> None:
        async with founded("memory", "ab") as members:
            await members["a"].group.multicast(b"just before")
            closing = asyncio.ensure_future(members["a"].group.close())
            await members["b"].group.multicast(b"at the same time")
            await closing
            for member in members.values():
                await member.reading
                assert set(member.payloads) == {b"just before", b"at the same time"}

    run("memory", main())


def test_a_stranger_with_other_settings_does_not_keep_founders_from_beginning() -> None:
    async def main() -> None:
        where = places("memory", "abz")
        founders = {name: where[name] for name in "ab"}
        a, b = (quire.join("test", me=name, members=founders, order="total", transport="memory") for name in "ab")
        entering = asyncio.ensure_future(a.__aenter__())
        other = quire.join("test", me="z", at=where["z"], contact=[where["a"]], order="fifo", transport="memory")
        with pytest.raises(quire.BadInput, match="runs fifo"):
            await other.__aenter__()
        await b.__aenter__()
        await entering
        await a.execute(b"undisturbed")
        await crash(a)
        await crash(b)

    run("memory", main())


def test_whoever_comes_after_the_end_is_told() -> None:
    async def main() -> None:
        where = places("memory", "abz")
        founders = {name: where[name] for name in "ab"}
        a, b = (quire.join("test", me=name, members=founders, order="total", transport="memory") for name in "ab")
        await asyncio.gather(a.__aenter__(), b.__aenter__())
        await a.execute(b"last")
        late = quire.join("test", me="z", at=where["z"], contact=[where["b"]], order="total", transport="memory")
        await a.close()
        with pytest.raises(quire.GroupClosed, match="ended before"):
            await late.__aenter__()
        await b.close()

    run("memory", main())
