"""What is large goes in pieces; what is too large ends whoever sends it, and nobody else."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest

import quire
from quire.live import Group
from quire.live.events import Event
from quire.live.network.mesh import UNREADABLE_MAX
from quire.live.runs.fleet import free_addresses
from quire.live.services.sequencers import Connected, connect, serve
from quire.live.services.session import GroupMessage, Membership
from quire.live.services.visiting import HubHost
from quire.model.errors import BadInput, TooLarge
from quire.model.payloads import PAYLOAD_BYTES_MAX
from quire.protocols.objects.activity import TAKE_BACK_BYTES_MAX
from quire.protocols.sequencing.errors import Evicted
from quire.wire.frames import PACKET, PIECE, FrameError, numbered_head
from quire.wire.links import PIECE_BYTES, Incoming, cut
from tests.kit.patience import PATIENCE_S
from tests.live.proxy import CALM, proxies
from tests.live.running import made_of, run
from tests.live.strangers import stranger

MIB = 1 << 20
PACKET_BYTES_MAX = 32 * MIB
Addresses = Callable[[int], list[str]]


async def next_message(client: Connected) -> GroupMessage:
    async for delivery in client:
        if isinstance(delivery, GroupMessage):
            return delivery
    raise AssertionError("the iteration has ended")


def test_a_packet_is_put_together_from_its_pieces_and_from_nothing_else() -> None:
    body, incoming = bytes(range(256)) * (PIECE_BYTES // 100), Incoming()
    for packet in (body, b"small", body):
        *pieces, last = cut(packet)
        for piece in pieces:
            incoming.keep_piece(memoryview(piece), PACKET_BYTES_MAX)
            incoming.take(len(piece), complete=False)
        # Read twice, as when the first time it was spoilt.
        assert bytes(incoming.whole(memoryview(last))) == bytes(incoming.whole(memoryview(last))) == packet
        incoming.take(len(last))


def test_a_packet_that_gets_too_long_is_refused_before_it_is_kept() -> None:
    incoming, piece = Incoming(), memoryview(bytes(PIECE_BYTES))
    for _ in range(PACKET_BYTES_MAX // PIECE_BYTES):
        incoming.keep_piece(piece, PACKET_BYTES_MAX)
    with pytest.raises(FrameError, match=f"exceeds the limit of {PACKET_BYTES_MAX}"):
        incoming.keep_piece(piece, PACKET_BYTES_MAX)


BURSTS = [(4000, 3000), (200, 100_000), (1, 8 * MIB), (3, 9 * MIB)]


@pytest.mark.parametrize("bodies", ["relay", "direct"])
@pytest.mark.parametrize(("count", "size"), BURSTS)
def test_a_burst_of_more_than_a_frame_is_delivered_and_nobody_else_is_stopped(count: int, size: int, bodies: str) -> None:
    connections: list[Event] = []
    options = {"bodies": bodies}

    async def main() -> None:
        [address] = free_addresses(1)
        async with (
            serve([address], options=options),
            connect(address, options=options, on_event=connections.append) as noisy,
            connect(address, options=options) as healthy,
        ):
            await noisy.create_group("room")
            await noisy.join_group("room")
            await healthy.join_group("room")
            if bodies == "direct":
                async with asyncio.timeout(PATIENCE_S):
                    while noisy._roster.linked != {healthy.me}:
                        await asyncio.sleep(0.01)

            async def read(client: Connected) -> list[int]:
                sizes: list[int] = []
                async for delivery in client:
                    if isinstance(delivery, GroupMessage) and delivery.origin == noisy.me:
                        assert delivery.payload.count(len(sizes) % 251) == size
                        sizes.append(len(delivery.payload))
                        if len(sizes) == count:
                            break
                return sizes

            async def send() -> None:
                for number in range(count):
                    await noisy.multicast("room", bytes([number % 251]) * size)

            async with asyncio.timeout(PATIENCE_S):
                _, *delivered = await asyncio.gather(send(), read(noisy), read(healthy))
                assert delivered == [[size] * count] * 2
                await healthy.multicast("room", b"still here")
                assert (await next_message(noisy)).payload == b"still here"

    asyncio.run(main())
    assert [event.kind for event in connections].count("connected") == (1 if bodies == "relay" else 2)


@pytest.mark.parametrize(("count", "size"), [(4000, 3000), (200, 100_000), (30, MIB)])
def test_a_burst_of_more_than_a_frame_is_delivered_to_a_group(addresses: Addresses, count: int, size: int) -> None:
    where, happened = addresses(2), list[Event]()

    async def main() -> None:
        groups = [Group(made_of(where, me, timeout_s=30), on_event=happened.append) for me in range(2)]
        await asyncio.gather(*(group.__aenter__() for group in groups))
        for number in range(count):
            await groups[0].multicast(bytes([number % 251]) * size)

        async def read(group: Group) -> list[bytes]:
            taken = []
            async for message in group:
                assert message.payload.count(message.payload[:1]) == size
                taken.append(message.payload[:1])
            return taken

        reading = [asyncio.create_task(read(group)) for group in groups]
        await asyncio.gather(*(group.close() for group in groups))
        assert await reading[0] == await reading[1] == [bytes([number % 251]) for number in range(count)]

    run(main())
    assert not [event for event in happened if event.kind == "disconnected"]


def oversize_frame() -> bytes:
    return struct.pack("!I", 9 * MIB)


def oversize_packet() -> bytes:
    """More pieces than a packet may have; each of them is a good frame."""
    piece, count = bytes(PIECE_BYTES), PACKET_BYTES_MAX // PIECE_BYTES
    return b"".join(numbered_head(PIECE, number, 0, 0, len(piece)) + piece for number in range(count + 1))


def nonsense() -> bytes:
    return numbered_head(PACKET, 0, 0, 0, 3) + b"\xc1\xc1\xc1"


@pytest.mark.parametrize("unreadable", [oversize_frame, oversize_packet, nonsense])
def test_a_client_whose_frame_cannot_be_read_three_times_is_ended_and_the_room_goes_on(
    unreadable: Callable[[], bytes],
) -> None:
    """However often it connects again, it is counted as one, and then it has no more to do with the service."""

    async def main() -> None:
        [address] = free_addresses(1)
        async with serve([address], timeout_s=60) as server, connect(address) as healthy:
            await healthy.create_group("room")
            await healthy.join_group("room")
            assert isinstance(await anext(aiter(healthy)), Membership)
            lost: list[int] = []
            assert isinstance(server, HubHost)
            evict = server.on_lost

            def note(client: int) -> None:
                assert evict is not None
                lost.append(client)
                evict(client)

            server.on_lost = note
            settings = connect(address).settings
            for attempt in range(UNREADABLE_MAX):
                assert not lost
                async with stranger(settings) as bad:
                    await bad.become_member()
                    data = unreadable()
                    received = server.host._mesh.peers[settings.me].incoming.received
                    # What has arrived is not sent again.
                    bad.send(data[received * (21 + 4 + PIECE_BYTES) :] if unreadable is oversize_packet else data)
                    assert await bad.refusal(), attempt
                    await bad.is_gone()
            async with asyncio.timeout(PATIENCE_S):
                while not lost:
                    await asyncio.sleep(0.01)
            assert lost == [settings.me]
            await healthy.multicast("room", b"still here")
            assert (await next_message(healthy)).payload == b"still here"

    asyncio.run(main())


def test_a_client_that_is_ended_is_told_so_and_does_not_connect_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    connections: list[Event] = []

    async def main() -> None:
        [address] = free_addresses(1)
        async with serve([address], timeout_s=60), connect(address) as healthy:
            await healthy.create_group("room")
            await healthy.join_group("room")
            assert isinstance(await anext(aiter(healthy)), Membership)
            bad = connect(address, timeout_s=60, on_event=connections.append)
            await bad.__aenter__()
            await bad.join_group("room")
            assert isinstance(await anext(aiter(healthy)), Membership)
            # As a client would that does not know the limit of frames.
            monkeypatch.setattr("quire.live.network.mesh.cut", lambda body: (body,))
            await bad.multicast("room", bytes(9 * MIB))
            with pytest.raises(Evicted, match=r"a frame of \d+ bytes is outside 1 to 8388608"):
                await asyncio.wait_for(next_message(bad), PATIENCE_S)
            monkeypatch.undo()
            gone = await anext(aiter(healthy))
            assert isinstance(gone, Membership)
            assert (gone.change, gone.who) == ("leave", bad.me)
            with pytest.raises(Evicted):
                await bad.multicast("room", b"hello?")
            with pytest.raises(Evicted):
                await bad.__aexit__(None, None, None)

    asyncio.run(main())
    assert [event.kind for event in connections].count("connected") == UNREADABLE_MAX


def test_connections_that_end_as_soon_as_they_are_made_are_made_with_growing_pauses(addresses: Addresses) -> None:
    where = addresses(4)
    public, private = where[:2], where[2:]

    async def main() -> None:
        async with proxies(public, private, CALM, 0) as found:
            times: list[float] = []
            enough = asyncio.Event()
            loop = asyncio.get_running_loop()

            def cut_it(event: Event) -> None:
                if event.kind == "connected":
                    times.append(loop.time())
                    loop.call_soon(found[0].cut_all)
                    if len(times) == 8:
                        enough.set()

            members = [made_of(public, me, listen=private[me], timeout_s=60) for me in range(2)]
            groups = [Group(members[0]), Group(members[1], on_event=cut_it)]
            await asyncio.gather(*(group.__aenter__() for group in groups))
            await enough.wait()
            await asyncio.gather(*(group._stop() for group in groups))
            pauses = [after - before for before, after in pairwise(times)]
            assert pauses[-1] >= 1.0
            assert pauses[-2] >= 0.5

    run(main())


class Shelf(quire.Object):
    """Keeps what it is given."""

    def __init__(self) -> None:
        self.kept: list[bytes] = []

    @quire.operation
    def put(self, call: quire.Call, what: bytes) -> int:
        self.kept.append(what)
        return len(self.kept)

    @quire.operation
    def copies(self, call: quire.Call, what: bytes, count: int) -> list[bytes]:
        self.kept.append(what)
        return [what] * count

    @copies.undo
    def forget(self, call: quire.Call, what: bytes, count: int) -> None:
        self.kept.remove(what)


def test_arguments_and_results_of_calls_may_be_large_and_are_refused_at_the_call_when_they_are_too_large() -> None:
    addresses = free_addresses(2)

    def member(me: int) -> quire.ObjectGroup:
        return quire.join_objects("shop", me=me, members=addresses, objects={"shelf": quire.place(Shelf, 1)}, timeout_s=60)

    async def main() -> None:
        async with asyncio.timeout(PATIENCE_S):
            callers, keepers = member(0), member(1)
            await asyncio.gather(callers.__aenter__(), keepers.__aenter__())
            large, limit = bytes(9 * MIB), PAYLOAD_BYTES_MAX
            assert await callers.invoke("shelf", "put", large) == 1
            assert await callers.invoke("shelf", "copies", large, 1) == [large]
            with pytest.raises(TooLarge, match=f"the arguments of a call may have at most {limit} bytes"):
                await callers.invoke("shelf", "put", bytes(limit))
            with pytest.raises(quire.CallAborted, match=f"the result of a call may have at most {limit} bytes"):
                await callers.invoke("shelf", "copies", large, 2)
            shelf = keepers.objects["shelf"]
            assert isinstance(shelf, Shelf)
            assert len(shelf.kept) == 2, "what has no result is taken back"
            assert await callers.invoke("shelf", "put", b"small") == 3

            async def program(call: quire.Call) -> None:
                for _ in range(TAKE_BACK_BYTES_MAX // len(large) + 1):
                    await call.invoke("shelf", "copies", large, 0)

            with pytest.raises(TooLarge, match=f"may have to take back may have at most {TAKE_BACK_BYTES_MAX} bytes"):
                await callers.run(program)
            assert await callers.invoke("shelf", "put", b"small") == 4, "all of the tree was taken back"
            await asyncio.gather(callers.__aexit__(None, None, None), keepers.__aexit__(None, None, None))

    asyncio.run(main())


@pytest.mark.parametrize("replication", ["all", "majority"])
def test_values_of_a_store_may_be_large_and_are_refused_at_the_call_when_they_are_too_large(replication: str) -> None:
    addresses = free_addresses(2)

    def process(me: int) -> quire.StoreMember:
        return quire.join_store(
            "shop", me=me, members=addresses, replicas=1, options={"replication": replication}, timeout_s=60
        )

    async def main() -> None:
        async with asyncio.timeout(PATIENCE_S):
            replica, client = process(0), process(1)
            await asyncio.gather(replica.__aenter__(), client.__aenter__())
            large, limit = bytes(9 * MIB), PAYLOAD_BYTES_MAX

            async with client.store.transaction() as t:
                await t.write("large", large)
            for wrong in ("text", None, 5):
                with pytest.raises(BadInput, match="a value must be bytes"):
                    async with client.store.transaction() as t:
                        await t.write("large", wrong)
            with pytest.raises(TooLarge, match=f"at most {limit} bytes"):
                async with client.store.transaction() as t:
                    await t.write("large", bytes(limit + 1))

            async def both(t: quire.Transaction) -> None:
                await t.write("large", b"")
                await t.write("one", large)
                await t.write("other", large)

            with pytest.raises(TooLarge, match=f"what a transaction writes may have at most {limit} bytes"):
                await client.store.run(both)
            async with client.store.transaction() as t:
                assert await t.read("large") == large
                assert await t.read("one") is None
                for _ in range(3):
                    await t.write("one", memoryview(large))
            await asyncio.gather(client.__aexit__(None, None, None), replica.__aexit__(None, None, None))

    asyncio.run(main())


def test_what_a_codec_makes_of_values_must_be_bytes() -> None:
    addresses = free_addresses(2)
    make: Any = str
    codec = quire.Codec(make, str)

    async def main() -> None:
        async with asyncio.timeout(PATIENCE_S):
            replica, client = (
                quire.join_store("shop", me=me, members=addresses, replicas=1, codec=codec, timeout_s=60) for me in range(2)
            )
            await asyncio.gather(replica.__aenter__(), client.__aenter__())
            with pytest.raises(BadInput, match="an encoded value must be bytes, not str"):
                async with client.store.transaction() as t:
                    await t.write("key", 5)
            await asyncio.gather(client.__aexit__(None, None, None), replica.__aexit__(None, None, None))

    asyncio.run(main())
