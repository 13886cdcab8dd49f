"""Whoever should not be there is refused, with one line in the log, and the group goes on as if nothing had happened."""

from __future__ import annotations

import asyncio
import logging
import os
import ssl
import struct
import tracemalloc
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import pytest

from quire.live import Certificates, Group
from quire.live.network.acceptor import LINES_PER_SECOND_MAX, STRANGERS_MAX
from quire.live.network.authority import Authority
from quire.live.network.transports.tcp import tls_contexts
from quire.live.settings import Introduction
from quire.wire.frames import (
    ACKED,
    INTRODUCTION,
    PACKET,
    REFUSED,
    WELCOME,
    acked,
    control_frame,
    numbered_head,
)
from tests.kit.patience import PATIENCE_S
from tests.live.proxy import CALM, proxies
from tests.live.running import LOOPS, SECRET, chatting, events, folders, made_of, run, trusted
from tests.live.strangers import Addresses, Attack, Stranger, attacked, stranger

__all__ = ["folders"]


async def garbage(one: Stranger) -> None:
    one.send(os.urandom(5000))


async def another_language(one: Stranger) -> None:
    one.send(b"GET / HTTP/1.1\r\nHost: example.org\r\nUser-Agent: somebody\r\n\r\n")


async def silence(one: Stranger) -> None:
    pass


async def half_a_hello(one: Stranger) -> None:
    one.send(one.handshake.start()[:20])


async def trickle(one: Stranger) -> None:
    for byte in one.handshake.start() * 2:
        one.send(bytes([byte]))
        await asyncio.sleep(0.02)
        if one.writer.transport.is_closing():
            return


async def hello_and_nothing_more(one: Stranger) -> None:
    one.send(one.handshake.start())


async def hello_and_departure(one: Stranger) -> None:
    one.send(one.handshake.start())
    await one.reader.read(1)
    one.leave()


BEFORE_THE_HANDSHAKE: dict[str, tuple[Attack, str]] = {
    "garbage": (garbage, "speak"),
    "another language": (another_language, "speak"),
    "silence": (silence, "in time"),
    "half a hello": (half_a_hello, "in time"),
    "trickle": (trickle, "in time"),
    "hello and nothing more": (hello_and_nothing_more, "in time"),
    "hello and departure": (hello_and_departure, ""),
}


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("kind", ["open", "secret"])
@pytest.mark.parametrize("what", BEFORE_THE_HANDSHAKE)
def test_who_does_not_shake_hands_is_refused(
    addresses: Addresses, caplog: pytest.LogCaptureFixture, what: str, kind: str, loop: str
) -> None:
    attack, why = BEFORE_THE_HANDSHAKE[what]
    attacked(addresses(3), attack, loop, kind)
    (line,) = events(caplog, "refused")
    assert why in line
    assert not events(caplog, "disconnected")


async def huge_length(one: Stranger) -> None:
    await one.shake_hands()
    one.send(struct.pack("!I", 2**32 - 1))
    assert "a frame of 4294967295 bytes is outside" in await one.refusal()


async def huge_introduction(one: Stranger) -> None:
    await one.shake_hands()
    one.send(struct.pack("!IB", 1 << 20, INTRODUCTION))
    assert "a frame of 1048576 bytes is outside 1 to 65536" in await one.refusal()


async def broken_introduction(one: Stranger) -> None:
    await one.shake_hands()
    one.send(control_frame(INTRODUCTION, b"\xc1\xff\n\x00"))
    reason = await one.refusal()
    assert "its handshake could not be read" in reason
    assert reason.isprintable()


async def deep_introduction(one: Stranger) -> None:
    await one.shake_hands()
    one.send(control_frame(INTRODUCTION, b"\x91" * 60_000))
    assert "could not be read" in await one.refusal()


async def deep_options(one: Stranger) -> None:
    """As deep as can still be read, which may be too deep to compare or to show."""
    await one.shake_hands()
    for depth in range(1200, 0, -1):
        body = one.introduction(options={"acks": "HERE"})[5:].replace(b"\xa4HERE", b"\x91" * depth + b"\x01")
        with suppress(RecursionError, msgspec.DecodeError):
            msgspec.msgpack.decode(body, type=Introduction)
            break
    one.send(control_frame(INTRODUCTION, body))
    await one.refusal()


async def another_group(one: Stranger) -> None:
    await one.shake_hands()
    one.send(one.introduction(group="theirs"))
    assert "member 2 has group 'theirs' and member 0 has 'test'" in await one.refusal()


