"""How often processes are looked at: the longer that takes, the less often."""

from __future__ import annotations

from itertools import pairwise

from quire.watch.sources import LOOK_S, PACES_S, pace_for


def test_looking_takes_a_small_part_of_the_time_as_long_as_there_is_a_longer_interval() -> None:
    for took_s in (0.0, 0.001, 0.02, 0.04, 0.09):
        assert took_s <= pace_for(took_s) / 40
    assert pace_for(0.01) == LOOK_S
    assert pace_for(3.0) == PACES_S[-1]


def test_intervals_are_multiples_of_each_other_so_that_processes_are_asked_at_the_same_time() -> None:
    assert all(later % earlier == 0 for earlier, later in pairwise(PACES_S))
