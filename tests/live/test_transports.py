"""Time and transport come from outside: whole groups in memory and in virtual time, and a transport of one's own."""

from __future__ import annotations

import ast
import asyncio
import gc
import socket
import time
import tomllib
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import msgspec
import pytest

import quire.live
from quire.live import Event, Group, GroupFailed, MemberUnreachable, NotDelivered
from quire.live.groups.joining import record_group
from quire.live.network.transports.contract import Endpoint, Transport
from quire.live.network.transports.memory import Memory, MemoryNetwork
from quire.live.network.transports.registry import TRANSPORTS
from quire.live.network.transports.tcp import Tcp
from quire.live.recording import Recording
from quire.live.settings import Address, Settings
from quire.model.errors import BadInput
from quire.model.messages import Message
from quire.trace.parts.reader import Part, Piece, part_files
from quire.trace.records import TIME_NS
from tests.kit.virtual_time import VirtualTimeLoop, run_in_virtual_time
from tests.live.running import SECRET, made_of

WHERE = ["127.0.0.1:7000", "127.0.0.1:7001", "127.0.0.1:7002"]
TIMEOUT_S = 10.0
LOOK_S = 1.0
"""How often a member looks who is silent."""


def settings_of(me: int, transport: str = "memory", **more: Any) -> Settings:
    return made_of(WHERE, me, timeout_s=TIMEOUT_S, transport=transport, **more)


async def with_three(
    act: Callable[[Sequence[Group]], Awaitable[None]], transport: str = "memory", *, leave: bool = True, **more: Any
) -> None:
    groups = [Group(settings_of(me, transport, **more)) for me in range(3)]
    async with AsyncExitStack() as stack:
        if leave:
            await asyncio.gather(*(stack.enter_async_context(group) for group in groups))
        else:
            await asyncio.gather(*(group.__aenter__() for group in groups))
        await act(groups)
        if leave:
            await asyncio.gather(*(group.close() for group in groups))


async def all_of(group: Group, count: int) -> list[bytes]:
    found: list[Message] = []
    async for message in group:
        found.append(message)
        if len(found) == count:
            break
    return [message.payload for message in found]


async def talk(groups: Sequence[Group]) -> None:
    """Everybody multicasts, and everybody delivers the same in the same order."""
    for me, group in enumerate(groups):
        await group.multicast_many([b"%d:%d" % (me, number) for number in range(50)])
    logs = await asyncio.gather(*(all_of(group, 150) for group in groups))
    assert logs[0] == logs[1] == logs[2]
    assert len(set(logs[0])) == 150


@pytest.mark.parametrize("more", [{}, {"secret": SECRET}, {"protocol": "matrix"}], ids=["open", "secret", "causal"])
def test_a_whole_group_runs_in_memory(more: dict[str, Any]) -> None:
    async def act(groups: Sequence[Group]) -> None:
        if "protocol" in more:
            await groups[1].multicast(b"x")
            assert await asyncio.gather(*(all_of(group, 1) for group in groups)) == [[b"x"]] * 3
        else:
            await talk(groups)

    run_in_virtual_time(with_three(act, **more))


def silence() -> tuple[float, list[str], float]:
    """Member 2 is cut off without a word: when the others are told, and what."""
    told: list[tuple[float, str]] = []

    async def act(groups: Sequence[Group]) -> None:
        await talk(groups)
        loop = asyncio.get_running_loop()
        cut_off_at = loop.time()
        MemoryNetwork.of(loop).cut_off(Address("127.0.0.1", 7002))
        for group in groups[:2]:
            with pytest.raises(MemberUnreachable) as caught:
                await all_of(group, 1)
            assert caught.value.member == 2
            told.append((loop.time() - cut_off_at, str(caught.value)))
            with pytest.raises(NotDelivered):
                await group.close()
        with pytest.raises(GroupFailed):
            await all_of(groups[2], 1)
        with pytest.raises(NotDelivered):
            await groups[2].close()

    began = time.perf_counter()
    run_in_virtual_time(with_three(act, leave=False))
    return told[0][0], [text for _, text in told], time.perf_counter() - began


def test_a_member_that_falls_silent_is_unreachable_after_the_timeout_of_virtual_time() -> None:
    after_s, texts, took_s = silence()
    assert TIMEOUT_S < after_s <= TIMEOUT_S + LOOK_S
    assert len(texts) == 2
    assert took_s < TIMEOUT_S, "nobody waits real seconds"
    again_s, texts_again, _ = silence()
    assert (again_s, texts_again) == (after_s, texts), "in virtual time it takes exactly as long every time"


def test_a_connection_that_is_mended_in_time_goes_on_where_it_was() -> None:
    events: list[Event] = []

    async def act(groups: Sequence[Group]) -> None:
        groups[0]._mesh.report.listener = events.append
        network, third = MemoryNetwork.of(asyncio.get_running_loop()), Address("127.0.0.1", 7002)
        network.cut_off(third)
        await groups[0].multicast(b"while it is away")
        await asyncio.sleep(TIMEOUT_S * 0.7)
        network.mend(third)
        logs = await asyncio.gather(*(all_of(group, 1) for group in groups))
        assert logs == [[b"while it is away"]] * 3

    run_in_virtual_time(with_three(act))
    assert [event.kind for event in events if event.kind in ("disconnected", "connected")][:2] == ["disconnected", "connected"]