async def a_long_strange_name(one: Stranger) -> None:
    await one.shake_hands()
    one.send(one.introduction(group="\x1b[31m\n" + "ü" * 5000))
    reason = await one.refusal()
    assert len(reason.encode()) <= 500
    assert reason.isprintable()
    assert reason.endswith("… and member 0 has 'test'; give all members the same")


async def another_incarnation(one: Stranger) -> None:
    await one.shake_hands()
    one.send(one.introduction())
    assert "member 2 is a different process than before" in await one.refusal()


async def packet_before_introduction(one: Stranger) -> None:
    await one.shake_hands()
    one.send(numbered_head(PACKET, 0, 0, 0, 1) + b"x")
    assert "a packet arrived before the handshake was complete" in await one.refusal()


async def acknowledgement_before_introduction(one: Stranger) -> None:
    await one.shake_hands()
    one.send(acked(0))
    assert f"a frame of kind {ACKED} is not allowed here" in await one.refusal()


async def welcome_before_introduction(one: Stranger) -> None:
    await one.shake_hands()
    one.send(control_frame(WELCOME))
    assert f"a frame of kind {WELCOME} is not allowed here" in await one.refusal()


async def refusal(one: Stranger) -> None:
    await one.shake_hands()
    one.send(control_frame(REFUSED, b"\xff\x00\n" * 1000))


async def nothing_after_the_handshake(one: Stranger) -> None:
    await one.shake_hands()


AFTER_THE_HANDSHAKE = [
    huge_length,
    huge_introduction,
    broken_introduction,
    deep_introduction,
    deep_options,
    another_group,
    a_long_strange_name,
    another_incarnation,
    packet_before_introduction,
    acknowledgement_before_introduction,
    welcome_before_introduction,
    refusal,
    nothing_after_the_handshake,
]


@pytest.mark.parametrize("attack", AFTER_THE_HANDSHAKE, ids=lambda attack: attack.__name__)
def test_who_introduces_itself_wrongly_is_refused(
    addresses: Addresses, caplog: pytest.LogCaptureFixture, attack: Attack
) -> None:
    attacked(addresses(3), attack)
    (line,) = events(caplog, "refused")
    assert line.isprintable()
    assert len(line) < 1000
    assert not events(caplog, "disconnected")


def test_a_wrong_secret_is_refused(addresses: Addresses, caplog: pytest.LogCaptureFixture) -> None:
    async def attack(one: Stranger) -> None:
        one.send(one.handshake.start())
        await one.reader.readexactly(one.handshake.wanted)
        one.send(bytes(32))

    attacked(addresses(3), attack, kind="secret")
    (line,) = events(caplog, "refused")
    assert "the peer does not know this group's secret" in line


def test_a_recorded_connection_sent_again_is_refused(addresses: Addresses, caplog: pytest.LogCaptureFixture) -> None:
    where = addresses(6)
    public, private = where[:3], where[3:]

    async def main() -> None:
        async with proxies(public, private, CALM, 0) as found:
            members = [made_of(public, me, listen=private[me], secret=SECRET) for me in range(3)]
            async with chatting(members) as chat:
                caplog.clear()  # Members that were quicker than others came to closed doors.
                recorded = [bytes(heard) for heard in found[0].heard]
                assert len(recorded) == 2
                for stream in recorded:
                    async with stranger(members[1], at=private[0]) as one:
                        one.send(stream)
                        await one.is_gone()
                    await chat.goes_on()

    run(main())
    lines = events(caplog, "refused")
    assert len(lines) == 2
    assert all("the peer does not know this group's secret" in line for line in lines)


def test_a_sealed_connection_ends_when_somebody_changes_a_byte_and_heals(
    addresses: Addresses, caplog: pytest.LogCaptureFixture
) -> None:
    where = addresses(4)
    public, private = where[:2], where[2:]

    async def main() -> None:
        async with proxies(public, private, CALM, 0) as found:
            members = [made_of(public, me, listen=private[me], secret=SECRET) for me in range(2)]
            async with chatting(members) as chat:
                found[0].flip_a_bit = True
                while found[0].flip_a_bit:
                    await chat.goes_on(1)

    run(main())
    assert any("a frame failed authentication" in line or "is outside 1 to" in line for line in events(caplog, "disconnected"))


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize(
    "who", ["plain text", "no certificate", "expired", "of another group", "of another member", "old TLS", "silence"]
)
def test_who_has_no_right_certificate_is_refused(
    addresses: Addresses, caplog: pytest.LogCaptureFixture, tmp_path: Path, who: str, loop: str
) -> None:
    where = addresses(3)
    authority = Authority("test", 10, datetime.now(UTC) - timedelta(days=2))
    right = [write_folder(tmp_path / str(me), authority, me) for me in range(3)]
    context: ssl.SSLContext | None
    match who:
        case "plain text" | "silence":
            context = None
        case "no certificate":
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        case "expired":
            context = tls_contexts(write_folder(tmp_path / "expired", authority, 2, days=1))[1]
        case "of another group":
            context = tls_contexts(write_folder(tmp_path / "other", Authority("test", 10), 2))[1]
        case "old TLS":
            context = tls_contexts(right[2])[1]
            context.minimum_version = context.maximum_version = ssl.TLSVersion.TLSv1_2
        case _:
            context = tls_contexts(right[1])[1]
    if context is not None:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE

    async def main() -> None:
        members = [made_of(where, me, certificates=right[me], handshake_s=0.4) for me in range(3)]
        async with chatting(members) as chat:
            with suppress(OSError, asyncio.IncompleteReadError):
                async with stranger(members[2], context) as one:
                    if who == "plain text":
                        await garbage(one)
                    elif who != "silence":
                        await one.shake_hands()
                    await one.is_gone()
            await chat.goes_on()

    run(main(), loop)
    (line,) = events(caplog, "refused")
    if who == "of another member":
        assert "the certificate presented by member 2 of group 'test' names another" in line


