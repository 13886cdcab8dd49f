"""Who is told of a loss, when, and who is blamed for it."""

from __future__ import annotations

import asyncio
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import quire
from quire.live import Group, GroupFailed, MemberUnreachable, PeerMisbehaved
from quire.live.network.losses import has_ended
from quire.live.network.transports.memory import MemoryNetwork
from quire.live.network.transports.tcp import Tcp
from quire.live.runs.fleet import free_addresses
from quire.live.services.sequencers import connect
from quire.live.settings import read_address
from quire.model.errors import BadInput
from tests.kit.virtual_time import run_in_virtual_time
from tests.live.proxy import CALM, Proxy
from tests.live.running import chatting, crash, events, folders, made_of, run, trusted

__all__ = ["folders"]

Addresses = Callable[[int], list[str]]

SECONDS = 4
"""A loss that can be known is told within one second; here the machine may have other things to do."""

MEMBER = """
import asyncio, sys, quire

async def main(me, members):
    async with quire.join("test", me=me, members=members, protocol="two-phase", timeout_s=60) as group:
        print("joined", flush=True)
        async for _ in group:
            pass

asyncio.run(main(int(sys.argv[1]), sys.argv[2:]))
"""


def start(program: str, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, "-c", program, *arguments], stdout=subprocess.PIPE, text=True)


async def told(group: Group) -> GroupFailed:
    """What ends the group here."""
    with pytest.raises(GroupFailed) as caught:
        async for _ in group:
            pass
    return caught.value


async def entered(groups: list[Group]) -> list[Group]:
    await asyncio.gather(*(group.__aenter__() for group in groups))
    return groups


async def left(groups: list[Group]) -> None:
    await asyncio.gather(*(group._mesh.stop() for group in groups))


def test_whoever_leaves_after_a_loss_says_who_is_missing_and_how_it_was_lost() -> None:
    async def main() -> list[BaseException | None]:
        where = ["127.0.0.1:7000", "127.0.0.1:7001", "127.0.0.1:7002"]
        groups = await entered([Group(made_of(where, me, transport="memory")) for me in range(3)])
        MemoryNetwork.of(asyncio.get_running_loop()).cut_off(read_address(where[1]))
        await asyncio.gather(*(told(group) for group in groups))
        return await asyncio.gather(*(groups[me].close() for me in (0, 2)), return_exceptions=True)

    for error in run_in_virtual_time(main()):
        assert isinstance(error, quire.NotDelivered)
        lost = r"member 1 \(127\.0\.0\.1:7001\) is not connected: (cannot connect to it|nothing was received for)"
        assert re.search(lost, str(error))


@pytest.mark.parametrize("killed", [0, 1, 2])
def test_a_process_that_is_killed_is_told_within_a_second_and_not_after_the_timeout(addresses: Addresses, killed: int) -> None:
    where = addresses(3)

    async def main() -> None:
        process = start(MEMBER, str(killed), *where)
        try:
            others = await entered([Group(made_of(where, me, timeout_s=60)) for me in range(3) if me != killed])
            assert process.stdout is not None
            assert process.stdout.readline() == "joined\n"
            process.send_signal(signal.SIGKILL)
            at = time.monotonic()
            for error in await asyncio.gather(*map(told, others)):
                assert isinstance(error, MemberUnreachable)
                assert error.member == killed
                assert "its process has ended" in error.why
            assert time.monotonic() - at < SECONDS
            await left(others)
        finally:
            process.kill()
            process.communicate()

    run(main())


@pytest.mark.parametrize("kind", ["secret", "tls"])
def test_the_end_of_a_process_is_known_over_secured_connections_too(addresses: Addresses, folders: Path, kind: str) -> None:
    where = addresses(2)

    async def main() -> None:
        for victim in range(2):
            groups = await entered([Group(made_of(where, me, timeout_s=60, **trusted(kind, folders, me))) for me in range(2)])
            await crash(groups[victim])
            at = time.monotonic()
            assert "its process has ended" in str(await told(groups[1 - victim]))
            assert time.monotonic() - at < SECONDS
            await left(groups)

    run(main())


def test_a_proxy_that_is_started_anew_ends_no_group(addresses: Addresses) -> None:
    """It closes its connections and refuses others for longer than a process that has ended would have to."""
    where = addresses(6)
    public, private = where[:3], where[3:]

    async def main() -> None:
        found = [Proxy(public[me], private[me], CALM, me) for me in range(3)]
        for proxy in found:
            await proxy.open()
        async with chatting([made_of(public, me, listen=private[me], timeout_s=20) for me in range(3)]) as chat:
            for _ in range(2):
                for proxy in found:
                    await proxy.close()
                assert await has_ended(Tcp(made_of(public, 1)), read_address(public[0]))
                for proxy in found:
                    await proxy.open()
                await chat.goes_on()
        for proxy in found:
            await proxy.close()

    run(main())


