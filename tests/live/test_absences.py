"""Which clients a sequencer with backups suspects: those that are silent, until they are evicted or heard again."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from quire.live import clock
from quire.live.network.peers import Peer
from quire.live.services.surviving.absences import Absences
from tests.kit.virtual_time import run_in_virtual_time

TIMEOUT_S = 1.0
CLIENT = 7
NOBODY: frozenset[int] = frozenset()


class Sequencer:
    """Looks twenty times a second whom to suspect."""

    def __init__(self) -> None:
        self.absences = Absences(TIMEOUT_S)
        self.peer = Peer(CLIENT, "a client", clock.now())
        self.visitors = [self.peer]
        self.members: frozenset[int] = frozenset({CLIENT})
        self.evicted: frozenset[int] = NOBODY

    def look(self) -> list[int]:
        return self.absences.look(self.visitors, self.members, self.evicted)

    async def after(self, seconds: float) -> list[int]:
        for _ in range(round(seconds * 20)):
            await asyncio.sleep(0.05)
            self.look()
        return self.look()

    def lose(self) -> None:
        """As the mesh does after a silence, which began now."""
        self.peer.heard_at, self.peer.lost = clock.now(), True


def play(act: Callable[[Sequencer], Awaitable[None]]) -> None:
    async def main() -> None:
        await act(Sequencer())

    run_in_virtual_time(main())


def test_a_client_that_is_heard_is_not_suspected() -> None:
    async def act(sequencer: Sequencer) -> None:
        assert await sequencer.after(5 * TIMEOUT_S) == []

    play(act)


def test_a_silent_client_is_suspected_until_it_is_heard_again() -> None:
    async def act(sequencer: Sequencer) -> None:
        sequencer.lose()
        assert await sequencer.after(0.9 * TIMEOUT_S) == []
        assert await sequencer.after(0.2 * TIMEOUT_S) == await sequencer.after(5 * TIMEOUT_S) == [CLIENT]
        sequencer.peer.lost = False
        assert sequencer.look() == []

    play(act)


def test_a_client_whose_process_has_ended_is_suspected_at_once() -> None:
    async def act(sequencer: Sequencer) -> None:
        sequencer.lose()
        sequencer.peer.ended = True
        assert sequencer.look() == [CLIENT]

    play(act)


def test_a_client_that_was_sent_away_is_suspected_until_it_is_evicted() -> None:
    async def act(sequencer: Sequencer) -> None:
        sequencer.absences.sent_away(CLIENT)
        sequencer.visitors = []
        assert sequencer.look() == await sequencer.after(5 * TIMEOUT_S) == [CLIENT]
        sequencer.evicted = frozenset({CLIENT})
        assert await sequencer.after(5 * TIMEOUT_S) == []

    play(act)


@pytest.mark.parametrize("evicted", [False, True])
def test_a_member_that_never_comes_is_suspected_unless_it_is_evicted_already(*, evicted: bool) -> None:
    async def act(sequencer: Sequencer) -> None:
        sequencer.visitors = []
        sequencer.evicted = frozenset({CLIENT}) if evicted else NOBODY
        assert await sequencer.after(0.9 * TIMEOUT_S) == []
        assert await sequencer.after(0.2 * TIMEOUT_S) == ([] if evicted else [CLIENT])

    play(act)


def test_a_sequencer_that_was_cut_off_or_stopped_gives_everybody_time_to_come() -> None:
    async def act(sequencer: Sequencer) -> None:
        sequencer.lose()
        for _ in range(100):
            sequencer.absences.excuse()
            assert await sequencer.after(0.05) == []
        assert await sequencer.after(0.9 * TIMEOUT_S) == []
        assert await sequencer.after(0.2 * TIMEOUT_S) == [CLIENT]
        await asyncio.sleep(5 * TIMEOUT_S)
        assert sequencer.look() == []
        assert await sequencer.after(1.1 * TIMEOUT_S) == [CLIENT]

    play(act)
