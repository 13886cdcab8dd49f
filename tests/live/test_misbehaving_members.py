"""What a member may do wrong: it is told, and asked again; only what breaks the protocol ends the group."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Awaitable, Callable
from contextlib import suppress

import msgspec
import pytest

from quire.live import Group, PeerMisbehaved
from quire.live.settings import Settings
from quire.model.messages import make_run
from quire.protocols.single_phase import Operations
from quire.wire.frames import (
    ACKED,
    CLOSING,
    DONE,
    INTRODUCTION,
    PACKET,
    WELCOME,
    acked,
    control_frame,
    numbered_head,
)
from tests.live.running import made_of, run
from tests.live.strangers import Addresses, stranger

# The test plays member 1 of a group of two, with the packets of single-phase.


def with_member(where: list[str], act: Callable[[Group, Settings], Awaitable[None]], timeout_s: float = 3) -> None:
    async def main() -> None:
        own, settings = (made_of(where, me, protocol="single-phase", timeout_s=timeout_s) for me in range(2))
        group = Group(own)
        entering = asyncio.ensure_future(group.__aenter__())
        while not group._mesh._acceptor._endpoints:
            await asyncio.sleep(0)
        try:
            await act(group, settings)
        finally:
            entering.cancel()
            with suppress(asyncio.CancelledError):
                await entering
            await group._mesh.stop()

    run(main())


@pytest.mark.parametrize(
    ("frame", "reason"),
    [
        (acked(5), "it acknowledged 5 frames, but 0 to 0 is possible"),
        (control_frame(ACKED, b"abc"), "a count has 8 bytes, not 3"),
        (control_frame(INTRODUCTION, b"again"), f"a frame of kind {INTRODUCTION} is not allowed here"),
        (control_frame(WELCOME), f"a frame of kind {WELCOME} is not allowed here"),
        (control_frame(99), "a frame of kind 99 is not allowed here"),
        (numbered_head(PACKET, 3, 0, 0, 0), "frames 0 to 2 are missing"),
        (numbered_head(PACKET, 0, 7, 0, 0), "a frame of epoch 7 came in epoch 0"),
        (numbered_head(PACKET, 0, 0, 2**63, 0), "logical time"),
        (numbered_head(PACKET, 0, 0, 0, 3) + b"\xc1\xc1\xc1", "a packet could not be read"),
        (numbered_head(CLOSING, 0, 0, 0, 3) + b"abc", "a count has 8 bytes, not 3"),
        (numbered_head(DONE, 0, 0, 0, 1) + b"\0", "DONE before CLOSING"),
        (struct.pack("!I", 0), "a frame of 0 bytes is outside"),
    ],
)
def test_a_member_that_breaks_the_rules_of_frames_is_told_and_may_come_again(
    addresses: Addresses, frame: bytes, reason: str
) -> None:
    async def act(group: Group, settings: Settings) -> None:
        async with stranger(settings) as one:
            await one.become_member()
            one.send(frame)
            assert reason in await one.refusal()
            await one.is_gone()
        async with stranger(settings) as one:
            await one.become_member()
            assert group._mesh.peers[1].incoming.received == 0, "nothing of the wrong frame was taken"

    with_member(addresses(2), act)


def operations(number: int) -> bytes:
    body = msgspec.msgpack.encode(Operations(number + 1, make_run(1, number, [b"x"])))
    return numbered_head(PACKET, number, 0, 0, len(body)) + body


def test_a_frame_spoilt_by_the_network_is_asked_for_again(addresses: Addresses) -> None:
    async def act(group: Group, settings: Settings) -> None:
        for _ in range(2):
            async with stranger(settings) as one:
                await one.become_member()
                one.send(numbered_head(PACKET, 0, 0, 0, 3) + b"\xc1\xc1\xc1")
                await one.is_gone()
        async with stranger(settings) as one:
            await one.become_member()
            one.send(operations(0))
            delivery = await group.runs().__anext__()
            assert (delivery.run.origin, delivery.run.first) == (1, 0)

    with_member(addresses(2), act)


def test_a_member_that_sends_nonsense_again_and_again_ends_the_group(addresses: Addresses) -> None:
    async def act(group: Group, settings: Settings) -> None:
        for _ in range(3):
            async with stranger(settings) as one:
                await one.become_member()
                one.send(numbered_head(PACKET, 0, 0, 0, 3) + b"\xc1\xc1\xc1")
                await one.is_gone()
        with pytest.raises(PeerMisbehaved, match="member 1 sent an unreadable packet"):
            await group.runs().__anext__()

    with_member(addresses(2), act)


def test_a_member_that_breaks_the_protocol_ends_the_group(addresses: Addresses) -> None:
    async def act(group: Group, settings: Settings) -> None:
        async with stranger(settings) as one:
            await one.become_member()
            body = msgspec.msgpack.encode(Operations(1, make_run(0, 0, [b"not mine"])))
            one.send(numbered_head(PACKET, 0, 0, 0, len(body)) + body)
            with pytest.raises(PeerMisbehaved, match="member 1 broke the protocol"):
                await group.runs().__anext__()

    with_member(addresses(2), act)


def test_a_half_open_connection_is_replaced_by_the_next_of_the_same_process(addresses: Addresses) -> None:
    async def act(group: Group, settings: Settings) -> None:
        async with stranger(settings) as old, stranger(settings) as new:
            await old.become_member()
            old.send(operations(0))
            deliveries = group.runs()
            assert (await deliveries.__anext__()).run.first == 0
            await new.become_member(received=0)
            await old.is_gone()
            # What is sent again is dropped; what is new is taken.
            new.send(operations(0) + operations(1))
            assert (await deliveries.__anext__()).run.first == 1
            assert group._mesh.peers[1].incoming.received == 2

    with_member(addresses(2), act)


def test_what_was_not_acknowledged_is_sent_again_on_the_next_connection(addresses: Addresses) -> None:
    async def act(group: Group, settings: Settings) -> None:
        async with stranger(settings) as one:
            await one.become_member()
            await group.multicast(b"hello")
            kind, first = await one.frame()
            assert kind == PACKET
        async with stranger(settings) as one:
            await one.become_member()
            assert await one.frame() == (PACKET, first)
        async with stranger(settings) as one:
            await one.become_member(received=1)
            await group.multicast(b"more")
            kind, second = await one.frame()
            assert kind == PACKET
            assert second != first

    with_member(addresses(2), act)
