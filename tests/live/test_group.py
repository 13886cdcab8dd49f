"""A fixed group as an application sees it. `dynamic/test_lists.py` has the same of groups whose members change."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Any

import pytest

from quire.live import Event, Group, GroupClosed, MemberUnreachable, NotDelivered, join
from quire.model.errors import BadInput
from quire.model.messages import Message
from quire.protocols.registry import PROTOCOLS
from tests.kit.patience import PATIENCE_S
from tests.kit.virtual_time import run_in_virtual_time
from tests.live.running import FIXED, in_memory

Addresses = Callable[[int], list[str]]


def with_groups(addresses: list[str], act: Callable[[list[Group]], Awaitable[None]], **chosen: Any) -> None:
    """Enter all members, act, and close them together, as separate processes would."""
    settings: dict[str, Any] = {"timeout_s": 5.0, "protocol": "two-phase"} | chosen

    async def main() -> None:
        groups = [join("test", me=me, members=addresses, **settings) for me in range(len(addresses))]
        async with AsyncExitStack() as stack:
            await asyncio.gather(*(stack.enter_async_context(group) for group in groups))
            await act(groups)
            await asyncio.gather(*(group.close() for group in groups))

    asyncio.run(asyncio.wait_for(main(), PATIENCE_S))


async def take(group: Group, count: int) -> list[Message]:
    found: list[Message] = []
    async for message in group:
        found.append(message)
        if len(found) == count:
            break
    return found


def test_what_is_sent_at_once_goes_in_runs_that_fit_into_the_window(addresses: Addresses) -> None:
    async def act(groups: list[Group]) -> None:
        await asyncio.gather(*(groups[0].multicast(b"%d" % number) for number in range(50)))
        for group in groups:
            assert [message.payload for message in await take(group, 50)] == [b"%d" % number for number in range(50)]

    with_groups(addresses(3), act, options={"outstanding": 4})


@pytest.mark.parametrize("protocol", FIXED)
def test_every_member_delivers_every_message_of_all(addresses: Addresses, protocol: str) -> None:
    async def act(groups: list[Group]) -> None:
        for number in range(20):
            await asyncio.gather(*(group.multicast(f"{group.me}/{number}".encode()) for group in groups))
        logs = await asyncio.gather(*(take(group, 60) for group in groups))
        for log in logs:
            assert {(m.origin, m.seq, m.payload) for m in log} == {
                (o, s, f"{o}/{s}".encode()) for o in range(3) for s in range(20)
            }
        if "total" in PROTOCOLS[protocol].protocol.promises:
            assert logs[0] == logs[1] == logs[2]
            keys = [m.order_key for m in logs[0]]
            assert keys == sorted(set(keys), key=lambda key: key or ())

    with_groups(addresses(3), act, protocol=protocol)


def test_execute_returns_the_message_with_its_place_after_local_delivery(addresses: Addresses) -> None:
    async def act(groups: list[Group]) -> None:
        first = await groups[1].execute(b"a")
        second = await groups[0].execute(b"b")
        assert (first.origin, first.seq, first.payload) == (1, 0, b"a")
        assert first.order_key is not None
        assert second.order_key is not None
        assert first.order_key < second.order_key

    with_groups(addresses(2), act)


def test_futures_of_pipelined_submissions_are_done_in_order(addresses: Addresses) -> None:
    async def act(groups: list[Group]) -> None:
        done: list[int] = []
        futures = [groups[0].submit(bytes([number])) for number in range(100)]
        for future in futures:
            future.add_done_callback(lambda f: done.append(f.result().seq))
        await asyncio.gather(*futures)
        await asyncio.sleep(0)
        assert done == list(range(100))

    with_groups(addresses(3), act)


def test_messages_of_any_length_arrive_as_they_were(addresses: Addresses) -> None:
    payloads = [b"", b"x", b"y" * 1000, bytes(range(256)) * 2000, b""]

    async def act(groups: list[Group]) -> None:
        await groups[0].multicast_many(payloads)
        assert [m.payload for m in await take(groups[1], len(payloads))] == payloads

    with_groups(addresses(2), act)


def test_a_lone_member_is_a_group_too(addresses: Addresses) -> None:
    async def act(groups: list[Group]) -> None:
        assert (await groups[0].execute(b"alone")).payload == b"alone"

    with_groups(addresses(1), act)


def test_closing_delivers_everything_first_and_ends_the_iteration(addresses: Addresses) -> None:
    async def act(groups: list[Group]) -> None:
        async def drain(group: Group) -> int:
            return len([message async for message in group])

        counting = [asyncio.ensure_future(drain(group)) for group in groups]
        await asyncio.sleep(0)
        for group in groups:
            await group.multicast_many([b"z"] * 5000)
        await groups[1].close()
        assert await asyncio.gather(*counting) == [15000, 15000, 15000]
        with pytest.raises(GroupClosed, match="closing"):
            await groups[0].multicast(b"late")

    with_groups(addresses(3), act)


def test_a_member_that_never_comes_is_named(addresses: Addresses) -> None:
    async def main() -> None:
        with pytest.raises(MemberUnreachable, match=r"member 1 \(127\.0\.0\.1:\d+\) has been unreachable"):
            async with join("test", me=0, members=addresses(2), protocol="matrix", join_s=0.3):
                pass

    asyncio.run(main())


def test_a_lost_member_is_reported_at_every_other_and_nobody_hangs(addresses: Addresses) -> None:
    async def main() -> None:
        where = addresses(3)
        groups = [join("test", me=me, members=where, protocol="two-phase", timeout_s=0.5) for me in range(3)]
        await asyncio.gather(*(group.__aenter__() for group in groups))
        await groups[2]._mesh.stop()

        async def listen(group: Group) -> None:
            async for _ in group:
                pass

        for group in groups[:2]:
            with pytest.raises(MemberUnreachable, match="member 2"):
                await asyncio.wait_for(listen(group), PATIENCE_S)
            with pytest.raises(MemberUnreachable, match="member 2"):
                await group.execute(b"x")
            with pytest.raises(NotDelivered):
                await group.close()

    asyncio.run(main())


def test_what_is_held_back_names_whom_it_waits_for(addresses: Addresses) -> None:
    async def act(groups: list[Group]) -> None:
        await groups[1].submit(b"goes")
        groups[2]._mesh.pause()
        future = groups[1].submit(b"waits")
        while [held.waits_for for held in groups[1].waiting()] != [(2,)]:
            await asyncio.sleep(0.001)
        (held,) = groups[1].waiting()
        assert (held.origin, held.first, held.count) == (1, 1, 1)
        assert held.since_s >= 0
        assert held.because
        groups[2]._mesh.resume()
        await future

    with_groups(addresses(3), act)


def test_a_slow_application_slows_the_senders_and_nothing_grows() -> None:
    async def main() -> None:
        groups = [in_memory(me, timeout_s=5) for me in range(2)]
        await asyncio.gather(*(group.__aenter__() for group in groups))
        for group in groups:
            group._inbox._messages_max = 5000
        sent = 0

        async def flood() -> None:
            nonlocal sent
            while True:
                await groups[0].multicast_many([b"x" * 100] * 500)
                sent += 500

        async def listen() -> int:
            return len([message async for message in groups[0]])

        listening, flooding = asyncio.ensure_future(listen()), asyncio.ensure_future(flood())
        await asyncio.sleep(1)
        stuck_at = sent
        await asyncio.sleep(1)
        assert sent == stuck_at > 0, "member 1 takes nothing, so member 0 must come to a stop"
        assert groups[1]._inbox.messages < 5000 + 2 * groups[1].settings.run_messages_max
        flooding.cancel()
        await asyncio.gather(*(group.close() for group in groups))
        assert sent <= await listening <= sent + 500, "of the last that were to be sent, some may have been"

    run_in_virtual_time(main())


def test_a_peer_that_takes_nothing_is_reported_by_name_and_for_how_long(addresses: Addresses) -> None:
    async def main() -> None:
        where, events = addresses(3), list[Event]()
        listeners = (events.append, None, None)
        groups = [
            join("test", me=me, members=where, protocol="two-phase", timeout_s=2.0, on_event=listeners[me]) for me in range(3)
        ]
        await asyncio.gather(*(group.__aenter__() for group in groups))
        await groups[1].execute(b"goes")
        groups[2]._mesh.pause()
        await groups[1].multicast(b"waits")
        await groups[0].multicast(b"and this")
        while not {"stalled", "gap"} <= {event.kind for event in events}:
            await asyncio.sleep(0.05)
        groups[2]._mesh.resume()
        while "recovered" not in {event.kind for event in events}:
            await asyncio.sleep(0.05)
        await asyncio.gather(*(group.close() for group in groups))
        (gap, *_) = [event for event in events if event.kind == "gap"]
        (stall, *_) = [event for event in events if event.kind == "stalled"]
        assert stall.peers == gap.peers == (2,)
        assert stall.for_s >= 0.5
        assert "is held back" in gap.why
        assert [event.peers for event in events if event.kind == "connected"]

    asyncio.run(asyncio.wait_for(main(), PATIENCE_S))


def test_metrics_are_prometheus_text(addresses: Addresses) -> None:
    async def act(groups: list[Group]) -> None:
        await groups[0].execute(b"x")
        text = groups[0].metrics()
        assert 'quire_messages_sent_total{group="test",member="0"} 1\n' in text
        assert 'quire_link_up{group="test",member="0",peer="1"} 1\n' in text
        assert text.count("# TYPE quire_link_up gauge") == 1

    with_groups(addresses(3), act)


@pytest.mark.parametrize(
    ("chosen", "sentence"),
    [
        ({"me": 3}, "me=3 is not one of the 2 members"),
        ({"order": "alphabetic"}, "there is no order 'alphabetic'; choose one of fifo, causal, total"),
        ({"order": None}, "give either an order or a protocol"),
        ({"members": ["127.0.0.1", "127.0.0.1:1"]}, "'127.0.0.1' is not an address; write HOST:PORT"),
        ({"members": ["127.0.0.1:1", "127.0.0.1:1"]}, "its own address"),
        ({"members": ["10.0.0.1:1", "127.0.0.1:1"]}, "not a loopback address: give a secret or certificates"),
        ({"secret": "short"}, "at least 16 bytes"),
        ({"timeout_s": 0.0}, "timeout_s must be"),
        ({"join_s": 0.0}, "join_s must be"),
        ({"group": ""}, "needs a name"),
    ],
)
def test_what_makes_no_sense_is_refused_in_one_sentence(chosen: dict[str, Any], sentence: str) -> None:
    settings: dict[str, Any] = {"group": "test", "me": 0, "members": ["127.0.0.1:1", "127.0.0.1:2"], "order": "total"} | chosen
    with pytest.raises(BadInput, match=sentence):
        join(settings.pop("group"), **settings)
