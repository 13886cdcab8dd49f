"""Bodies that go from client to client of a service, over real sockets: nothing is lost, whoever comes, goes or is killed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from random import Random

import pytest

from quire.live.runs.fleet import free_addresses
from quire.live.services.sequencers import Connected, connect, serve
from quire.live.services.session import GroupMessage, Membership
from quire.model.errors import BadInput
from quire.protocols.node import Send
from quire.protocols.sequencing import packets as wire
from quire.protocols.sequencing.events import MESSAGES, Event
from tests.kit.patience import PATIENCE_S

SECRET = "a secret of a service in a test"
OPTIONS = {"bodies": "direct", "tick_ms": 20}


@asynccontextmanager
async def service(count: int = 1, timeout_s: float = 20.0, **more: object) -> AsyncIterator[tuple[str, ...]]:
    addresses = free_addresses(count)
    secret = more.pop("secret", None)
    async with AsyncExitStack() as stack:
        servers = [
            serve(addresses, me, options={**OPTIONS, **more}, timeout_s=timeout_s, secret=secret)  # type: ignore[arg-type]
            for me in range(count)
        ]
        await asyncio.gather(*(stack.enter_async_context(server) for server in servers))
        yield addresses


@asynccontextmanager
async def visitors(addresses: tuple[str, ...], count: int, **more: object) -> AsyncIterator[list[Connected]]:
    """So many clients, which leave together."""
    clients = [connect(addresses, options=OPTIONS, **more) for _ in range(count)]  # type: ignore[arg-type]
    for client in clients:
        await client.__aenter__()
    yield clients
    await asyncio.gather(*(client.__aexit__(None, None, None) for client in clients))


async def until(done: object) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not done():  # type: ignore[operator]
            await asyncio.sleep(0.005)


def links(*clients: Connected) -> bool:
    """Whether all of them have links to each other."""
    everybody = {client.me for client in clients}
    return all(client._roster.linked == everybody - {client.me} for client in clients)


async def payloads(client: Connected, count: int) -> list[bytes]:
    taken: list[bytes] = []
    async with asyncio.timeout(PATIENCE_S):
        async for delivery in client:
            if isinstance(delivery, GroupMessage):
                taken.append(delivery.payload)
                if len(taken) == count:
                    break
    return taken


def spy(client: Connected) -> Iterator[list[Event]]:
    """What comes to a client from its sequencers with bodies elsewhere, and with bodies."""
    direct: list[Event] = []
    relayed: list[Event] = []
    receive = client.client.receive

    def watched(now: int, source: int, packet: object) -> object:
        if isinstance(packet, Event) and packet.kind == MESSAGES:
            (direct if packet.direct else relayed).append(packet)
        return receive(now, source, packet)  # type: ignore[arg-type]

    client.client.receive = watched  # type: ignore[method-assign, assignment]
    yield direct
    yield relayed


async def join_all(clients: list[Connected], group: str = "tea") -> None:
    for client in clients:
        await client.create_group(group)
        await client.join_group(group)


@pytest.mark.parametrize("secret", [None, SECRET])
def test_bodies_go_from_client_to_client_and_numbers_through_the_sequencer(secret: str | None) -> None:
    async def main() -> None:
        async with service(secret=secret) as addresses, visitors(addresses, 3, secret=secret) as clients:
            await join_all(clients)
            await until(lambda: links(*clients))
            direct, relayed = spy(clients[0])
            for number in range(20):
                for client in clients:
                    await client.multicast("tea", b"%d of %d" % (number, client.me))
                await asyncio.sleep(0.002)
            taken = [await payloads(client, 60) for client in clients]
            assert taken[0] == taken[1] == taken[2]
            assert len(set(taken[0])) == 60
            assert direct
            assert not relayed
            await clients[0].leave_group("tea")
            await until(lambda: not clients[0]._roster.linked and links(*clients[1:]))

    asyncio.run(main())


def test_a_client_that_cannot_be_reached_gets_everything_by_the_sequencer() -> None:
    async def main() -> None:
        async with service() as addresses, visitors(addresses, 3) as clients:
            clients.sort(key=lambda client: client.me)
            clients[0].client.at = ""  # The others, whose numbers are higher, cannot connect to it.
            await join_all(clients)
            await until(lambda: links(*clients[1:]))
            for client in clients:
                await client.multicast("tea", b"from %d" % client.me)
            taken = [await payloads(client, 3) for client in clients]
            assert taken[0] == taken[1] == taken[2]
            assert not clients[0]._roster.linked

    asyncio.run(main())


@pytest.mark.parametrize("seed", range(3))
def test_nothing_is_lost_while_clients_come_and_go_groups_move_and_links_break(seed: int) -> None:
    random = Random(seed)

    async def wander(client: Connected, stays: bool) -> list[object]:
        seen: list[object] = []
        client.on_delivered = seen.append
        for number in range(40):
            await client.multicast(random.choice(("g", "h")), b"%d %d" % (client.me, number))
            if random.random() < 0.3:
                await asyncio.sleep(random.random() * 0.03)
            if not stays and random.random() < 0.15:
                group = random.choice(("g", "h"))
                inside = group in client.client.hold.delivered
                await (client.leave_group if inside else client.join_group)(group)
            if random.random() < 0.1:
                client.move_group(random.choice(("g", "h")), random.randrange(2))
            if random.random() < 0.1 and client._roster.linked:
                broken = client._visit.host._mesh.peers[random.choice(sorted(client._roster.linked))].connection
                if broken is not None:
                    broken.close("for the test", at_once=True)
        await client.flushed()
        return seen

    async def main() -> None:
        async with service(2) as addresses, visitors(addresses, 4) as clients:
            await join_all(clients, "g")
            await join_all(clients, "h")
            direct, relayed = spy(clients[0])
            async with asyncio.timeout(PATIENCE_S):
                seen = await asyncio.gather(*(wander(client, index < 2) for index, client in enumerate(clients)))
                await until(lambda: _messages(seen[0]).keys() == _messages(seen[1]).keys() and len(_messages(seen[0])) == 160)
            assert direct
            assert relayed
            whole = _messages(seen[0])
            for each in seen:
                assert whole.items() >= _messages(each).items()
            assert sorted(whole.values()) == sorted(b"%d %d" % (client.me, n) for client in clients for n in range(40))

    asyncio.run(main())


def _messages(seen: list[object]) -> dict[tuple[str, int], bytes]:
    """What was delivered, by group and number."""
    return {
        (each.group, number): payload  # type: ignore[attr-defined]
        for each in seen
        if hasattr(each, "run")
        for number, payload in enumerate(each.run.payloads(), each.seq)  # type: ignore[attr-defined]
    }


@pytest.mark.parametrize("silent", [False, True])
def test_a_client_that_is_killed_or_falls_silent_holds_nobody_up(silent: bool) -> None:
    async def main() -> None:
        async with service(timeout_s=2.0) as addresses, visitors(addresses, 2, timeout_s=2.0) as clients:
            lost = connect(addresses, options=OPTIONS, timeout_s=2.0)
            await lost.__aenter__()
            await join_all([*clients, lost])
            await until(lambda: links(*clients, lost))
            for number in range(5):
                await lost.multicast("tea", b"last words %d" % number)
            await asyncio.sleep(0)
            if silent:
                lost._visit.host.pause()
                for task in lost._visit.host._mesh._tasks:
                    task.cancel()
            else:
                lost._visit.host._mesh._liveness.over = True  # Who is killed says nothing of it.
                await lost._visit.host.stop()
            for client in clients:
                await client.multicast("tea", b"from %d" % client.me)
            seen: list[list[object]] = [[], []]
            for client, mine in zip(clients, seen, strict=True):
                async with asyncio.timeout(PATIENCE_S):
                    async for delivery in client:
                        mine.append(delivery)
                        if isinstance(delivery, Membership) and delivery.change == "leave":
                            break
            common = [each for each in seen[0] if each in seen[1]]
            assert common == [each for each in seen[1] if each in seen[0]]
            from_others = [each.payload for each in common if isinstance(each, GroupMessage) and each.origin != lost.me]
            assert sorted(from_others) == sorted(b"from %d" % client.me for client in clients)
            last_words = [[m for m in mine if isinstance(m, GroupMessage) and m.origin == lost.me] for mine in seen]
            assert last_words[0] == last_words[1]
            await until(lambda: links(*clients))
            if silent:
                await lost._visit.host.stop()

    asyncio.run(main())


def test_a_client_that_sends_others_what_is_not_its_to_send_loses_its_links_and_nothing_else_happens() -> None:
    async def main() -> None:
        async with service() as addresses, visitors(addresses, 3) as clients:
            await join_all(clients)
            await until(lambda: links(*clients))
            wrong, *others = clients
            wrong._visit.host.act([Send(wire.Expelled(), (others[0].me,))])
            await until(lambda: wrong.me not in others[0]._roster.linked)
            for client in clients:
                await client.multicast("tea", b"from %d" % client.me)
            taken = [await payloads(client, 3) for client in clients]
            assert taken[0] == taken[1] == taken[2]

    asyncio.run(main())


def test_a_client_listens_where_others_can_reach_it() -> None:
    with pytest.raises(BadInput, match="not a loopback address"):
        connect("127.0.0.1:7000", options=OPTIONS, listen="192.0.2.1:7001")
    with pytest.raises(BadInput, match="an address that other clients can reach"):
        connect("127.0.0.1:7000", options=OPTIONS, listen="0.0.0.0:7001", secret=SECRET)
    [listen] = free_addresses(1)

    async def main() -> None:
        async with service() as addresses, connect(addresses, options=OPTIONS, listen=listen) as client:
            assert client.client.at == listen

    asyncio.run(main())
