"""Every erratum of docs/papers.md is planted back, and caught; the same runs are right without it.

Most are caught by random runs or by the specification's shrunk schedules on some network. Those that need a rare
coincidence have a script that brings it about: links that are cut at the right moment.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import msgspec
import pytest

from quire.protocols.sequencing.options import SequencingOptions
from quire.simulation.network import Split
from tests.kit.effort import runs
from tests.sequencing.faults import FAULTS
from tests.sequencing.kit import MS, RIGHT, TICK_MS, Action, Faults, Kinds
from tests.sequencing.oracle import disagreements, wrong_with
from tests.sequencing.plans import Plan, overlapping_plan, random_plan
from tests.sequencing.schedules import NAMES, schedule

Plans = Callable[[], Iterator[Plan]]


def on_schedule(name: str, start: int = 0, loss: float = 0.25) -> Plans:
    return lambda: (schedule(f"kb_min_{name}", seed, loss) for seed in range(start, start + 500))


def at_random(order: str) -> Plans:
    return lambda: (random_plan(seed, order, pipelined=False) for seed in range(500))


def overlapping(order: str) -> Plans:
    return lambda: (overlapping_plan(seed, order) for seed in range(500))


def script(*actions: Action, initial: dict[str, tuple[int, tuple[int, ...]]], cut_ms: tuple[int, int]) -> Plans:
    """Three clients, two sequencers, links of 10 ms; client 0 and sequencer 3 cannot reach each other for a while."""
    cut = Split(((3,), (0,)), cut_ms[0] * MS, cut_ms[1] * MS)
    faults = Faults(delay="constant:10", reorder=False, cuts=(cut,))
    options = SequencingOptions(order="total", tick_ms=TICK_MS, balance_ticks=0)
    return lambda: iter([Plan(options, initial, 3, 2, faults, actions, 0)])


# Client 1 leaves G having delivered its message, which client 0 lacks. H is moved away, and what is numbered there
# reaches client 0 first.
SEPARATED = script(
    Action(0, "send", 2, "G"),
    Action(21, "leave", 1, "G"),
    Action(70, "move", 2, "H", 1),
    Action(130, "send", 2, "H"),
    initial={"G": (0, (0, 1)), "H": (0, (0, 1))},
    cut_ms=(5, 200),
)
# Two groups come to overlap at their sequencer. A message of one is lost on the way to client 0, the next of the other not.
GROWN_TOGETHER = script(
    Action(0, "send", 2, "G"),
    Action(0, "send", 2, "H"),
    Action(50, "join", 0, "H"),
    Action(150, "join", 1, "G"),
    Action(300, "send", 2, "G"),
    Action(320, "send", 2, "H"),
    initial={"G": (0, (0,)), "H": (0, (1,))},
    cut_ms=(305, 315),
)

CAUGHT: dict[str, tuple[Plans, str]] = {
    "K1": (on_schedule("total_join_D0"), "failed"),
    "K2": (on_schedule("total_t2_literal"), "stuck"),
    "K3": (at_random("total"), "stuck"),
    "K4": (on_schedule("total_t2_eq"), "stuck"),
    "K5": (on_schedule("hybrid_d_merge_join_pend_ignore"), "slice"),
    "K6": (on_schedule("hybrid_join_pend_ignore"), "causal"),
    "K7": (on_schedule("total_no_departing"), "pairwise"),
    "K8": (SEPARATED, "pairwise"),
    "K9, K11": (on_schedule("total_no_s2"), "pairwise"),
    "K10": (overlapping("total"), "pairwise"),
    "K12": (GROWN_TOGETHER, "pairwise"),
    "K13": (on_schedule("ct_ct_eq_dep"), "stuck"),
    "K15": (on_schedule("hybrid_acc_assign", 300, 0.1), "causal"),
    "K16": (on_schedule("ct_pipe_literal"), "stuck"),
    "K17": (on_schedule("hybrid_pipe_literal_own_hold_hold_nonmember"), "stuck"),
    "K18": (on_schedule("hybrid_pipe_literal_own_hold_id_table_drop"), "stuck"),
    "K19": (on_schedule("total_dedup_gc"), "duplicate"),
    "K20": (on_schedule("total_no_reqid"), "broke"),
    "K21": (on_schedule("total_no_status"), "stuck"),
    "K22": (at_random("hybrid"), "stuck"),
    "K24": (at_random("hybrid"), "stuck"),
}


def outcome(plan: Plan, kinds: Kinds) -> str | None:
    try:
        return wrong_with(plan.play(kinds))
    except (KeyError, AssertionError) as error:
        return f"broke: {error!r}"


@pytest.mark.parametrize("erratum", CAUGHT)
def test_an_erratum_that_is_planted_back_is_caught_as_what_it_is(erratum: str) -> None:
    plans, expected = CAUGHT[erratum]
    for plan in plans():
        found = outcome(plan, FAULTS[erratum])
        if found is not None and found.startswith(expected):
            assert outcome(plan, RIGHT) is None
            return
    pytest.fail(f"no run caught {erratum}")


def test_every_erratum_is_planted_somewhere() -> None:
    planted = {each for names in (*CAUGHT, "K14") for each in names.split(", ")}
    assert planted | {"K23"} == {f"K{number}" for number in range(1, 25)}
    assert set(CAUGHT) | {"K14"} == set(FAULTS)


@pytest.mark.parametrize("name", NAMES)
def test_every_shrunk_schedule_is_right_on_any_network(name: str) -> None:
    for seed in range(runs(8, 15)):
        for loss in (0.0, 0.25, 0.45):
            assert outcome(schedule(name, seed, loss), RIGHT) is None, (seed, loss)


def busy(seed: int, order: str, *, sequencers: int) -> Plan:
    """Three clients in the same three groups, all of whom send to all of them."""
    actions = tuple(Action(3 * step, "send", (step + seed) % 3, f"G{(step * step + seed) % 3}") for step in range(18))
    everybody: tuple[int, ...] = (0, 1, 2)
    initial = {f"G{number}": (number % sequencers, everybody) for number in range(3)}
    faults = Faults(loss=0.1, delay="exponential:10")
    options = SequencingOptions(order=order, tick_ms=TICK_MS, balance_ticks=0)  # type: ignore[arg-type]
    return Plan(options, initial, 3, sequencers, faults, actions, seed)


def share_of_disagreements(order: str, kinds: Kinds = RIGHT, sequencers: int = 1) -> float:
    opposite = total = 0
    for seed in range(40):
        service = busy(seed, order, sequencers=sequencers).play(kinds)
        assert wrong_with(service) is None
        counts = disagreements(service)
        opposite, total = opposite + counts[0], total + counts[1]
    return opposite / total


def test_hybrid_is_really_weaker_than_total_and_contexts_of_colocated_groups_would_undo_that() -> None:
    """K14."""
    assert share_of_disagreements("total") == share_of_disagreements("causal-total") == 0
    assert share_of_disagreements("hybrid", FAULTS["K14"]) == 0
    assert 0.02 < share_of_disagreements("hybrid") < 0.3
    assert 0.02 < share_of_disagreements("hybrid", sequencers=3) < 0.3


def ring_of_three(seed: int, *, acyclic: bool) -> Plan:
    """Three groups that share one client each, pair by pair: two founders each, or joined one after the other."""
    options = SequencingOptions(order="total", acyclic=acyclic, tick_ms=TICK_MS, balance_ticks=0)
    initial: dict[str, tuple[int, tuple[int, ...]]] = {"G0": (0, (0,)), "G1": (1, (1,)), "G2": (2, (2,))}
    joins = [Action(0, "join", (number + 1) % 3, f"G{number}") for number in range(3)]
    sends = [Action(1500 + seed % 7 * step, "send", step % 3, f"G{step % 3}") for step in range(9)]
    faults = Faults(delay="exponential:30", loss=0.1)
    return Plan(options, initial, 3, 3, faults, (*joins, *sends), seed)


def test_three_groups_that_overlap_in_a_ring_cycle_under_s2_and_not_if_acyclic() -> None:
    """K23: total is pairwise, as promised, and no more."""
    cycles = 0
    for seed in range(60):
        service = ring_of_three(seed, acyclic=False).play()
        assert wrong_with(service) is None
        service.options = msgspec.structs.replace(service.options, acyclic=True)
        cycles += (wrong_with(service) or "").startswith("cycle")
        safe = ring_of_three(seed, acyclic=True).play()
        assert wrong_with(safe) is None
        assert len(set(safe.directory.locations.values())) == 1
    assert cycles > 5
