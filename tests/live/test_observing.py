"""Members that are looked at while they run: what they show, and that looking changes nothing."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, aclosing, asynccontextmanager, suppress
from typing import Any

import msgspec
import pytest

import quire
from quire.http.addresses import read_http_address
from quire.http.client import Client
from quire.live.observing.feed import Observation
from quire.live.observing.status import Status
from quire.live.runs.fleet import free_addresses
from quire.model.errors import BadInput
from quire.trace.kinds import DELIVER, PACKET, SEND
from quire.trace.records import ADDRESS, COUNT, KIND
from quire.trace.tables import as_records
from quire.trace.tail import Excerpt
from tests.kit.patience import PATIENCE_S

NAMES = ("a", "b", "c")


def run(main: Awaitable[None]) -> None:
    async def bounded() -> None:
        await asyncio.wait_for(main, PATIENCE_S)

    asyncio.run(bounded())


async def status_of(address: str) -> Status:
    return msgspec.json.decode(await ask(address, "/status"), type=Status)


async def ask(address: str, path: str) -> bytes:
    client = Client(read_http_address(address))
    try:
        return await client.get(path)
    finally:
        client.close()


async def until(address: str, condition: Callable[[Status], bool]) -> Status:
    """The first status of which this is so."""
    client = Client(read_http_address(address))
    try:
        while not condition(status := msgspec.json.decode(await client.get("/status"), type=Status)):
            await asyncio.sleep(0.005)
        return status
    finally:
        client.close()


@asynccontextmanager
async def changing(**more: Any) -> AsyncIterator[tuple[dict[str, quire.DynamicGroup], dict[str, str]]]:
    """Three members that found a group in memory, and where each is looked at."""
    members = {name: f"127.0.0.1:{7000 + number}" for number, name in enumerate(NAMES)}
    shown = dict(zip(NAMES, free_addresses(len(NAMES)), strict=True))
    groups = {
        name: quire.join("board", me=name, members=members, order="total", transport="memory", observe=shown[name], **more)
        for name in NAMES
    }
    async with AsyncExitStack() as stack:
        await asyncio.gather(*map(stack.enter_async_context, groups.values()))
        yield groups, shown


async def read_all(group: quire.DynamicGroup | quire.Group) -> None:
    async for _ in group:
        pass


def test_a_member_of_a_group_that_changes_shows_its_view_links_and_counts() -> None:
    async def main() -> None:
        async with changing() as (groups, shown):
            readers = [asyncio.create_task(read_all(group)) for group in groups.values()]
            await asyncio.gather(*(group.execute(b"hello") for group in groups.values()))
            status = await until(shown["a"], lambda status: sum(status.delivered.values()) == 3)
            assert (status.group, status.me, status.kind, status.condition) == ("board", "a", "group", "running")
            assert status.view is not None
            assert set(status.view.members) == set(NAMES)
            assert status.delivered == dict.fromkeys(NAMES, 1)
            assert [(link.peer, link.connected) for link in status.links] == [("b", True), ("c", True)]
            metrics = (await ask(shown["a"], "/metrics")).decode()
            assert 'quire_messages_delivered_total{group="board",member="a",origin="b"} 1' in metrics
            assert all(not reader.done() for reader in readers)

    run(main())


def test_a_member_whose_application_reads_nothing_waits_for_itself_and_the_others_for_it() -> None:
    async def main() -> None:
        async with changing() as (groups, shown):
            readers = [asyncio.create_task(read_all(groups[name])) for name in "ab"]
            sender = asyncio.create_task(send(groups["a"]))
            lazy = await until(shown["c"], lambda status: status.condition == "unread")
            assert lazy.waiting[0].waits_for == ("c",)
            assert "has not read" in lazy.waiting[0].because
            held_up = await until(shown["a"], lambda status: any("c" in each.waits_for for each in status.waiting))
            assert any(each.waits_for == ("c",) and "c" in each.because for each in held_up.waiting)
            assert groups["a"].waiting()
            sender.cancel()
            readers.append(asyncio.create_task(read_all(groups["c"])))
            await until(shown["c"], lambda status: status.condition == "running")

    run(main())


async def send(group: quire.DynamicGroup) -> None:
    batch = [b"x" * 8] * 4096
    while True:
        await group.multicast_many(batch)


def test_events_tell_of_views_and_of_whoever_is_lost() -> None:
    async def main() -> None:
        async with changing(timeout_s=0.3) as (groups, shown):
            found: list[Observation] = []
            lost = asyncio.create_task(groups["c"].__aexit__(RuntimeError, None, None))
            async with aclosing(Client(read_http_address(shown["a"])).stream("/events")) as pieces:
                async for piece in pieces:
                    data = [line.removeprefix("data: ") for line in piece.decode().splitlines() if line.startswith("data: ")]
                    found += [msgspec.json.decode(line, type=Observation) for line in data]
                    views = [each for each in found if each.kind == "view"]
                    if views and set(views[-1].peers) == {"a", "b"}:
                        break
            await lost
            assert [each.number for each in found] == sorted({each.number for each in found})
            assert any(each.kind in ("lost", "disconnected") and each.peers == ("c",) for each in found)

    run(main())


def meaning(excerpt: Excerpt) -> list[object]:
    """Records with what the numbers of their addresses, or packet types, mean."""
    records, names = as_records(excerpt.records).tolist(), excerpt.meaning()
    return [
        (
            record[:ADDRESS],
            record[ADDRESS + 1 :],
            (names.packet_types if record[KIND] == PACKET else names.addresses)[record[ADDRESS]],
        )
        for record in records
    ]


def test_the_trace_is_shown_from_any_record_on_and_without_payloads() -> None:
    async def main() -> None:
        async with changing() as (groups, shown):
            for name, group in groups.items():
                readers = asyncio.create_task(read_all(group))
                await group.execute(f"secret of {name}".encode())
                assert not readers.done()
            body = await ask(shown["a"], "/trace")
            whole = msgspec.msgpack.decode(body, type=Excerpt)
            assert b"secret" not in body
            assert whole.description is not None
            assert whole.description.name == "a"
            records = as_records(whole.records)
            assert sum(records[records[:, KIND] == DELIVER][:, COUNT]) == 3
            assert sum(records[records[:, KIND] == SEND][:, COUNT]) == 1
            rest = msgspec.msgpack.decode(await ask(shown["a"], "/trace?since=2"), type=Excerpt)
            assert (rest.first, rest.rows) == (2, 2)
            assert meaning(rest)[: whole.until - 2] == meaning(whole)[2:], "more may have come since"
            assert rest.lamport >= whole.lamport

    run(main())


def test_what_waits_for_others_to_come_can_be_looked_at() -> None:
    async def main() -> None:
        (shown,) = free_addresses(1)
        members = {"a": "127.0.0.1:7000", "b": "127.0.0.1:7001"}
        group = quire.join("board", me="a", members=members, order="total", transport="memory", observe=shown)
        joining = asyncio.create_task(group.__aenter__())
        while not joining.done():
            try:
                status = await status_of(shown)
                break
            except quire.QuireError:
                await asyncio.sleep(0.005)
        assert (status.condition, status.why) == ("joining", "waiting for b (127.0.0.1:7001)")
        joining.cancel()
        with pytest.raises(asyncio.CancelledError):
            await joining

    run(main())


def test_a_member_of_a_fixed_group_shows_the_same() -> None:
    async def main() -> None:
        members = ["127.0.0.1:7000", "127.0.0.1:7001"]
        shown = list(free_addresses(2))
        groups = [
            quire.join("board", me=me, members=members, protocol="two-phase", transport="memory", observe=shown[me])
            for me in range(2)
        ]
        async with together(groups):
            readers = [asyncio.create_task(read_all(group)) for group in groups]
            await groups[1].execute(b"hello")
            status = await until(shown[0], lambda status: sum(status.delivered.values()) == 1)
            assert (status.kind, status.condition, status.delivered) == ("group", "running", {"0": 0, "1": 1})
            excerpt = msgspec.msgpack.decode(await ask(shown[0], "/trace"), type=Excerpt)
            assert sum(as_records(excerpt.records)[:, KIND] == DELIVER) == 1
            assert all(not reader.done() for reader in readers)

    run(main())


@asynccontextmanager
async def together(members: Sequence[Any]) -> AsyncIterator[None]:
    """They come and go at the same time, as processes do."""
    await asyncio.gather(*(member.__aenter__() for member in members))
    yield
    await asyncio.gather(*(member.__aexit__(None, None, None) for member in members))


def tiles(status: Status) -> dict[str, Any]:
    return {tile.name: tile.value for tile in status.tiles}


def test_sequencers_and_clients_have_their_own_tiles() -> None:
    async def main() -> None:
        shown = list(free_addresses(2))
        server = quire.serve(["127.0.0.1:7000"], transport="memory", observe=shown[0])
        async with server, quire.connect(["127.0.0.1:7000"], me=0, transport="memory", observe=shown[1]) as client:
            await client.create_group("tea")
            await client.join_group("tea")
            await client.multicast("tea", b"hello")
            status = await until(shown[0], lambda status: tiles(status)["messages numbered"] > 0)
            assert status.kind == "sequencer"
            assert tiles(status)["groups here"] == 1
            assert tiles(await status_of(shown[1]))["groups joined"] == 1
            metrics = (await ask(shown[0], "/metrics")).decode()
            assert "quire_sequencer_groups_here" in metrics

    run(main())


def test_stores_show_transactions_that_are_open_and_why_some_were_aborted() -> None:
    async def main() -> None:
        members = [f"127.0.0.1:{7000 + number}" for number in range(3)]
        shown = list(free_addresses(3))
        stores = [
            quire.join_store("shop", me=me, members=members, replicas=2, transport="memory", observe=shown[me])
            for me in range(3)
        ]
        async with together(stores):
            store = stores[2].store
            with suppress(RuntimeError):
                async with store.transaction() as transaction:
                    await transaction.write("k", b"1")
                    assert tiles(await status_of(shown[2]))["transactions open"] == 1
                    raise RuntimeError
            async with store.transaction() as transaction:
                await transaction.write("k", b"1")
            status = await status_of(shown[2])
            assert (tiles(status)["committed"], tiles(status)["aborted"]) == (1, 1)
            assert "runtime error: 1" in next(tile.note for tile in status.tiles if tile.name == "aborted")
            assert tiles(await status_of(shown[0]))["keys"] == 1

    run(main())


class Counter(quire.Object):
    def __init__(self) -> None:
        self.value = 0
        self.may_end = asyncio.Event()

    @quire.operation(calls=False)
    async def add(self, call: quire.Call) -> int:
        await self.may_end.wait()
        self.value += 1
        return self.value


def test_objects_show_calls_that_wait_for_a_conflict() -> None:
    async def main() -> None:
        members = [f"127.0.0.1:{7000 + number}" for number in range(2)]
        shown = list(free_addresses(2))
        placed = {"counter": quire.place(Counter, 0)}
        groups = [
            quire.join_objects("calls", me=me, members=members, objects=placed, transport="memory", observe=shown[me])
            for me in range(2)
        ]
        async with together(groups):
            calls = [asyncio.create_task(group.invoke("counter", "add")) for group in groups]
            status = await until(shown[0], lambda status: tiles(status)["calls in conflict"] == 1)
            assert "add at counter conflicts with add that runs there" in status.waiting[0].because
            counter = groups[0].objects["counter"]
            assert isinstance(counter, Counter)
            counter.may_end.set()
            assert sorted(await asyncio.gather(*calls)) == [1, 2]

    run(main())


def test_options_that_make_no_sense_are_refused() -> None:
    members = {"a": "127.0.0.1:7000"}
    for wrong in (
        {"observe": "0.0.0.0:9400"},
        {"observe": "nowhere"},
        {"observe_token": "x" * 20},
        {"observe": "0.0.0.0:9400", "observe_token": "short"},
    ):
        with pytest.raises(BadInput):
            quire.join("board", me="a", members=members, order="total", **wrong)  # type: ignore[call-overload]
