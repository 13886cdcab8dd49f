"""Nodes on real sockets: packets arrive, timers ring, closing waits for all, and a lost member is given up or not."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from pathlib import Path

import msgspec

from quire.live.errors import NotDelivered
from quire.live.runs.fleet import free_addresses
from quire.live.services.nodes import Host
from quire.live.settings import Settings, read_settings
from quire.live.spool import Spool
from quire.model.packets import Packet
from quire.protocols.node import Effects, Node, Notice, Send
from quire.trace.logs import read_records
from quire.trace.schema import PACKET

MEMBERS = 3
ROUNDS = 20
REPEAT_NS = 50_000_000


class Options(msgspec.Struct, frozen=True):
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
    return read_settings("nodes", me, addresses, protocol="curious", options=Options(), timeout_s=timeout_s)


async def take_part(settings: Settings, node: Curious, heard: list[Notice], spool: Spool | None = None) -> None:
    async with Host(settings, node, lambda _host, notice: heard.append(notice), spool=spool):
        pass


def test_everybody_gets_all_answers_and_closing_waits_for_all(tmp_path: Path) -> None:
    heard: list[list[Notice]] = [[] for _ in range(MEMBERS)]

    async def main() -> None:
        addresses = free_addresses(MEMBERS)
        async with asyncio.TaskGroup() as tasks:
            for me in range(MEMBERS):
                spool = Spool(me, MEMBERS, tmp_path / str(me))
                tasks.create_task(take_part(made(addresses, me), Curious(me, ROUNDS), heard[me], spool))

    asyncio.run(main())
    for me, told in enumerate(heard):
        assert len(told) == ROUNDS * MEMBERS
        records = next(read_records(tmp_path / str(me)))
        assert (records[:, 0] == PACKET).sum() >= ROUNDS * (1 + MEMBERS)


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
    for error in asyncio.run(lose_one(survives=False)):
        assert "member 2" in str(error.__cause__ if error is not None else None)