def test_a_member_that_comes_back_as_another_process_is_told_at_once_to_all_and_blamed_by_all(addresses: Addresses) -> None:
    where = addresses(3)

    async def main() -> None:
        groups = await entered([Group(made_of(where, me, timeout_s=60)) for me in range(3)])
        await crash(groups[2])
        at = time.monotonic()
        with pytest.raises(BadInput, match="member 2 is a different process than before; a restarted member cannot rejoin"):
            async with Group(made_of(where, 2, timeout_s=60)):
                pass
        for error in await asyncio.gather(*map(told, groups[:2])):
            assert isinstance(error, MemberUnreachable)
            assert error.member == 2
        assert time.monotonic() - at < SECONDS
        await left(groups)

    run(main())


def test_a_second_process_of_a_member_that_is_there_is_refused_and_ends_nothing(addresses: Addresses) -> None:
    *where, elsewhere = addresses(4)

    async def main() -> None:
        async with chatting([made_of(where, me, timeout_s=20) for me in range(3)]) as chat:
            with pytest.raises(BadInput, match="member 2 is a different process than before"):
                async with Group(made_of(where, 2, listen=elsewhere, timeout_s=20)):
                    pass
            # Whether a process has ended is known within a second, so until then the group must not take this for an end.
            until = time.monotonic() + 1
            while time.monotonic() < until:
                await chat.goes_on()

    run(main())


def test_a_member_that_is_started_anew_before_the_group_has_started_is_taken_in(addresses: Addresses) -> None:
    where = addresses(3)

    async def main() -> None:
        groups = [Group(made_of(where, me, timeout_s=20)) for me in range(3)]
        joining = [asyncio.ensure_future(group.__aenter__()) for group in groups[:2]]
        while any(groups[me]._mesh.peers[1 - me].connection is None for me in range(2)):
            await asyncio.sleep(0.01)
        joining[1].cancel()
        await asyncio.gather(joining[1], return_exceptions=True)
        again = Group(made_of(where, 1, timeout_s=20))
        await asyncio.gather(joining[0], again.__aenter__(), groups[2].__aenter__())
        assert (await again.execute(b"here again")).payload == b"here again"
        await asyncio.gather(groups[0].close(), again.close(), groups[2].close())

    run(main())


def test_a_member_that_learns_of_a_misfit_from_another_says_so_at_once_and_blames_the_right_one(addresses: Addresses) -> None:
    """Members 1 and 2 cannot reach each other, so that only member 0 can know."""
    *where, hidden = addresses(4)

    async def main() -> None:
        one = {"protocol": "matrix", "timeout_s": 60}
        groups = [
            Group(made_of(where, 0, **one)),
            Group(made_of(where, 1, listen=hidden, **one)),
            Group(made_of(where, 2, options={"encoding": "changes"}, **one)),
        ]
        at = time.monotonic()
        first = [asyncio.ensure_future(group.__aenter__()) for group in groups[:2]]
        while groups[0]._mesh.peers[1].connection is None:
            await asyncio.sleep(0.01)
        errors = await asyncio.gather(*first, groups[2].__aenter__(), return_exceptions=True)
        assert time.monotonic() - at < SECONDS
        texts = [str(error) for error in errors]
        assert all(isinstance(error, BadInput) for error in errors), texts
        sentence = "member 2 has option 'encoding' 'changes' and member 0 has 'dense'; give all members the same"
        assert texts[0] == f"member 2 ({where[2]}): {sentence}"
        assert texts[1] == f"member 2 ({where[2]}): {sentence} (reported by member 0)"

    run(main())


def test_whoever_comes_just_after_others_have_found_a_misfit_is_told_too(addresses: Addresses) -> None:
    where = addresses(3)

    async def main() -> None:
        groups = [Group(made_of(where, me, protocol="matrix" if me == 1 else "two-phase", timeout_s=60)) for me in range(3)]
        first = [asyncio.ensure_future(group.__aenter__()) for group in groups[:2]]
        while groups[0]._mesh._gathering.obstacle is None:
            await asyncio.sleep(0.01)
        last = asyncio.ensure_future(groups[2].__aenter__())
        errors = await asyncio.gather(*first, last, return_exceptions=True)
        assert all(isinstance(error, BadInput) for error in errors)
        assert "'matrix'" in str(errors[2])

    run(main())


