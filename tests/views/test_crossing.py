"""Connections that two processes make to each other at the same time: however their frames overtake each other, they talk."""

from __future__ import annotations

import random
from functools import partial

import pytest

from quire.views.effects import ProcessEffect
from quire.views.peers import Peer
from tests.kit.effort import runs
from tests.views.calm import everywhere, group, introduction
from tests.views.test_answers import arrive_in_any_order


def test_a_choice_that_comes_late_is_not_followed() -> None:
    """The peer has chosen another connection since, and ends this one."""
    peer, out = Peer("c", 0.0, decides=False), list[ProcessEffect]()
    peer.meet(introduction(1))
    peer.add_connection(1, out)
    peer.add_connection(2, out)
    peer.resumed(2, 0, 2, out)
    peer.resumed(1, 0, 1, out)
    assert (peer.connection, peer.is_ready) == (2, True)
    assert not peer.drop_connection(1)
    assert peer.is_ready


def test_a_process_that_took_the_place_of_another_counts_its_choices_anew() -> None:
    peer, out = Peer("c", 0.0, decides=False), list[ProcessEffect]()
    peer.meet(introduction(1))
    peer.add_connection(1, out)
    peer.resumed(1, 0, 7, out)
    peer.drop_connection(1)
    peer.meet(introduction(2))
    peer.add_connection(2, out)
    peer.resumed(2, 0, 1, out)
    assert (peer.connection, peer.is_ready) == (2, True)


@pytest.mark.parametrize("names", ["ab", "abc"])
def test_processes_that_connect_to_each_other_at_the_same_time_talk_soon(names: str) -> None:
    for seed in range(runs(40, 1000)):
        choose = random.Random(seed)
        world = group(names)
        world.settle()
        for _ in range(choose.randint(2, 4)):
            one, other = choose.sample(names, 2)
            world.dial(one, other)
            if choose.random() < 0.5:
                world.dial(other, one)
            while world.network.dials and choose.random() < 0.8:
                world.answer(choose.choice(world.network.dials))
            for _ in range(choose.randint(0, 6)):
                if ends := world.readable():
                    world.arrive(choose.choice(ends))
        for name in names:
            world.submit(name, [b"x"])
        arrive_in_any_order(world, choose)
        # They may have to connect once more, but nobody has to find out by silence that a connection is of no use.
        world.until(partial(everywhere, world, names, len(names)), world.timing.timeout_s / 4)
