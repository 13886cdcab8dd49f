"""Every schedule of one change of view in small groups: three members, somebody who joins, one crash, two messages.

In every state the views, what they begin with, and what was delivered in them are as they must be; and wherever nothing more
happens by itself, everything comes to rest once timers run. QUIRE_EXHAUSTIVE=full adds what takes minutes: total order,
uniform delivery, requests to join that arrive at any time, ballots that compete.
"""

from __future__ import annotations

import os
from typing import Any

import pytest

from quire.views.packets import Join
from tests.views.explorer import Explorer
from tests.views.stage import Stage

FULL = os.environ.get("QUIRE_EXHAUSTIVE") == "full"


def group(*, asked: bool = True, **settings: Any) -> Stage:
    """Three members at rest, and j0, which has their state. It has asked each to be a member, or its requests are under way."""
    stage = Stage(3, joiners=1, run_max=1, **settings)
    stage.found()
    stage.start("j0", founds=False)
    while len(stage.under_way(Join)) < 3:
        stage.tick("j0")
        while links := [link for link in stage.deliverable() if not isinstance(stage.first(link), Join)]:
            stage.arrive(links[0])
    if asked:
        stage.settling.drain()
    return stage


def explore(stage: Stage, *, every: int = 1, **what: Any) -> set[tuple[str, ...]]:
    """Explore all schedules, and have every one of so many of their ends come to rest. Returns who is in the next view on
    some schedule. The counts are shown by `pytest -s`."""
    explorer = Explorer(stage, **what)
    seen = explorer.explore()
    ends = sorted(seen.ends)[::every]
    live = sum(map(explorer.settle, ends))
    print(f"\n{seen.states:,} states, {seen.transitions:,} steps, {len(seen.ends):,} ends; {len(ends):,} tried, {live:,} live")
    assert live > len(ends) / 2
    return seen.next_views


CAUSAL: dict[str, Any] = {"protocol": "causal-vector"}
CLUSTERS: dict[str, Any] = {"protocol": "hierarchy", "clusters": ("north", "south", "south", "north")}
"""What m2 sends goes by way of m1, the agent of its cluster."""
LEADER: dict[str, Any] = {"ballots": {"m0": 1}, "may_crash": "m0", "heirs": ["m1"]}
"""The leader may crash, and then another may lead."""
OTHER: dict[str, Any] = {"ballots": {"m0": 1}, "may_crash": "m2", "heirs": ["m0"]}
"""Another member may crash, and then the leader may try again."""
AGENT: dict[str, Any] = {"ballots": {"m0": 1}, "may_crash": "m1", "heirs": ["m0"]}


Case = tuple[dict[str, Any], dict[str, Any]]
"""The settings of a group, and what happens to it."""
SMALL: dict[str, Case] = {
    "the leader may crash while another sends": (CAUSAL, {"submissions": {"m2": 1}, "every": 20, **LEADER}),
}
LARGER: dict[str, Case] = {
    "the leader sends, and may crash": (CAUSAL, {"submissions": {"m0": 2}, "every": 20, **LEADER}),
    "the leader may crash while two others send": (CAUSAL, {"submissions": {"m1": 1, "m2": 1}, **LEADER}),
    "the leader waits for no more than a majority": (CAUSAL, {"submissions": {"m0": 1, "m2": 1}, "hasty": True, **OTHER}),
    "a sender may crash": (CAUSAL, {"submissions": {"m2": 2}, **OTHER}),
    "uniform": ({"uniform": True, **CAUSAL}, {"submissions": {"m2": 2}, **OTHER}),
    "total order": ({}, {"submissions": {"m2": 2}, **OTHER}),
    "total order, uniform": ({"uniform": True}, {"submissions": {"m0": 1, "m2": 1}, **OTHER}),
    "an agent may crash": (CLUSTERS, {"submissions": {"m2": 2}, **AGENT}),
    "an agent that sends may crash": (CLUSTERS, {"submissions": {"m1": 1, "m2": 1}, **AGENT}),
    "a coordinator may crash, uniform": (
        {"uniform": True, "options": {"inside": "coordinator"}, **CLUSTERS},
        {"submissions": {"m2": 2}, **AGENT},
    ),
    "requests to join arrive at any time": ({"asked": False, **CAUSAL}, {"submissions": {"m2": 2}, **OTHER}),
}
CASES = SMALL | LARGER if FULL else SMALL


@pytest.mark.parametrize("name", CASES)
def test_every_promise_is_kept_on_every_schedule(name: str) -> None:
    settings, what = CASES[name]
    found = explore(group(**settings), **what)
    assert any("j0" in view and what["may_crash"] in view for view in found)
    assert any("j0" in view and what["may_crash"] not in view for view in found)