def test_closing_waits_for_the_timeout_and_no_longer() -> None:
    async def act(groups: Sequence[Group]) -> None:
        loop = asyncio.get_running_loop()
        MemoryNetwork.of(loop).cut_off(Address("127.0.0.1", 7002))
        began = loop.time()
        with pytest.raises(NotDelivered):
            await groups[0].close()
        assert TIMEOUT_S <= loop.time() - began <= TIMEOUT_S + 3 * LOOK_S
        for group in groups[1:]:
            with pytest.raises(NotDelivered):
                await group.close()

    run_in_virtual_time(with_three(act, leave=False))


def test_a_member_that_never_comes_is_awaited_for_join_s_of_virtual_time() -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        began, events = loop.time(), list[Event]()
        alone = Group(settings_of(0, join_s=600.0), on_event=events.append)
        with pytest.raises(MemberUnreachable):
            await alone.__aenter__()
        assert loop.time() - began == pytest.approx(600.0)
        assert [event.kind for event in events] == ["awaited"] * 119, "every five seconds"

    run_in_virtual_time(main())


def test_traces_are_dated_by_the_clock_that_is_handed_in(tmp_path: Path) -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualTimeLoop)
        groups = []
        for me in range(3):
            recorded: Recording = record_group(settings_of(me), tmp_path)
            recorded.wall_ns = loop.wall_ns
            groups.append(Group(settings_of(me), recorded))
        async with AsyncExitStack() as stack:
            await asyncio.gather(*(stack.enter_async_context(group) for group in groups))
            await talk(groups)
            await asyncio.gather(*(group.close() for group in groups))

    run_in_virtual_time(main())
    pieces = [piece for file in part_files(tmp_path) for piece in Part(file).read() if isinstance(piece, Piece)]
    times = [int(at) for piece in pieces for at in piece.records[:, TIME_NS]]
    assert times
    assert max(times) < 10_000 * 10**9, "not a date of the real clock"


def test_a_toy_transport_is_one_module_and_one_entry(monkeypatch: pytest.MonkeyPatch) -> None:
    class Counting:
        """Carries bytes as memory does, and counts who connects."""

        connected = 0

        def __init__(self, settings: Settings) -> None:
            self._under: Transport = Memory(settings)

        async def listen(self, address: Address) -> Sequence[Endpoint]:
            return await self._under.listen(address)

        async def connect(self, protocol: asyncio.BufferedProtocol, member: int, address: Address) -> None:
            await self._under.connect(protocol, member, address)
            Counting.connected += 1

        async def say(self, words: bytes, address: Address) -> None:
            await self._under.say(words, address)

    monkeypatch.setitem(TRANSPORTS, "counting", Counting)
    run_in_virtual_time(with_three(talk, "counting"))
    assert Counting.connected >= 3


def test_certificates_need_a_transport_that_has_them(tmp_path: Path) -> None:
    from quire.live import Certificates

    settings = msgspec.structs.replace(settings_of(0), certificates=Certificates.of(tmp_path))
    with pytest.raises(BadInput, match="certificates need TCP"):
        Memory(settings)


def test_one_module_of_live_groups_reads_a_clock_and_one_makes_sockets() -> None:
    live = Path(quire.live.__file__).parent

    def importers(name: str) -> set[str]:
        trees = {path.relative_to(live): ast.parse(path.read_text()) for path in live.rglob("*.py")}
        return {
            str(path)
            for path, tree in trees.items()
            for node in ast.walk(tree)
            if isinstance(node, ast.Import) and name in [alias.name for alias in node.names]
        }

    assert importers("time") == {"clock.py"}
    # Whoever starts processes looks which ports are free.
    assert importers("socket") == {"network/transports/tcp.py", "ports.py"}


def test_the_layers_on_paper_are_those_of_the_contract() -> None:
    root = Path(__file__).parents[2]
    contracts = tomllib.loads((root / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    layers = " > ".join(contracts[0]["layers"]).replace("quire.", "")
    assert f"`{layers}`" in (root / "CONTRIBUTING.md").read_text()
    assert f"`{layers}`" in (root / "docs" / "architecture.md").read_text()
    assert not any("ignore_imports" in contract for contract in contracts)


@pytest.mark.parametrize("turns", range(4))
def test_a_connection_is_not_forgotten_when_accepting_ends_at_the_moment_in_which_it_comes(turns: int) -> None:
    async def main() -> None:
        (endpoint,) = await Tcp(settings_of(0)).listen(Address("127.0.0.1", 0))
        accepting = asyncio.create_task(endpoint.accept())
        await asyncio.sleep(0)
        with socket.create_connection(("127.0.0.1", endpoint.port)):
            for _ in range(turns):
                await asyncio.sleep(0)
            accepting.cancel()
            for ended in await asyncio.gather(accepting, return_exceptions=True):
                if not isinstance(ended, BaseException):
                    ended.close()
        endpoint.close()

    asyncio.run(main())
    gc.collect()  # What was forgotten complains now, and not in whichever test comes later.
