"""Sequencers that survive: killed, stopped and restarted one after the other, while clients send and notice only a pause."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

import quire
from quire.live.network.transports.memory import MemoryNetwork
from quire.live.runs.collecting import collect
from quire.live.runs.fleet import free_addresses
from quire.live.services.sequencers import Connected, connect, serve
from quire.live.services.surviving.joining import read_register
from quire.live.services.surviving.server import SurvivingServer
from quire.live.settings import read_address
from quire.model.errors import BadInput
from quire.pipeline.auditing.auditor import audit_here
from quire.protocols.sequencing.failover.configurations import Configuration
from quire.protocols.sequencing.notices import Changed, Delivered
from tests.kit.patience import PATIENCE_S
from tests.kit.virtual_time import run_in_virtual_time
from tests.live.running import run

COUNT = 3
SOON_S = 1.0
"""A timeout after which somebody who is silent is missed."""
LONG_S = 100_000
"""Of virtual time."""
SECRET = "a secret of sequencers that survive"


class Crew:
    """Sequencers in memory and in virtual time, each of which can be lost and started again."""

    def __init__(
        self, count: int, backups: int = 1, journals: Path | None = None, timeout_s: float = SOON_S, **options: object
    ) -> None:
        self.journals = journals
        self.sequencers = [f"127.0.0.1:{7000 + me}" for me in range(count)]
        self.servers: dict[int, SurvivingServer] = {}
        self._given: dict[str, Any] = {
            "backups": backups, "options": {"tick_ms": 20, **options}, "timeout_s": timeout_s, "secret": SECRET,
            "transport": "memory",
        }  # fmt: skip

    async def start(self, *numbers: int) -> None:
        for me in numbers:
            journal = None if self.journals is None else self.journals / str(me)
            made = serve(self.sequencers, me, journal=journal, **self._given)
            assert isinstance(made, SurvivingServer)
            self.servers[me] = made
        await asyncio.gather(*(self.servers[me].__aenter__() for me in numbers))

    async def lose(self, me: int) -> None:
        """It ends without a word to anybody."""
        await self.servers.pop(me).__aexit__(RuntimeError, RuntimeError("lost"), None)

    async def leave(self, me: int) -> None:
        await self.servers.pop(me).__aexit__(None, None, None)

    def connect(self) -> Connected:
        return connect(self.sequencers, **self._given)

    def configuration(self, client: Connected, group: str) -> Configuration:
        """Who runs the unit of a group."""
        found = next(iter(self.servers.values()))._register.register().succession.configurations
        return found[client.client.locations[group]]

    def runs(self, client: Connected, group: str) -> int:
        return self.configuration(client, group).primary.address


@asynccontextmanager
async def crew(count: int = COUNT, backups: int = 1, **chosen: Any) -> AsyncIterator[Crew]:
    made = Crew(count, backups, **chosen)
    await made.start(*range(count))
    yield made
    for me in [*made.servers]:
        await made.lose(me)


class Reader:
    """What a client delivers, run by run."""

    def __init__(self, client: Connected) -> None:
        self.messages: list[tuple[int, bytes]] = []
        self._news = asyncio.Event()
        client.on_delivered = self._take

    def _take(self, notice: Delivered | Changed) -> None:
        if isinstance(notice, Delivered):
            self.messages += [(notice.run.origin, payload) for payload in notice.run.payloads()]
            self._news.set()

    async def until(self, count: int) -> None:
        async with asyncio.timeout(PATIENCE_S):
            while len(self.messages) < count:
                self._news.clear()
                await self._news.wait()


async def members(stack: AsyncExitStack, clients: Sequence[Connected], group: str = "tea") -> list[Reader]:
    for client in clients:
        await stack.enter_async_context(client)
    await clients[0].create_group(group)
    for client in clients:
        await client.join_group(group)
    return [Reader(client) for client in clients]


@pytest.mark.parametrize(
    ("order", "backups", "bodies"), [("total", 1, "relay"), ("hybrid", 0, "relay"), ("total", 0, "direct")]
)
def test_clients_go_on_when_the_sequencer_of_their_group_is_lost(order: str, backups: int, bodies: str) -> None:
    async def main() -> None:
        async with crew(backups=backups, order=order, bodies=bodies) as service, AsyncExitStack() as stack:
            clients = [service.connect() for _ in range(2)]
            readers = await members(stack, clients)
            for number in range(20):
                await clients[number % 2].multicast("tea", b"%d" % number)
            await readers[0].until(20)
            await service.lose(service.runs(clients[0], "tea"))
            for number in range(20, 40):
                await clients[number % 2].multicast("tea", b"%d" % number)
            for reader in readers:
                await reader.until(40)
            assert readers[0].messages == readers[1].messages
            assert sorted(int(payload) for _, payload in readers[0].messages) == [*range(40)]

    run_in_virtual_time(asyncio.wait_for(main(), LONG_S))


@pytest.mark.parametrize("backups", [0, 1])
def test_all_sequencers_are_restarted_one_after_the_other_while_clients_send(backups: int) -> None:
    async def main() -> None:
        async with crew(backups=backups) as service, AsyncExitStack() as stack:
            clients = [service.connect() for _ in range(2)]
            readers = await members(stack, clients)
            over, sent = asyncio.Event(), [0, 0]

            async def send(me: int) -> None:
                while not over.is_set():
                    await clients[me].multicast("tea", b"%d" % sent[me])
                    sent[me] += 1
                    await asyncio.sleep(0.002)

            sending = [asyncio.ensure_future(send(me)) for me in range(2)]
            for me in range(COUNT):
                await service.leave(me)
                await service.start(me)
            over.set()
            await asyncio.gather(*sending)
            for reader in readers:
                await reader.until(sum(sent))
            assert readers[0].messages == readers[1].messages
            for me, client in enumerate(clients):
                own = [int(payload) for origin, payload in readers[0].messages if origin == client.me]
                assert own == [*range(sent[me])]

    run_in_virtual_time(asyncio.wait_for(main(), LONG_S))


def test_a_client_that_comes_while_a_sequencer_is_down_is_served() -> None:
    async def main() -> None:
        async with crew() as service, AsyncExitStack() as stack:
            first = service.connect()
            [reader] = await members(stack, [first])
            await service.lose(service.runs(first, "tea"))
            late = await stack.enter_async_context(service.connect())
            await late.multicast("tea", b"late")
            await reader.until(1)
            assert reader.messages == [(late.me, b"late")]

    run_in_virtual_time(asyncio.wait_for(main(), LONG_S))


class Cut:
    """The ways to sequencers, and to their part of the register, are cut for a while."""

    def __init__(self, service: Crew, *sequencers: int) -> None:
        register = read_register(service.sequencers, None)
        self._network = MemoryNetwork.of(asyncio.get_running_loop())
        self._addresses = [read_address(each[me]) for me in sequencers for each in (service.sequencers, register)]

    async def during(self, seconds: float) -> None:
        for address in self._addresses:
            self._network.cut_off(address)
        await asyncio.sleep(seconds)
        for address in self._addresses:
            self._network.mend(address)


@pytest.mark.parametrize("cut_off", range(COUNT))
def test_clients_stay_in_their_groups_when_a_sequencer_was_cut_off_and_is_back(cut_off: int) -> None:
    async def main() -> None:
        async with crew() as service, AsyncExitStack() as stack:
            clients = [service.connect() for _ in range(2)]
            readers = await members(stack, clients)
            await Cut(service, cut_off).during(3 * SOON_S)
            await asyncio.sleep(3 * SOON_S)
            for number, client in enumerate(clients):
                await client.multicast("tea", b"%d" % number)
            for reader in readers:
                await reader.until(2)
            assert {*clients[0].client.views["tea"]} == {client.me for client in clients}
            # Whoever is next to be lost, the one that was cut off can take its place.
            await service.lose((cut_off + 1) % COUNT)
            await clients[0].multicast("tea", b"2")
            await readers[1].until(3)

    run_in_virtual_time(asyncio.wait_for(main(), LONG_S))


def test_without_enough_sequencers_calls_raise_and_what_was_accepted_is_kept() -> None:
    async def main() -> None:
        async with crew() as service, AsyncExitStack() as stack:
            client = service.connect()
            stack.push_async_exit(lambda *_: client.__aexit__(RuntimeError, RuntimeError("it cannot leave"), None))
            await client.__aenter__()
            await client.create_group("tea")
            await client.join_group("tea")
            reader = Reader(client)
            await client.multicast("tea", b"one")
            await client.flushed()
            lost = [me for me in range(COUNT) if me != service.runs(client, "tea")]
            for me in lost:
                await service.lose(me)
            await client.multicast("tea", b"two")
            with pytest.raises(quire.UnitUnavailable, match="tea"):
                await client.flushed()
            with pytest.raises(quire.UnitUnavailable, match="more of them"):
                await client.create_group("coffee")
            assert [payload for _, payload in reader.messages] == [b"one"]

    run_in_virtual_time(asyncio.wait_for(main(), LONG_S))


def test_a_group_is_lost_with_all_who_knew_it_and_the_others_are_not() -> None:
    async def main() -> None:
        async with crew(5) as service, AsyncExitStack() as stack:
            client = await stack.enter_async_context(service.connect())
            for group in ("tea", "cake", "soup", "rice", "milk"):
                await client.create_group(group)
                await client.join_group(group)
            copies = service.configuration(client, "tea").names
            others = [
                group for group in client.client.locations if not {*copies} & {*service.configuration(client, group).names}
            ]
            assert others
            await asyncio.gather(*(service.lose(each.address) for each in copies))
            await service.start(*(each.address for each in copies))
            with pytest.raises(quire.GroupLost, match="tea"):
                async for _ in client:
                    pass
            for ask in (client.join_group, client.create_group, lambda group: client.multicast(group, b"?")):
                with pytest.raises(quire.GroupLost, match="another name"):
                    await ask("tea")
            reader = Reader(client)
            await client.multicast(others[0], b"still here")
            await reader.until(1)

    run_in_virtual_time(asyncio.wait_for(main(), LONG_S))


def test_a_group_without_backups_is_lost_with_a_member_that_is_lost_together_with_its_sequencer() -> None:
    async def main() -> None:
        async with crew(backups=0) as service, AsyncExitStack() as stack:
            stays, goes = service.connect(), service.connect()
            await stack.enter_async_context(stays)
            await goes.__aenter__()
            for group in ("tea", "cake"):
                await stays.create_group(group)
                await stays.join_group(group)
            await goes.join_group("tea")
            await goes._visit.host.stop()  # Without a word, as a process that is killed.
            await service.lose(service.runs(stays, "tea"))
            with pytest.raises(quire.GroupLost, match="tea"):
                async for _ in stays:
                    pass
            with pytest.raises(quire.GroupLost, match="another name"):
                await stays.join_group("tea")
            reader = Reader(stays)
            await stays.multicast("cake", b"still here")
            await reader.until(1)

    run_in_virtual_time(asyncio.wait_for(main(), LONG_S))


def test_who_is_no_member_is_heard_before_and_after_its_sequencer_is_lost() -> None:
    async def main() -> None:
        async with crew(backups=0, order="hybrid") as service, AsyncExitStack() as stack:
            inside = service.connect()
            [reader] = await members(stack, [inside])
            outside = await stack.enter_async_context(service.connect())
            for number in range(3):
                await outside.multicast("tea", b"%d" % number)
                await outside.flushed()
            await service.lose(service.runs(inside, "tea"))
            for number in range(3, 6):
                await outside.multicast("tea", b"%d" % number)
            await outside.flushed()
            await reader.until(6)
            assert [payload for _, payload in reader.messages] == [b"%d" % number for number in range(6)]

    run_in_virtual_time(asyncio.wait_for(main(), LONG_S))


def test_what_cannot_be_a_service_that_survives_is_refused() -> None:
    with pytest.raises(BadInput, match="2 backups need more than 2 sequencers"):
        serve(["127.0.0.1:1", "127.0.0.1:2"], 0, backups=2)
    with pytest.raises(BadInput, match="0 backups need more than 1 sequencers"):
        serve(["127.0.0.1:1"], 0, backups=0)
    with pytest.raises(BadInput, match="pipelined needs a backup"):
        serve(["127.0.0.1:1", "127.0.0.1:2"], 0, backups=0, options={"pipelined": True})
    assert read_register(["127.0.0.1:7400"], None) == ["127.0.0.1:8400"]
    for register, why in ((["127.0.0.1:7401", "127.0.0.1:9"], "1 addresses"), (["127.0.0.1:7400"], "of its own")):
        with pytest.raises(BadInput, match=why):
            read_register(["127.0.0.1:7400"], register)
    with pytest.raises(BadInput, match="give the addresses"):
        read_register(["127.0.0.1:65000"], None)


@pytest.mark.parametrize("backups", [0, 1])
def test_processes_that_are_killed_leave_a_trace_that_proves_the_order(tmp_path: Path, backups: int) -> None:
    addresses = free_addresses(2 * COUNT)
    sequencers, register = addresses[:COUNT], addresses[COUNT:]

    def start(me: int) -> subprocess.Popen[str]:
        command = [str(Path(sys.executable).with_name("quire")), "serve", "--listen", sequencers[me], "--backups", str(backups)]
        peers = ["--peers", ",".join(sequencers), "--register", ",".join(register), "--timeout", "20"]
        journal = ["--journal", str(tmp_path / "journals" / str(me))]
        return subprocess.Popen([*command, *peers, *journal, "--option", "tick_ms=20"], stderr=subprocess.PIPE, text=True)

    async def serves(process: subprocess.Popen[str]) -> None:
        stderr = process.stderr
        assert stderr is not None
        while "serves" not in (line := await asyncio.to_thread(stderr.readline)):
            assert line, "the sequencer ended"

    async def kill(*victims: int) -> None:
        for me in victims:
            processes[me].send_signal(signal.SIGKILL)
        for me in victims:
            await asyncio.to_thread(processes[me].communicate)

    async def main() -> None:
        async with asyncio.timeout(PATIENCE_S), AsyncExitStack() as stack:
            await asyncio.gather(*map(serves, processes))
            options = {"tick_ms": 20}
            clients = [connect(sequencers, backups=backups, options=options, trace=tmp_path / "trace") for _ in range(3)]
            readers = await members(stack, clients)
            for number in range(60):
                if number == 20:
                    await kill(0)
                if number == 30 and not backups:
                    # What they agreed on is on disk, and what they knew the clients know.
                    await kill(1, 2)
                    processes[1:] = start(1), start(2)
                if number == 40:
                    processes[0] = start(0)
                    await asyncio.gather(*map(serves, processes if not backups else processes[:1]))
                    await clients[2].leave_group("tea")
                await clients[number % 2].multicast("tea", b"%d" % number)
            for reader in readers[:2]:
                await reader.until(60)
            assert readers[0].messages == readers[1].messages

    processes = [start(me) for me in range(COUNT)]
    try:
        run(main())
    finally:
        for process in processes:
            process.kill()
            process.communicate()
    summary = collect(tmp_path / "trace", tmp_path / "run")
    assert (summary.messages, summary.complete) == (60, True)
    proof = audit_here(tmp_path / "run")
    assert proof.verdict == "holds", proof
    assert "memberships" in {str(each) for each in proof.expected}
