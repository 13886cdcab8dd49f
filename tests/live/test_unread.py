"""An application that does not read: what waits for it is bounded, it says so itself, and the others wait only so long."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable
from contextlib import AsyncExitStack

import msgspec
import pytest

from quire.live import Group
from quire.live.events import Event
from quire.live.inbox import Inbox
from quire.live.runs.fleet import free_addresses
from quire.live.services.laggards import LOOK_S_MAX, Laggards
from quire.live.services.sequencers import Connected, connect, serve
from quire.live.services.session import GroupMessage, Membership
from quire.live.settings import Settings
from quire.protocols.sequencing import Sequencer
from quire.protocols.sequencing.combined_sequencer import CombinedSequencer
from quire.protocols.sequencing.errors import Evicted
from tests.kit.patience import PATIENCE_S
from tests.kit.virtual_time import run_in_virtual_time
from tests.live.running import made_of, run

MIB = 1 << 20
Addresses = Callable[[int], list[str]]

SLOW = """
import asyncio, json, re, sys
from pathlib import Path
import quire

async def main():
    events = []
    client = quire.connect(sys.argv[1], options=OPTIONS, timeout_s=4, on_event=lambda event: events.append(event.kind))
    await client.__aenter__()
    await client.join_group("room")
    print("joined", flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    waiting, taken = client.waiting(), 0
    try:
        async for delivery in client:
            taken += 1
    except quire.QuireError as error:
        said = str(error)
    print(json.dumps({
        "peak_kib": int(re.search(r"VmHWM:\\s*(\\d+)", Path("/proc/self/status").read_text())[1]),
        "waits_for_itself": [held.waits_for == (client.me,) for held in waiting],
        "first": [(held.origin, held.first) for held in waiting],
        "because": [held.because for held in waiting],
        "events": events, "taken": taken, "error": said,
    }))
    import os
    os._exit(0)

asyncio.run(main())
"""


async def all_of(client: Connected, count: int) -> int:
    """How many bytes so many messages have."""
    size = 0
    async for delivery in client:
        if isinstance(delivery, GroupMessage):
            size += len(delivery.payload)
            count -= 1
            if not count:
                break
    return size


@pytest.mark.parametrize("bodies", ["relay", "direct"])
def test_a_client_that_never_reads_keeps_a_bounded_part_and_is_evicted_when_others_wait_for_it(bodies: str) -> None:
    count, size = 286, MIB

    async def main() -> None:
        [address] = free_addresses(1)
        origin, happened = 0, list[Event]()
        options = {"bodies": bodies}
        async with (
            serve([address], timeout_s=3, options=options, on_event=happened.append),
            connect(address, timeout_s=60, options=options) as sender,
            connect(address, timeout_s=60, options=options) as reader,
        ):
            origin = sender.me
            await sender.create_group("room")
            await reader.join_group("room")
            program = SLOW.replace("OPTIONS", str(options))
            slow = await asyncio.create_subprocess_exec(
                sys.executable, "-c", program, address, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
            )
            try:
                assert slow.stdout is not None
                assert await slow.stdout.readline() == b"joined\n"
                reading = asyncio.create_task(all_of(reader, count))
                for number in range(count):
                    await sender.multicast("room", bytes([number % 251]) * size)
                assert await reading == count * size
                said = json.loads((await slow.communicate(b""))[0])
            finally:
                if slow.returncode is None:
                    slow.kill()
                    await slow.wait()
        assert [event.kind for event in happened].count("evicted") == 1
        # 64 MiB wait for the application; the interpreter, a message on its way and its copies come on top.
        assert said["peak_kib"] < 220 * 1024
        assert 64 * MIB // size <= said["taken"] < 100
        assert said["waits_for_itself"] == [True]
        assert said["first"] == [[origin, 0]]
        assert "the application has not read" in said["because"][0]
        assert "unread" in said["events"]
        assert "others waited" in said["error"]

    run(main())


def small(settings: Settings) -> Settings:
    return msgspec.structs.replace(settings, inbox_messages_max=10)


def test_a_client_that_reads_slowly_gets_everything_and_stays() -> None:
    """The others go at its pace, because it moves, and none of its waits is longer than the timeout."""

    async def main() -> None:
        [address] = free_addresses(1)
        options = {"history": 20, "window": 20, "tick_ms": 5}
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(serve([address], timeout_s=5, options=options))
            sender = await stack.enter_async_context(connect(address, options=options))
            slow = await stack.enter_async_context(Connected(small(connect(address, options=options).settings)))
            await sender.create_group("room")
            await slow.join_group("room")
            sending = asyncio.create_task(sender.multicast_many("room", [b"%d" % number for number in range(2000)]))
            assert await asyncio.wait_for(all_of(slow, 2000), PATIENCE_S) == sum(len(str(number)) for number in range(2000))
            await sending

    asyncio.run(main())


def test_a_client_that_holds_up_only_itself_is_left_alone() -> None:
    async def main() -> None:
        address = "127.0.0.1:7000"
        options = {"history": 20, "window": 20, "tick_ms": 5}
        async with serve([address], timeout_s=5, options=options, transport="memory") as server:
            client = Connected(small(connect(address, options=options, timeout_s=60, transport="memory").settings))
            await client.__aenter__()
            await client.create_group("room")
            await client.join_group("room")
            sending = asyncio.create_task(client.multicast_many("room", [b"x"] * 200))
            while not client.waiting():
                await asyncio.sleep(0.01)
            await asyncio.sleep(50)
            assert client.me in server.host._mesh.peers
            assert await all_of(client, 200) == 200
            await sending
            await client.__aexit__(None, None, None)

    run_in_virtual_time(main())


def test_others_wait_for_who_does_not_move_as_long_as_the_timeout_and_no_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr("quire.live.services.laggards.clock.now", lambda: now)
    laggards = Laggards(5.0)

    def look(**places: int) -> list[int]:
        nonlocal now
        now += 1.0
        return [client for client, _ in laggards.look({int(name[1:]): ("room", at) for name, at in places.items()})]

    assert not any(look(c1=7, c2=at) for at in range(6))
    assert look(c1=7, c2=9) == [1], "the other one moves"
    assert not look(c2=9)
    now += 1000
    assert not look(c2=9), "this process was not there"
    assert LOOK_S_MAX < 5.0
    assert not look(), "nobody waits any more"
    assert not any(look(c2=9) for _ in range(6))
    assert look(c2=9) == [2]


def test_an_inbox_is_full_by_messages_or_bytes_and_tells_its_news_once() -> None:
    inbox: Inbox[str] = Inbox(10, 100)
    inbox.put("long", 1, 101)
    assert inbox.is_full()
    unread = inbox.news(3, -1.0)
    assert unread is not None
    assert (unread.kind, unread.peers) == ("unread", (3,))
    assert inbox.news(3, -1.0) is None
    assert inbox.take() == "long"
    assert inbox.news(3, -1.0) == Event("recovered", (3,))
    inbox.put("many", 11, 0)
    assert inbox.is_full()
    assert inbox.take() == "many"
    assert inbox.unread_s() is None


@pytest.mark.parametrize(("messages", "size"), [(1, 10), (0, 20)])
def test_an_inbox_has_room_again_when_a_sixteenth_is_free_of_messages_and_of_bytes(messages: int, size: int) -> None:
    inbox: Inbox[int] = Inbox(16, 320)
    for number in range(17):
        inbox.put(number, messages, size)
    assert inbox.is_full()
    inbox.take()
    assert inbox.unread_s() is not None
    inbox.take()
    assert inbox.unread_s() is None


def test_a_member_whose_application_does_not_read_says_so_and_so_do_the_others(addresses: Addresses) -> None:
    where, happened = addresses(2), list[Event]()

    async def main() -> None:
        others: list[Event] = []
        stalled, unread, recovered = asyncio.Event(), asyncio.Event(), asyncio.Event()

        def at_the_other(event: Event) -> None:
            others.append(event)
            if "application" in event.why:
                stalled.set()

        def here(event: Event) -> None:
            happened.append(event)
            if event.kind == "unread":
                unread.set()
            if event == Event("recovered", (1,)):
                recovered.set()

        settings = [made_of(where, me, protocol="matrix", timeout_s=2, link_bytes_max=1 << 16) for me in range(2)]
        groups = [Group(settings[0], on_event=at_the_other), Group(small(settings[1]), on_event=here)]
        await asyncio.gather(*(group.__aenter__() for group in groups))
        sender, slow = groups
        taking = asyncio.create_task(take(sender))

        async def send() -> None:
            for number in range(200):
                await sender.multicast(bytes([number]) * 10_000)

        sending = asyncio.create_task(send())
        await asyncio.gather(stalled.wait(), unread.wait())
        (held,) = slow.waiting()
        assert (held.origin, held.first, held.waits_for) == (0, 0, (1,))
        assert "the application has not read" in held.because
        assert held.since_s > 0
        assert [event.peers for event in happened if event.kind == "unread"] == [(1,)]
        assert not [event for event in others if event.kind == "unread"]
        taken = asyncio.create_task(take(slow))
        await recovered.wait()
        await sending
        await asyncio.gather(*(group.close() for group in groups))
        assert await taken == await taking == [bytes([number]) for number in range(200)]

    run(main())


async def take(group: Group) -> list[bytes]:
    return [message.payload[:1] async for message in group]


def test_what_waits_for_a_member_that_does_not_read_is_not_blamed_on_its_clock() -> None:
    where = [f"127.0.0.1:{7000 + me}" for me in range(3)]

    async def main() -> None:
        settings = [made_of(where, me, timeout_s=2, transport="memory") for me in range(3)]
        groups = [Group(settings[0]), Group(settings[1]), Group(small(settings[2]))]
        await asyncio.gather(*(group.__aenter__() for group in groups))
        taking = [asyncio.create_task(take(group)) for group in groups[:2]]
        await groups[0].multicast_many([b"x"] * 100)
        while not groups[2].waiting():
            await asyncio.sleep(0.05)
        sent = 100
        while not any("the application of member 2 does not read" in held.because for held in groups[0].waiting()):
            await groups[0].multicast(b"after that")
            sent += 1
            await asyncio.sleep(0.05)
        taking.append(asyncio.create_task(take(groups[2])))
        await asyncio.gather(*(group.close() for group in groups))
        assert [len(await each) for each in taking] == [sent] * 3

    run_in_virtual_time(main())


@pytest.mark.parametrize("count", [1, 2])
def test_who_is_evicted_for_not_reading_leaves_its_groups_for_everybody(count: int) -> None:
    """Whichever sequencer finds out, the directory's own or another."""

    async def main() -> None:
        addresses = [f"127.0.0.1:{7000 + me}" for me in range(count)]
        options = {"history": 20, "window": 20, "tick_ms": 5, "balance_ticks": 0}
        async with AsyncExitStack() as stack:
            servers = [serve(addresses, me, timeout_s=3, options=options, transport="memory") for me in range(count)]
            await asyncio.gather(*(stack.enter_async_context(server) for server in servers))
            sender = await stack.enter_async_context(connect(addresses, options=options, timeout_s=60, transport="memory"))
            await sender.create_group("room")
            await sender.join_group("room")
            node = servers[-1].host.node
            numbering = node.sequencer if isinstance(node, CombinedSequencer) else node
            assert isinstance(numbering, Sequencer)
            sender.move_group("room", count - 1)
            while "room" not in numbering.groups:
                await asyncio.sleep(0.01)
            slow = Connected(small(connect(addresses, options=options, timeout_s=60, transport="memory").settings))
            await slow.__aenter__()
            await slow.join_group("room")
            sending = asyncio.create_task(sender.multicast_many("room", [b"x"] * 500))
            async for delivery in sender:
                if isinstance(delivery, Membership) and delivery.change == "leave":
                    assert delivery.who == slow.me
                    break
            assert await all_of(sender, 10)
            await sending
            with pytest.raises(Evicted, match="others waited"):
                await all_of(slow, 501)
            with pytest.raises(Evicted):
                await slow.__aexit__(None, None, None)

    run_in_virtual_time(main())