def write_folder(folder: Path, authority: Authority, member: int, days: int | None = None) -> Certificates:
    folder.mkdir()
    pair = authority.certify(member, days)
    (folder / "authority.pem").write_bytes(authority.pair.certificate)
    (folder / "certificate.pem").write_bytes(pair.certificate)
    (folder / "key.pem").write_bytes(pair.key)
    return Certificates.of(folder)


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("kind", ["open", "secret", "tls"])
def test_a_flood_of_connections_keeps_no_member_out(
    addresses: Addresses, folders: Path, caplog: pytest.LogCaptureFixture, kind: str, loop: str
) -> None:
    where = addresses(3)

    async def main() -> None:
        members = [made_of(where, me, handshake_s=20, **trusted(kind, folders, me)) for me in range(3)]
        async with chatting(members) as chat:
            address = members[0].members[0]
            flood = [await asyncio.open_connection(address.host, address.port) for _ in range(STRANGERS_MAX + 100)]
            await chat.goes_on()
            assert len(chat.groups[0]._mesh._acceptor._strangers) <= STRANGERS_MAX
            # While the door is crowded, a member loses its connection and comes back.
            lost = chat.groups[2]._mesh.peers[0].connection
            assert lost is not None
            lost.close("for the test", at_once=True)
            await lost.ended.wait()
            await chat.goes_on()
            assert chat.groups[2]._mesh.peers[0].connection is not None
            for _, writer in flood:
                writer.transport.abort()

    run(main(), loop)
    lines = events(caplog, "refused")
    assert any("too many connections wait" in line for line in lines)
    assert len(lines) <= 4 * (LINES_PER_SECOND_MAX + 1), "a flood must not fill the log"
    assert any("more=" in line for line in lines)


def test_a_stranger_takes_little_memory(addresses: Addresses) -> None:
    where = addresses(1)
    strangers = 200

    async def main() -> None:
        # All of them are there at the same time, however long it takes until the last one is.
        async with Group(made_of(where, 0, handshake_s=PATIENCE_S)) as group:
            address = group.settings.members[0]
            tracemalloc.start()
            flood = [await asyncio.open_connection(address.host, address.port) for _ in range(strangers)]
            while len(group._mesh._acceptor._strangers) < strangers:
                await asyncio.sleep(0)
            member_side = tracemalloc.take_snapshot().filter_traces([tracemalloc.Filter(True, "*/quire/live/*")])
            tracemalloc.stop()
            for _, writer in flood:
                writer.transport.abort()
            assert sum(trace.size for trace in member_side.traces) < strangers * 16_384

    run(main())


def test_a_stranger_cannot_fail_a_group_that_has_started(addresses: Addresses, caplog: pytest.LogCaptureFixture) -> None:
    """What would have failed it at the start, certain as it is, is of no consequence any more."""
    caplog.set_level(logging.INFO)
    where = addresses(3)

    async def main() -> None:
        members = [made_of(where, me) for me in range(3)]
        async with chatting(members) as chat:
            for claimed in (1, 2):
                for attack in (another_group, another_incarnation_of_any):
                    async with stranger(members[claimed]) as one:
                        with suppress(AssertionError):
                            await attack(one)
                        await one.is_gone()
            await chat.goes_on()

    run(main())
    assert len(events(caplog, "refused")) == 4


async def another_incarnation_of_any(one: Stranger) -> None:
    await one.shake_hands()
    one.send(one.introduction())
    assert "is a different process than before" in await one.refusal()
