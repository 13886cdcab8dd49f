"""Connections that are split, stalled and cut at random moments: nothing is lost, nothing repeated, and the order kept."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from quire.live import Group, MemberUnreachable
from quire.model.messages import Message
from quire.protocols.registry import PROTOCOLS
from tests.kit.effort import cases
from tests.live.proxy import CALM, Proxy, Weather, proxies
from tests.live.running import FIXED, LOOPS, chatting, events, folders, made_of, run, trusted

__all__ = ["folders"]

Addresses = Callable[[int], list[str]]

STORM = Weather(cut_after_bytes=20_000, stall=0.05, stall_s=0.01, piece_bytes=3000)
DRIZZLE = Weather(cut_after_bytes=1800, stall=0.01, stall_s=0.002, piece_bytes=25)


async def exchange(
    where: list[str], weather: Weather, seed: int, rounds: int, size: int, protocol: str = "two-phase", **chosen: object
) -> tuple[list[list[Message]], list[Proxy]]:
    """Three members behind proxies, each of which sends `rounds` batches of 10 messages; what each delivered."""
    public, private = where[:3], where[3:]
    kind, folders = str(chosen.get("kind", "open")), Path(str(chosen.get("folders", "")))
    async with proxies(public, private, weather, seed) as found:
        groups = [
            Group(made_of(public, me, listen=private[me], protocol=protocol, timeout_s=10, **trusted(kind, folders, me)))
            for me in range(3)
        ]

        async def live(group: Group) -> list[Message]:
            async def listen() -> list[Message]:
                return [message async for message in group]

            async with group:
                listening = asyncio.ensure_future(listen())
                for number in range(rounds):
                    payload = f"{group.me}/{number}/".encode().ljust(size, b".")
                    await group.multicast_many([payload] * 10)
                    await asyncio.sleep(0)
                await complete(group, 30 * rounds)
                await group.close()
                return await listening

        async def complete(group: Group, count: int) -> None:
            """Close only when all is delivered here, so that the first to close does not silence the others."""
            while sum(group._driver.delivered) < count:
                await asyncio.sleep(0.005)

        logs = await asyncio.gather(*map(live, groups))
        return list(logs), found


def check(logs: list[list[Message]], rounds: int, protocol: str) -> None:
    for log in logs:
        for origin in range(3):
            own = [message for message in log if message.origin == origin]
            assert [message.seq for message in own] == list(range(10 * rounds)), "lost, repeated or out of order"
            assert all(message.payload.startswith(f"{origin}/{message.seq // 10}/".encode()) for message in own)
    if "total" in PROTOCOLS[protocol].protocol.promises:
        assert logs[0] == logs[1] == logs[2]


@pytest.mark.parametrize("protocol", FIXED)
def test_nothing_is_lost_or_repeated_however_often_connections_are_cut(addresses: Addresses, protocol: str) -> None:
    where = addresses(6)

    async def main() -> None:
        logs, found = await exchange(where, STORM, 1, 150, 200, protocol)
        check(logs, 150, protocol)
        assert sum(proxy.cuts for proxy in found) >= 5, "a network in which nothing went wrong proves nothing"

    run(main())


@pytest.mark.parametrize(("seed", "loop"), cases([(0, "asyncio"), (2, "uvloop")], [(1, "asyncio")]))
def test_connections_cut_within_frames_and_handshakes_lose_nothing(addresses: Addresses, seed: int, loop: str) -> None:
    where = addresses(6)

    async def main() -> None:
        logs, found = await exchange(where, DRIZZLE, seed, 48, 40)
        check(logs, 48, "two-phase")
        assert sum(proxy.cuts for proxy in found) >= 5

    run(main(), loop)


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("kind", ["secret", "tls"])
def test_secured_connections_survive_cuts_as_well(addresses: Addresses, folders: Path, kind: str, loop: str) -> None:
    where = addresses(6)

    async def main() -> None:
        logs, found = await exchange(where, STORM, 2, 40, 200, kind=kind, folders=folders)
        check(logs, 40, "two-phase")
        assert sum(proxy.cuts for proxy in found) >= 3

    run(main(), loop)


def test_a_connection_on_which_nothing_comes_any_more_is_replaced(
    addresses: Addresses, caplog: pytest.LogCaptureFixture
) -> None:
    where = addresses(6)
    public, private = where[:3], where[3:]
    weather = Weather(cut_after_bytes=30_000, spared_bytes=10_000, deaf=1.0)

    async def main() -> None:
        async with proxies(public, private, weather, 3) as found:
            settings = [made_of(public, me, listen=private[me], timeout_s=4) for me in range(3)]
            async with chatting(settings) as chat:
                # Only the connections that are there now go deaf: what piles up meanwhile would deafen their successors too.
                for proxy in found:
                    proxy.weather = CALM
                while sum(proxy.deafened for proxy in found) < 3:
                    await chat.goes_on(1)

    run(main())
    assert any("nothing was received for" in line for line in events(caplog, "disconnected"))


def test_all_connections_cut_at_once_are_made_again(addresses: Addresses) -> None:
    where = addresses(6)
    public, private = where[:3], where[3:]

    async def main() -> None:
        async with proxies(public, private, CALM, 4) as found:
            settings = [made_of(public, me, listen=private[me]) for me in range(3)]
            async with chatting(settings) as chat:
                for _ in range(5):
                    for proxy in found:
                        proxy.cut_all()
                    await chat.goes_on()
            assert sum(proxy.cuts for proxy in found) >= 10

    run(main())


def test_a_connection_cut_while_the_group_closes_loses_no_last_word(addresses: Addresses) -> None:
    where = addresses(4)
    public, private = where[:2], where[2:]

    async def main() -> None:
        async with proxies(public, private, CALM, 5) as (proxy, _):
            groups = [Group(made_of(public, me, listen=private[me])) for me in range(2)]
            await asyncio.gather(*(group.__aenter__() for group in groups))
            await groups[0].execute(b"x")
            closing = [asyncio.ensure_future(group.close()) for group in groups]
            for _ in range(10):
                await asyncio.sleep(0)
                proxy.cut_all()
            await asyncio.gather(*closing)

    run(main())


def test_a_member_that_stays_cut_off_is_reported_within_the_timeout(addresses: Addresses) -> None:
    where = addresses(4)
    public, private = where[:2], where[2:]

    async def main() -> None:
        async with proxies(public, private, CALM, 6) as (proxy, _):
            groups = [Group(made_of(public, me, listen=private[me], timeout_s=1)) for me in range(2)]
            await asyncio.gather(*(group.__aenter__() for group in groups))
            proxy.weather = Weather(cut_after_bytes=1)
            proxy.cut_all()
            for group in groups:
                with pytest.raises(MemberUnreachable, match=f"member {1 - group.me}"):
                    await group.runs().__anext__()
                await group._mesh.stop()

    run(main())