def test_a_member_whose_application_fails_is_blamed_at_once_and_by_name(addresses: Addresses) -> None:
    where = addresses(3)

    async def main() -> None:
        groups = [Group(made_of(where, me, timeout_s=60)) for me in range(3)]

        async def fail() -> None:
            async with groups[1]:
                await asyncio.gather(*others)
                raise ZeroDivisionError

        others = [asyncio.ensure_future(group.__aenter__()) for group in (groups[0], groups[2])]
        failing, *_ = await asyncio.gather(fail(), return_exceptions=True)
        assert isinstance(failing, ZeroDivisionError)
        at = time.monotonic()
        for group in (groups[0], groups[2]):
            error = await told(group)
            assert isinstance(error, MemberUnreachable)
            assert error.member == 1
            assert error.why.startswith("it left the group without closing it")
        assert time.monotonic() - at < SECONDS
        await left(groups)

    run(main())


def test_a_member_that_leaves_right_after_the_start_is_believed_by_those_for_whom_it_has_not_started() -> None:
    """Members 1 and 2 cannot reach each other, so that the group starts at member 0 alone."""
    where = ["127.0.0.1:7000", "127.0.0.1:7001", "127.0.0.1:7002"]
    listens: list[dict[str, Any]] = [{}, {"listen": "127.0.0.1:7003"}, {}]

    async def main() -> None:
        loop = asyncio.get_running_loop()
        groups = [Group(made_of(where, me, timeout_s=60, transport="memory", **listens[me])) for me in range(3)]
        entering = [asyncio.ensure_future(group.__aenter__()) for group in groups]
        await entering[0]
        assert not entering[1].done()
        assert not entering[2].done()
        at = loop.time()
        await groups[0]._mesh.stop()
        for error in await asyncio.gather(*entering[1:], return_exceptions=True):
            assert isinstance(error, MemberUnreachable)
            assert error.member == 0
            assert error.why == "it left the group without closing it"
        assert loop.time() - at < 2

    run_in_virtual_time(main())


def test_a_member_that_notices_a_loss_tells_those_who_cannot_know(addresses: Addresses) -> None:
    """Member 2 reaches member 1 through a proxy, so that its end looks there like that of the proxy."""
    *where, private = addresses(4)

    async def main() -> None:
        proxy = Proxy(where[1], private, CALM, 1)
        await proxy.open()
        listens: list[dict[str, Any]] = [{}, {"listen": private}, {}]
        groups = await entered([Group(made_of(where, me, timeout_s=60, **listens[me])) for me in range(3)])
        await crash(groups[2])
        at = time.monotonic()
        knows, hears = await asyncio.gather(told(groups[0]), told(groups[1]))
        assert time.monotonic() - at < SECONDS
        assert isinstance(knows, MemberUnreachable)
        assert isinstance(hears, MemberUnreachable)
        assert (knows.member, hears.member) == (2, 2)
        assert hears.why == f"{knows.why} (reported by member 0)"
        await left(groups)
        await proxy.close()

    run(main())


def test_a_member_that_misbehaves_is_named_by_those_that_only_heard_of_it(addresses: Addresses) -> None:
    where = addresses(3)

    async def main() -> None:
        groups = await entered([Group(made_of(where, me, timeout_s=60)) for me in range(3)])
        groups[0].failed(PeerMisbehaved(2, "member 2 sent an unreadable packet"))
        heard, accused = await asyncio.gather(told(groups[1]), told(groups[2]))
        assert isinstance(heard, PeerMisbehaved)
        assert heard.member == 2
        assert str(heard) == "member 2 sent an unreadable packet (reported by member 0)"
        assert isinstance(accused, MemberUnreachable)
        assert accused.member == 0
        assert accused.why == "it declared this member lost: member 2 sent an unreadable packet"
        await left(groups)

    run(main())


SEQUENCER = """
import asyncio, sys
from quire.live.services.sequencers import serve

async def main(address):
    async with serve([address], timeout_s=60):
        print("serves", flush=True)
        await asyncio.Event().wait()

asyncio.run(main(sys.argv[1]))
"""


def test_clients_of_a_sequencer_that_is_killed_are_told_within_a_second() -> None:
    [address] = free_addresses(1)

    async def main() -> None:
        process = start(SEQUENCER, address)
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "serves\n"
            client = connect(address, timeout_s=60)
            await client.__aenter__()
            process.send_signal(signal.SIGKILL)
            at = time.monotonic()
            with pytest.raises(MemberUnreachable, match="its process has ended"):
                await anext(aiter(client))
            assert time.monotonic() - at < SECONDS
            with pytest.raises(quire.QuireError):
                await client.__aexit__(None, None, None)
        finally:
            process.kill()
            process.communicate()

    run(main())


def test_whoever_only_looks_whether_somebody_listens_is_not_logged_as_refused(
    addresses: Addresses, folders: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        for kind in ("open", "tls"):
            where = addresses(2)
            async with chatting([made_of(where, me, **trusted(kind, folders, me)) for me in range(2)]) as chat:
                assert not await has_ended(Tcp(made_of(where, 1)), read_address(where[0]))
                await chat.goes_on()

    run(main())
    assert not events(caplog, "refused")
