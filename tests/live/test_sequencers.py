"""Sequencers that serve, and clients that come and go: over sockets in one process, and with `quire serve` in its own."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest

import quire
from quire.live.errors import GroupFailed, StaleEpoch
from quire.live.events import Event
from quire.live.network.authority import Authority
from quire.live.network_options import Certificates
from quire.live.runs.fleet import free_addresses
from quire.live.services.sequencers import Connected, connect, serve
from quire.live.services.session import GroupMessage, Membership
from quire.model.errors import BadInput
from quire.protocols.node import Send
from quire.protocols.sequencing import packets as wire
from quire.protocols.sequencing.combined_sequencer import CombinedSequencer
from quire.protocols.sequencing.errors import AlreadyMember, Evicted, GapUnrecoverable, NoSuchGroup, NotMember
from tests.kit.patience import PATIENCE_S
from tests.live.test_security import write_folder

SECRET = "a secret of a service in a test"
TIMEOUT_S = 20.0


@asynccontextmanager
async def service(count: int = 1, **options: object) -> AsyncIterator[tuple[str, ...]]:
    addresses = free_addresses(count)
    async with AsyncExitStack() as stack:
        servers = [serve(addresses, me, options=options, timeout_s=TIMEOUT_S) for me in range(count)]
        await asyncio.gather(*(stack.enter_async_context(server) for server in servers))
        yield addresses


async def take(client: Connected, count: int) -> list[GroupMessage]:
    """The next messages, without what is said of membership."""
    taken: list[GroupMessage] = []
    async with asyncio.timeout(PATIENCE_S):
        async for delivery in client:
            if isinstance(delivery, GroupMessage):
                taken.append(delivery)
                if len(taken) == count:
                    break
    return taken


def test_clients_create_join_send_and_leave() -> None:
    async def main() -> None:
        async with service() as addresses, connect(addresses) as one, connect(addresses) as other:
            await one.create_group("tea")
            await one.join_group("tea")
            await other.join_group("tea")
            with pytest.raises(AlreadyMember):
                await other.join_group("tea")
            for number in range(10):
                await one.multicast("tea", b"one %d" % number)
                await other.multicast("tea", b"other %d" % number)
            mine, theirs = await take(one, 20), await take(other, 20)
            assert mine == theirs
            assert [message.payload for message in mine if message.origin == one.me] == [b"one %d" % n for n in range(10)]
            await other.leave_group("tea")
            with pytest.raises(NotMember):
                await other.leave_group("tea")
            # Who is no member may still send.
            await other.multicast("tea", b"from outside")
            [last] = await take(one, 1)
            assert (last.payload, last.origin) == (b"from outside", other.me)

    asyncio.run(main())


def test_everybody_sees_changes_of_membership_between_the_same_messages() -> None:
    async def main() -> None:
        async with service() as addresses, connect(addresses, me=0) as one, connect(addresses, me=1) as other:
            await one.create_group("tea")
            await one.join_group("tea")
            await one.multicast("tea", b"before")
            await one.flushed()
            await other.join_group("tea")
            await other.multicast("tea", b"after")
            seen = []
            async for delivery in one:
                seen.append(delivery)
                if isinstance(delivery, GroupMessage) and delivery.payload == b"after":
                    break
            assert [type(each) for each in seen] == [Membership, GroupMessage, Membership, GroupMessage]
            assert [each.number for each in seen] == [1, 2, 3, 4]
            assert seen[2] == Membership("tea", 3, "join", other.me, (one.me, other.me))
            # Who comes later gets nothing of before.
            assert [message.payload for message in await take(other, 1)] == [b"after"]

    asyncio.run(main())


@pytest.mark.parametrize("order", ["total", "hybrid"])
def test_groups_over_two_sequencers_stay_in_order_while_one_is_moved(order: str) -> None:
    async def main() -> None:
        async with service(2, order=order, tick_ms=10) as addresses, AsyncExitStack() as stack:
            clients = [
                await stack.enter_async_context(connect(addresses, order=order, options={"tick_ms": 10})) for _ in range(3)
            ]
            for group in ("g", "h"):
                for client in clients:
                    await client.create_group(group)
                    await client.join_group(group)

            async def send(client: Connected) -> None:
                for number in range(100):
                    await client.multicast("gh"[number % 2], b"%d" % number)
                    if number in (30, 60):
                        client.move_group("g", number // 30 % 2)
                        await asyncio.sleep(0.02)

            sending = asyncio.gather(*map(send, clients))
            logs = await asyncio.gather(*(take(client, 300) for client in clients))
            await sending
            for group in ("g", "h"):
                orders = [[(m.number, m.origin, m.payload) for m in log if m.group == group] for log in logs]
                assert orders[0] == orders[1] == orders[2]
                assert len(orders[0]) == 150
            if order == "total":
                assert logs[0] == logs[1] == logs[2]

    asyncio.run(main())


def test_what_does_not_fit_is_refused_in_one_sentence() -> None:
    async def main() -> None:
        async with service() as addresses:
            async with connect(addresses) as client:
                with pytest.raises(NoSuchGroup, match="no group 'tea'"):
                    await client.join_group("tea")
                with pytest.raises(NoSuchGroup):
                    await client.multicast("tea", b"x")
            with pytest.raises(BadInput, match="option 'order'"):
                async with connect(addresses, order="hybrid"):
                    pass
            with pytest.raises((BadInput, GroupFailed), match="secur"):
                async with connect(addresses, secret=SECRET, timeout_s=1):
                    pass

    asyncio.run(main())
    with pytest.raises(BadInput, match="loopback"):
        connect("192.0.2.1:7000")
    with pytest.raises(BadInput, match="needs bodies=direct"):
        connect("127.0.0.1:7000", listen="127.0.0.1:7001")
    assert quire.connect is connect


def test_a_client_that_misbehaves_is_dismissed_and_nobody_else_notices() -> None:
    async def main() -> None:
        async with service() as addresses, connect(addresses) as good:
            await good.create_group("tea")
            await good.join_group("tea")
            async with AsyncExitStack() as stack:
                bad = connect(addresses, timeout_s=2)
                await bad.__aenter__()
                stack.push_async_callback(bad._visit.host.stop)
                bad._visit.host.act((Send(wire.Join("tea", good.me, 99), (0,)),))
                async with asyncio.timeout(PATIENCE_S):
                    while bad._visit.host._mesh.peers[0].connection is not None:
                        await asyncio.sleep(0.01)
            await good.multicast("tea", b"still here")
            assert [message.payload for message in await take(good, 1)] == [b"still here"]

    asyncio.run(main())


def test_a_client_that_vanishes_is_evicted_and_the_others_go_on() -> None:
    async def main() -> None:
        [address] = free_addresses(1)
        async with serve([address], timeout_s=1.0) as server, connect(address, timeout_s=TIMEOUT_S) as stays:
            await stays.create_group("tea")
            await stays.join_group("tea")
            goes = connect(address, timeout_s=TIMEOUT_S)
            await goes.__aenter__()
            await goes.join_group("tea")
            await goes._visit.host.stop()  # Without a word, as a process that is killed.
            await stays.multicast("tea", b"is anybody there?")
            async with asyncio.timeout(PATIENCE_S):
                async for delivery in stays:
                    if isinstance(delivery, Membership) and delivery.change == "leave":
                        break
            assert isinstance(delivery, Membership)
            assert (delivery.who, delivery.members) == (goes.me, (stays.me,))
            await stays.flushed()
            assert isinstance(server.host.node, CombinedSequencer)
            assert not server.host.node.sequencer.groups["tea"].history

    asyncio.run(main())


def test_a_client_that_vanishes_is_reported_once_and_has_never_recovered() -> None:
    async def main() -> None:
        [address] = free_addresses(1)
        events, gone = list[Event](), asyncio.Event()

        def listen(event: Event) -> None:
            events.append(event)
            if event.kind == "evicted":
                gone.set()

        async with serve([address], timeout_s=1.0, on_event=listen), connect(address, timeout_s=TIMEOUT_S) as stays:
            await stays.create_group("tea")
            await stays.join_group("tea")
            goes = connect(address, timeout_s=TIMEOUT_S)
            await goes.__aenter__()
            await goes.join_group("tea")
            await goes._visit.host.stop()  # Without a word, as a process that is killed.
            await stays.multicast("tea", b"is anybody there?")
            await asyncio.wait_for(gone.wait(), PATIENCE_S)
            await stays.flushed()
        about_it = [event.kind for event in events if event.peers == (goes.me,)]
        assert about_it.count("evicted") == 1
        assert "recovered" not in about_it

    asyncio.run(main())


def test_a_client_that_was_taken_for_dead_is_told_and_comes_back_as_another() -> None:
    async def main() -> None:
        [address] = free_addresses(1)
        async with serve([address], options={"tick_ms": 10}) as server:
            client = connect(address, options={"tick_ms": 10})
            await client.__aenter__()
            await client.create_group("tea")
            await client.join_group("tea")
            assert isinstance(server.host.node, CombinedSequencer)
            server.host.act(server.host.node.suspect(client.me))
            await client.multicast("tea", b"am I there?")
            with pytest.raises(Evicted):
                await asyncio.wait_for(client.flushed(), PATIENCE_S)
            with pytest.raises(Evicted):
                await client.__aexit__(None, None, None)
            async with connect(address, options={"tick_ms": 10}) as again:
                await again.join_group("tea")
                await again.multicast("tea", b"here")
                assert (await take(again, 1))[0].payload == b"here"

    asyncio.run(main())


def test_a_gap_that_nobody_can_fill_ends_the_iteration() -> None:
    async def main() -> None:
        async with service() as addresses, connect(addresses) as client:
            await client.create_group("tea")
            await client.join_group("tea")
            await anext(aiter(client))
            # As if the sequencer had forgotten what was never delivered here.
            client._visit.host.act(client.client.receive(client._visit.host.now(), 0, wire.Stable({"tea": 7})))
            with pytest.raises(GapUnrecoverable, match="join it again"):
                await anext(aiter(client))

    asyncio.run(main())


def test_a_client_whose_sequencer_was_started_anew_is_told_to_connect_anew() -> None:
    async def main() -> None:
        [address] = free_addresses(1)
        async with serve([address], timeout_s=TIMEOUT_S):
            client = connect(address, timeout_s=TIMEOUT_S)
            await client.__aenter__()
            await client.create_group("tea")
            await client.join_group("tea")
        async with serve([address], timeout_s=TIMEOUT_S):
            assert isinstance(await anext(aiter(client)), Membership)
            with pytest.raises(StaleEpoch, match=r"sequencer 0 .* was restarted"):
                await asyncio.wait_for(anext(aiter(client)), PATIENCE_S)
            with pytest.raises(StaleEpoch):
                await client.multicast("tea", b"x")
            with pytest.raises(StaleEpoch):
                await client.__aexit__(None, None, None)
            async with connect(address) as again:
                with pytest.raises(NoSuchGroup):
                    await again.join_group("tea")

    asyncio.run(main())


@pytest.mark.parametrize("bodies", ["relay", "direct"])
def test_certificates_name_sequencers_and_clients(tmp_path: Path, bodies: str) -> None:
    authority = Authority("tea service", 10)
    papers = []
    for number in range(3):
        write_folder(tmp_path / str(number), authority, authority.certify(number))
        papers.append(Certificates.of(tmp_path / str(number)))

    async def main() -> None:
        [address] = free_addresses(1)
        name, options = "tea service", {"bodies": bodies}
        async with (
            serve([address], certificates=papers[0], service=name, options=options),
            connect(address, me=0, certificates=papers[1], service=name, options=options) as one,
            connect(address, me=1, certificates=papers[2], service=name, options=options) as other,
        ):
            await one.create_group("tea")
            await one.join_group("tea")
            await other.join_group("tea")
            if bodies == "direct":
                async with asyncio.timeout(PATIENCE_S):
                    while one._roster.linked != {other.me}:
                        await asyncio.sleep(0.01)
            await other.multicast("tea", b"hello")
            assert [message.payload for message in await take(one, 1)] == [b"hello"]
            with pytest.raises((BadInput, GroupFailed), match="names another"):
                async with connect(address, me=2, certificates=papers[2], service=name, options=options, timeout_s=2):
                    pass
        with pytest.raises(BadInput, match="a client's certificate names its number"):
            connect(address, certificates=papers[1])

    asyncio.run(main())


def test_quire_serve_runs_until_it_is_stopped_and_lets_in_only_who_knows_the_secret(tmp_path: Path) -> None:
    [address] = free_addresses(1)
    secret = tmp_path / "secret"
    secret.write_text(SECRET)
    command = [str(Path(sys.executable).with_name("quire")), "serve", "--listen", address, "--secret-file", str(secret)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as server:
        assert server.stderr is not None
        assert "serves at" in server.stderr.readline()

        async def main() -> None:
            async with connect(address, secret=SECRET) as client:
                await client.create_group("tea")
                await client.join_group("tea")
                await client.multicast("tea", b"hello")
                assert [message.payload for message in await take(client, 1)] == [b"hello"]

        asyncio.run(main())
        server.send_signal(signal.SIGTERM)
        assert server.wait(PATIENCE_S) == 0
    wrong = subprocess.run(
        [*command[:2], "--listen", "127.0.0.1:1x"], capture_output=True, text=True, check=False, timeout=PATIENCE_S
    )
    assert wrong.returncode == 2
    assert wrong.stderr.startswith("quire: '127.0.0.1:1x' is not an address")
