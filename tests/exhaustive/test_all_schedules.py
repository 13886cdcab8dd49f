"""Every schedule of small worlds: all interleavings of a few submissions and of every packet that follows from them.

In every state the members' logs are prefixes of one sequence (where a total order is promised) and no cause comes after
its effect; in every last state everything is delivered. QUIRE_EXHAUSTIVE=full adds larger worlds, which take minutes.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

import pytest

from quire.model.orders import Guarantee
from quire.protocols.registry import PROTOCOLS
from tests.kit.explore import Exploration, Explorer
from tests.kit.variants import Variant, variants

FULL = os.environ.get("QUIRE_EXHAUSTIVE") == "full"

Script = Sequence[Sequence[int]]


def scripts(members: int, runs: int) -> list[Script]:
    """Every way to share out so many runs of one message among the members."""
    if members == 1:
        return [[(1,) * runs]]
    return [[(1,) * first, *rest] for first in range(runs + 1) for rest in scripts(members - 1, runs - first)]


def differ_on_single_messages(variant: Variant) -> bool:
    """Batches of either kind are the same thing while every run is one message."""
    return variant.options.get("batches") != "unit"


SINGLE = [variant for variant in variants() if differ_on_single_messages(variant)]
every_variant = pytest.mark.parametrize("variant", variants(), ids=str)
every_variant_for_single_messages = pytest.mark.parametrize("variant", SINGLE, ids=str)
every_survivor = pytest.mark.parametrize("variant", [v for v in SINGLE if v.kind.changes_views], ids=str)


def explore_all(variant: Variant, worlds: Sequence[Script], *, crash: bool = False) -> list[Exploration]:
    """Explore each world, with each member as the one that may crash if any. The sums are shown by `pytest -s`."""
    explored = [
        Explorer(variant.factory(), script, may_crash=member).explore()
        for script in worlds
        for member in (range(len(script)) if crash else [None])
    ]
    states, schedules = (sum(getattr(one, name) for one in explored) for name in ("states", "schedules"))
    print(f"\n{variant}: {len(explored)} worlds, {states:,} states" + (f", {schedules:,} schedules" if schedules else ""))
    return explored


@every_variant
def test_two_members_with_runs_of_several_messages(variant: Variant) -> None:
    explored = explore_all(variant, [[(2,), (1,)], [(2,), (3,)], [(1, 2), (2,)], [(3,), (1, 1)]])
    assert any(len(one.orders) > 1 for one in explored)


@every_variant_for_single_messages
def test_two_members_with_three_messages(variant: Variant) -> None:
    explored = explore_all(variant, scripts(2, 3) + (scripts(2, 5) if FULL else []))
    assert any(one.held_back for one in explored)


@every_variant_for_single_messages
def test_three_members_with_two_messages(variant: Variant) -> None:
    explored = explore_all(variant, scripts(3, 2) + (scripts(4, 2) if FULL else []))
    assert any(one.held_back for one in explored) or variant.protocol == "fifo"


@every_variant_for_single_messages
def test_three_members_with_three_messages(variant: Variant) -> None:
    worlds = scripts(3, 3) + (scripts(3, 4) if FULL else [])
    explored = explore_all(variant, worlds)
    assert any(one.held_back for one in explored)
    one_each = explored[worlds.index([(1,), (1,), (1,)])]
    if Guarantee.TOTAL in variant.promises:
        assert len(one_each.orders) == 6, "each of the six total orders comes about on some schedule"
        assert all(len(set(logs)) == 1 for logs in one_each.orders)
    elif variant.options.get("inside") != "coordinator":  # Three sites are one cluster, which then has one order.
        assert any(len(set(logs)) > 1 for logs in one_each.orders), "members do not always agree on the order"


@every_survivor
def test_three_members_with_two_messages_of_whom_one_may_crash(variant: Variant) -> None:
    worlds = scripts(3, 2) + (scripts(3, 3) if FULL else [])
    explored = explore_all(variant, worlds, crash=True)
    assert any(sum(map(len, logs)) < 4 for one in explored for logs in one.orders), "some message is lost with its sender"


@pytest.mark.parametrize("variant", [v for v in variants() if v.kind.changes_views], ids=str)
def test_two_and_three_members_with_a_run_of_two_messages_whose_sender_may_crash(variant: Variant) -> None:
    explored = explore_all(variant, [[(2,), (1,)], [(2,), (1,), ()]], crash=True)
    assert any(one.held_back for one in explored) or variant.protocol == "fifo"


def test_every_protocol_is_explored() -> None:
    assert {variant.protocol for variant in SINGLE} == set(PROTOCOLS)
