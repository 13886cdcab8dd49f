"""A list of addresses means members with the names "0", "1" and so on: groups that survive, as an application sees them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

import quire
from quire.live.runs.fleet import free_addresses
from quire.live.runs.plan import Plan
from quire.views.core import FIXED_UNLESS_ASKED, IN_VIEWS
from tests.live.dynamic.kit import Member, crash, run, together
from tests.live.running import SECRET, trusted
from tests.live.running import folders as folders

ADDRESSES = [f"127.0.0.1:{7000 + number}" for number in range(5)]
FIXED = ("two-phase", "coordinator", "matrix")


def member(me: int, count: int = 3, **chosen: Any) -> quire.DynamicGroup:
    settings: dict[str, Any] = {"transport": "memory", "members": ADDRESSES[:count]} | chosen
    if "protocol" not in settings:
        settings.setdefault("order", "total")
    group = quire.join("test", me=me, **settings)
    assert isinstance(group, quire.DynamicGroup)
    return group


def group_of(members: int = 3, **chosen: Any) -> Iterable[quire.DynamicGroup]:
    return [member(me, members, **chosen) for me in range(members)]


def names(*numbers: int) -> tuple[str, ...]:
    return tuple(map(str, numbers))


@pytest.mark.parametrize("protocol", [name for name in IN_VIEWS if name not in FIXED_UNLESS_ASKED])
def test_members_of_a_list_have_their_numbers_as_names_and_the_others_go_on_when_one_is_lost(protocol: str) -> None:
    async def main() -> None:
        async with together(group_of(protocol=protocol)) as members:
            zero, one, two = (members[name] for name in names(0, 1, 2))
            assert zero.group.me == "0"
            assert zero.group.view is not None
            assert zero.group.view.members == names(0, 1, 2)
            message = await two.group.execute(b"hello")
            assert (message.origin, message.seq, message.payload) == ("2", 0, b"hello")
            await crash(two.group)
            await zero.is_in("0", "1")
            await one.group.execute(b"without you")
            await zero.has(b"hello", b"without you")
            assert (message.order_key is not None) == (protocol == "single-phase")

    run("memory", main())


def test_leaving_the_block_leaves_the_others_and_closing_ends_the_group_for_all() -> None:
    async def main() -> None:
        groups = list(group_of())
        async with together(groups) as members:
            await members["0"].group.multicast_many([b"x"] * 5000)
            await groups[0].__aexit__(None, None, None)
            for name in names(1, 2):
                await members[name].is_in("1", "2")
                assert len(members[name].payloads) == 5000
            await groups[1].multicast(b"still here")
            await groups[1].close()
            await asyncio.gather(*(members[name].reading for name in names(0, 1, 2)))
            assert members["2"].payloads[-1] == b"still here"
            with pytest.raises(quire.GroupClosed):
                await groups[2].multicast(b"late")

    run("memory", main())


@pytest.mark.parametrize("journals", [True, False])
def test_a_member_that_is_killed_and_started_again_comes_back_with_and_without_its_journal(
    tmp_path: Path, journals: bool
) -> None:
    where = free_addresses(3)

    async def main() -> None:
        def again(me: int) -> quire.DynamicGroup:
            journal = tmp_path / str(me) if journals else None
            return member(me, members=where, transport="tcp", journal=journal, weights={"0": 2})

        async with together(map(again, range(3))) as members:
            assert [await members["2"].group.multicast(b"first") for _ in range(2)] == [0, 1]
            await members["0"].until(lambda one: len(one.payloads) == 2)
            await crash(members["2"].group)
            await members["0"].is_in("0", "1")
            async with together([again(2)]) as back:
                await members["0"].is_in("0", "1", "2")
                assert await back["2"].group.multicast(b"again") == (2 if journals else 0)
                await members["1"].has(b"again")

    run("tcp", main())


@pytest.mark.parametrize("kind", ["open", "secret", "tls"])
def test_members_of_a_list_are_secured_by_what_quire_keys_makes_for_numbers(kind: str, folders: Path) -> None:
    where = free_addresses(3)

    async def main() -> None:
        groups = [member(me, members=where, transport="tcp", **trusted(kind, folders, me)) for me in range(3)]
        async with together(groups) as members:
            await members["1"].group.execute(b"x")
            await members["2"].has(b"x")

    run("tcp", main())


def test_what_is_held_back_names_whom_it_waits_for_and_is_reported_when_it_takes_long() -> None:
    """The application of member 2 reads nothing, so that its member reads nothing either."""
    told: list[quire.Event] = []

    async def main() -> None:
        # Without acknowledgements ahead, so that a message waits for everybody.
        groups = [member(me, on_event=told.append if me == 0 else None, protocol="single-phase") for me in range(3)]
        await asyncio.gather(*(group.__aenter__() for group in groups))
        readers = [Member(group) for group in groups[:2]]
        groups[2]._inbox._messages_max = 0
        await groups[1].execute(b"goes")
        await readers[0].has(b"goes")
        await asyncio.sleep(0.1)
        waits = groups[1].submit(b"waits")
        await asyncio.sleep(0.1)
        [held, *_] = groups[0].waiting()
        assert (held.origin, held.first, held.count) == ("1", 1, 1)
        assert held.waits_for == ("2",)
        assert held.because
        while not {"stalled", "gap"} <= {event.kind for event in told}:
            await asyncio.sleep(0.1)
        [held, *_] = groups[0].waiting()
        assert held.since_s >= 1.0
        assert 'quire_messages_held_back{group="test",member="0"} 1' in groups[0].metrics()
        readers.append(Member(groups[2]))
        assert (await waits).payload == b"waits"
        while "recovered" not in {event.kind for event in told}:
            await asyncio.sleep(0.1)
        assert groups[0].waiting() == []
        await asyncio.gather(*(group.close() for group in groups))

    run("memory", main())
    [gap] = [event for event in told if event.kind == "gap"]
    [stall] = [event for event in told if event.kind == "stalled"]
    assert gap.peers == stall.peers == ("2",)
    assert min(gap.for_s, stall.for_s) >= 1.0
    assert "message 1:1 is held back" in gap.why


def test_an_application_that_does_not_read_is_the_first_that_its_member_blames() -> None:
    async def main() -> None:
        groups = list(group_of(2))
        for group in groups:
            group._inbox._messages_max = 100
        await asyncio.gather(*(group.__aenter__() for group in groups))
        reading = Member(groups[0])
        for _ in range(5):
            await groups[0].multicast_many([b"x"] * 100)
            await asyncio.sleep(0.1)
        [held, *_] = groups[1].waiting()
        assert held.waits_for == ("1",)
        assert "the application has not read" in held.because
        reading.reading.cancel()
        await asyncio.gather(*(group.close() for group in groups))

    run("memory", main())


def test_metrics_say_how_the_links_are() -> None:
    async def main() -> None:
        async with together(group_of()) as members:
            await members["0"].group.execute(b"x")
            text = members["0"].group.metrics()
            assert 'quire_messages_sent_total{group="test",member="0"} 1\n' in text
            assert 'quire_link_up{group="test",member="0",peer="1"} 1\n' in text
            assert text.count("# TYPE quire_link_up gauge") == 1

    run("memory", main())


def test_whoever_waits_in_vain_is_told_who_is_missing_where_and_for_how_long() -> None:
    told: list[quire.Event] = []

    async def main() -> None:
        with pytest.raises(quire.NoQuorum) as caught:
            async with member(0, join_s=12, on_event=told.append):
                pass
        assert caught.value.silent == names(1, 2)
        sentence = f"not become a member within join_s (12 s): waiting for 1 ({ADDRESSES[1]}), 2 ({ADDRESSES[2]})"
        assert sentence in str(caught.value)

    run("memory", main())
    awaited = [event for event in told if event.kind == "awaited"]
    assert [event.peers for event in awaited] == [names(1, 2)] * 3
    assert awaited[0].for_s < awaited[1].for_s


def test_members_with_other_settings_are_named_at_once() -> None:
    async def main() -> None:
        one, other = member(0, 2), member(1, 2, protocol="single-phase", options={"ids": "rotating"})
        errors = await asyncio.gather(one.__aenter__(), other.__aenter__(), return_exceptions=True)
        assert all(isinstance(error, quire.BadInput) for error in errors)
        assert "'0' runs single-phase" in str(errors[0])
        assert "'1' runs single-phase" in str(errors[0])

    run("memory", main())


@pytest.mark.parametrize("protocol", FIXED)
@pytest.mark.parametrize(
    "wish",
    [{"journal": "j"}, {"delivery": "fast"}, {"weights": {"0": 2}}, {"rejoin": False}, {"cluster": "a"}],
    ids=lambda wish: next(iter(wish)),
)
def test_fixed_protocols_say_plainly_that_their_groups_are_fixed(protocol: str, wish: dict[str, Any]) -> None:
    with pytest.raises(quire.BadInput, match=f"^groups of {protocol} are fixed, so that journal, delivery, weights, rejoin"):
        quire.join("test", me=0, members=ADDRESSES[:2], protocol=protocol, **wish)
    assert isinstance(quire.join("test", me=0, members=ADDRESSES[:2], protocol=protocol), quire.Group)
    with pytest.raises(quire.BadInput, match=f"^groups of {protocol} are fixed: give the members as a list"):
        quire.join("test", me="a", members={"a": ADDRESSES[0]}, protocol=protocol)


@pytest.mark.parametrize(
    ("chosen", "sentence"),
    [
        ({"me": 3}, "me=3 is not one of the 2 members, which are numbered from 0"),
        ({"me": "0"}, "members in a list are numbered from 0: give me as a number, not '0'"),
        ({"members": {"0": ADDRESSES[0]}}, "me=0 is for members in a list"),
        ({"order": "alphabetic"}, "there is no order 'alphabetic'; choose one of fifo, causal, total"),
        ({"order": None}, "give either an order or a protocol"),
        ({"members": ["127.0.0.1", "127.0.0.1:1"]}, "'127.0.0.1' is not an address; write HOST:PORT"),
        ({"members": ["127.0.0.1:1", "127.0.0.1:1"]}, "its own address"),
        ({"members": ["10.0.0.1:1", "127.0.0.1:1"]}, "not a loopback address: give a secret or certificates"),
        ({"secret": "short"}, "at least 16 bytes"),
        ({"secret": SECRET, "certificates": quire.Certificates.of(Path())}, "not by both"),
    ],
)
def test_what_makes_no_sense_is_refused_in_one_sentence(chosen: dict[str, Any], sentence: str) -> None:
    settings: dict[str, Any] = {"me": 0, "members": ["127.0.0.1:1", "127.0.0.1:2"], "order": "total"} | chosen
    with pytest.raises(quire.BadInput, match=sentence):
        quire.join("test", **settings)


def test_files_have_the_defaults_of_lists() -> None:
    planned = Plan(members=tuple(ADDRESSES[:2]), order="total").dynamic_settings(0)
    joined = member(0, 2).settings
    assert planned.network.timeout_s == joined.network.timeout_s == 1.0
    assert planned.network.join_s == joined.network.join_s
    assert planned.rules == joined.rules
