"""Nodes on real sockets: packets arrive, timers ring, closing waits for all, and a lost member is given up or not."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import pytest

from quire.live.errors import NotDelivered
from quire.live.identity import identify
from quire.live.network.mesh import Mesh
from quire.live.network_options import Network
from quire.live.recording import Recording
from quire.live.runs.fleet import free_addresses
from quire.live.services.nodes import Host
from quire.live.services.visiting import HubHost
from quire.live.settings import Settings, read_settings
from quire.model.packets import Packet
from quire.protocols.node import Effects, Node, Notice, Send
from quire.trace.kinds import DELIVER, PACKET
from quire.trace.log import Address
from quire.trace.parts.reader import Part, Piece, part_files
from quire.trace.records import KIND
from tests.kit.patience import PATIENCE_S

MEMBERS = 3
ROUNDS = 20
REPEAT_NS = 50_000_000


class CuriousOptions(msgspec.Struct, frozen=True):
    rounds: int = ROUNDS


class Question(Packet, frozen=True, tag="question"):
    name = "QUESTION"
    number: int


class Answer(Packet, frozen=True, tag="answer"):
    name = "ANSWER"
    number: int


class Answered(Notice, frozen=True):
    number: int
    by: int


class Curious(Node):
    """Asks all, itself too, one question after the other; the next when enough have answered."""

    packets = (Question, Answer)

    def __init__(self, address: int, rounds: int, enough: int = MEMBERS) -> None:
        super().__init__(address)
        self.left = rounds
        self.enough = enough
        self.answers: set[int] = set()
        self.again: int | None = 0 if rounds else None

    def receive(self, now: int, source: int, packet: Packet) -> Effects:
        if isinstance(packet, Question):
            return (Send(Answer(packet.number), (source,)),)
        assert isinstance(packet, Answer)
        if packet.number != self.left or source in self.answers:
            return ()
        self.answers.add(source)
        if len(self.answers) >= self.enough:
            self.answers.clear()
            self.left -= 1
            self.again = now if self.left else None
        return (Answered(packet.number, source),)

    def wake(self, now: int) -> Effects:
        self.again = now + REPEAT_NS
        return (Send(Question(self.left), tuple(range(MEMBERS))),)

    def due(self) -> int | None:
        return self.again

    def idle(self) -> bool:
        return not self.left


def made(addresses: tuple[str, ...], me: int, timeout_s: float = 10.0) -> Settings:
    return read_settings(
        "nodes", me, addresses, protocol="curious", options=CuriousOptions(), network=Network(timeout_s=timeout_s)
    )


async def take_part(settings: Settings, node: Curious, heard: list[Notice], recording: Recording | None = None) -> None:
    async with Host(settings, node, lambda _host, notice: heard.append(notice), recording=recording):
        pass


def test_everybody_gets_all_answers_and_closing_waits_for_all(tmp_path: Path) -> None:
    heard: list[list[Notice]] = [[] for _ in range(MEMBERS)]

    async def main() -> None:
        addresses = free_addresses(MEMBERS)
        async with asyncio.TaskGroup() as tasks:
            for me in range(MEMBERS):
                settings = made(addresses, me)
                recording = Recording(tmp_path, identify(settings, frozenset(), {}), me)
                tasks.create_task(take_part(settings, Curious(me, ROUNDS), heard[me], recording))

    asyncio.run(main())
    for told, part in zip(heard, map(Part, part_files(tmp_path)), strict=True):
        assert len(told) == ROUNDS * MEMBERS
        records = next(piece.records for piece in part.read() if isinstance(piece, Piece))
        assert (records[:, KIND] == PACKET).sum() >= ROUNDS * (1 + MEMBERS)


def test_what_a_node_tells_is_on_disk_before_others_can_hear_of_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recorded: list[int] = []
    transmit = Mesh.transmit

    def look(mesh: Mesh, *arguments: Any) -> int:
        pieces = [piece.records for piece in Part(*part_files(tmp_path)).read() if isinstance(piece, Piece)]
        recorded.append(sum(int((records[:, KIND] == DELIVER).sum()) for records in pieces))
        return transmit(mesh, *arguments)

    def record(host: Host, notice: Notice) -> None:
        assert isinstance(notice, Answered)
        host.record_delivery(notice.by, notice.number, Address("all"), 1)

    async def main() -> None:
        settings = made(free_addresses(1), 0)
        recording = Recording(tmp_path, identify(settings, frozenset(), {}), 0, at_once=True)
        async with Host(settings, Curious(0, 0), record, recording=recording) as host:
            question = Send(Question(0), (0,))
            host.act([Answered(0, 0), question, question, Answered(1, 0), Answered(2, 0), question])

    monkeypatch.setattr(Mesh, "transmit", look)
    asyncio.run(main())
    assert recorded[:3] == [1, 1, 3]


async def lose_one(survives: bool) -> list[NotDelivered | None]:
    """Member 2 leaves without a word after the others have begun."""
    addresses = free_addresses(MEMBERS)
    started = asyncio.Barrier(MEMBERS)

    async def stay(me: int) -> NotDelivered | None:
        node = Curious(me, 40, enough=2)
        try:
            async with Host(made(addresses, me, 1.0), node, lambda _host, _notice: None, survives=survives) as host:
                await started.wait()
                while host.failure is None and not host.lost:
                    await asyncio.sleep(0.02)
                assert host.lost == ({2} if survives else set())
        except NotDelivered as error:
            return error
        assert node.idle()
        return None

    async def leave() -> None:
        with suppress(ConnectionError):
            async with Host(made(addresses, 2, 1.0), Curious(2, 0), lambda _host, _notice: None):
                await started.wait()
                raise ConnectionError

    outcomes = await asyncio.gather(stay(0), stay(1), leave())
    return list(outcomes[:2])


def test_a_service_that_survives_goes_on_without_a_lost_member() -> None:
    assert asyncio.run(lose_one(survives=True)) == [None, None]


def test_a_service_that_does_not_survive_says_so_at_every_member() -> None:
    one, other = asyncio.run(lose_one(survives=False))
    for error in (one, other):
        assert error is not None
        assert "member 2" in str(error.__cause__)


def test_nobody_inherits_from_a_mesh_or_a_host() -> None:
    assert not Mesh.__subclasses__()
    assert not Host.__subclasses__()
    assert not HubHost.__subclasses__()


class Patient(Node):
    """Waits until a time that others may put off or bring forward."""

    packets = (Question, Answer)

    def __init__(self) -> None:
        super().__init__(0)
        self.at: int | None = None
        self.rang = asyncio.Event()

    def receive(self, now: int, source: int, packet: Packet) -> Effects:
        raise AssertionError(f"at {now}, {source} sent {packet}")

    def wake(self, now: int) -> Effects:
        assert self.at is not None
        assert now >= self.at
        self.at = None
        self.rang.set()
        return ()

    def due(self) -> int | None:
        return self.at

    def idle(self) -> bool:
        return True


def test_an_alarm_is_set_again_only_to_ring_earlier_and_rings_when_it_is_due() -> None:
    async def main() -> None:
        node = Patient()
        async with Host(made(free_addresses(1), 0), node, lambda *_: None) as host:
            node.at = host.now() + REPEAT_NS
            host.act(())
            alarm = host._alarm
            for _ in range(10):
                node.at = host.now() + REPEAT_NS
                host.act(())
                assert host._alarm is alarm
            await node.rang.wait()
            node.rang.clear()
            node.at = host.now() + 3600 * 10**9
            host.act(())
            node.at = host.now() + REPEAT_NS
            host.act(())
            await node.rang.wait()

    asyncio.run(asyncio.wait_for(main(), PATIENCE_S))
