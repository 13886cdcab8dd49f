"""Clients that vanish, or are taken for dead: the others go on, and what the evicted one delivered is a correct beginning."""

from __future__ import annotations

import pytest

from quire.model.messages import pack
from quire.protocols.node import Send
from quire.protocols.sequencing import packets as wire
from quire.protocols.sequencing.errors import Evicted
from quire.protocols.sequencing.events import LEAVE
from quire.protocols.sequencing.options import SequencingOptions
from tests.sequencing.kit import MS, TICK_MS, Action, Faults, Service
from tests.sequencing.oracle import _pairwise, _slices

LOST = 2
BAD = Faults(loss=0.3, duplicate=0.2, delay="exponential:10")


def service(order: str, seed: int, bodies: str = "relay") -> Service:
    options = SequencingOptions(order=order, bodies=bodies, tick_ms=TICK_MS, balance_ticks=0)  # type: ignore[arg-type]
    initial = {"G0": (0, (0, 1, 2)), "G1": (0, (0, 1, 2)), "G2": (1, (0,))}
    actions = [Action(10 * step, "send", step % 3, f"G{step % 3}") for step in range(12)]
    late = [Action(1500 + 10 * step, "send", step % 2, f"G{step % 3}") for step in range(6)]
    moves = [Action(1600, "move", 0, "G0", 1), Action(1600, "join", 1, "G2"), Action(1650, "leave", 1, "G0")]
    made = Service(options, initial, clients=3, sequencers=2, seed=seed, faults=BAD)
    return made.play([*actions, *late, *moves])


def suspect(made: Service) -> None:
    made.hosts[made.sequencers[1].address].act(made.sequencers[1].suspect(LOST))


@pytest.mark.parametrize("order", ["total", "hybrid", "causal-total"])
@pytest.mark.parametrize("alive", [False, True])
@pytest.mark.parametrize("bodies", ["relay", "direct"])
def test_an_evicted_client_leaves_all_groups_and_nothing_waits_for_it(order: str, alive: bool, bodies: str) -> None:
    for seed in range(25):
        made = service(order, seed, bodies)
        if not alive:
            made.world.at(60 * MS, made.world.crash, LOST)
        for at_ms in range(300, 20_000, 200):  # The suspicion may be lost on its way, and is uttered again.
            made.world.at(at_ms * MS, suspect, made)
        made.run()
        made.violations = [each for each in made.violations if "Evicted" not in each]
        assert made.ended, seed
        assert not made.violations
        for sequencer in made.sequencers:
            for group, state in sequencer.groups.items():
                assert LOST not in state.effective()
                assert not state.history
                assert all(made.clients[each].hold.delivered[group] == state.seq for each in state.members)
                assert set(made.directory.entries[group]) == set(state.members)
        assert _slices(made) is None
        assert order == "hybrid" or _pairwise(made) is None
        for group, log in made.log.items():
            left = [seen.seq for seen in log.values() if seen.kind == LEAVE and seen.who == LOST]
            assert len(left) == (group != "G2")
            assert not [seen for seen in log.values() if seen.who == LOST and seen.seq > max(left, default=0) and left]
        if alive:
            assert made.clients[LOST].evicted
            with pytest.raises(Evicted):
                made.clients[LOST].multicast(made.world.now, "G0", pack([b"x"]), 1)


def test_whatever_an_evicted_client_asks_for_is_refused() -> None:
    made = service("total", 0)
    sequencer = made.sequencers[0]
    sequencer.receive(0, made.directory.address, wire.Evict((LOST,)))
    [answer] = sequencer.receive(1, LOST, wire.Join("G0", LOST, 7))
    assert isinstance(answer, Send)
    assert answer.packet == wire.Expelled()
