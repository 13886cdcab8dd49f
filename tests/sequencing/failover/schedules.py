"""The specification's shrunk schedules: who is where, what is done, and what goes wrong when."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from quire.protocols.sequencing.failover.options import SurvivingOptions
from tests.sequencing.failover.kit import Fault
from tests.sequencing.failover.plans import FailoverPlan
from tests.sequencing.kit import TICK_MS, Action, Faults

CASES: dict[str, Any] = {
    case["off"]: case for case in json.loads((Path(__file__).parents[2] / "golden" / "fo_min_counterexamples.json").read_text())
}
_ORDERS = {"ct": "causal-total", "total": "total", "hybrid": "hybrid"}


def schedule(name: str, seed: int) -> FailoverPlan:
    """A golden schedule on a network of that seed."""
    case = CASES[name]
    initial = {
        group: (int(case["location"][group][1:]), tuple(int(client[1:]) for client in clients))
        for group, clients in case["groups"].items()
    }
    actions, happens = [], []
    for at, kind, who, *more in case["actions"]:
        number = int(who[1:])
        if kind == "crash":
            happens.append(Fault(at, "crash", number))
        elif kind == "cut":
            happens.append(Fault(at, "cut", number, more[0]))
        elif kind == "ccrash":
            happens.append(Fault(at, "suspected" if more[0] else "lost", number))
        else:
            actions.append(Action(at, "move" if kind == "rebal" else kind, number, more[0]))
    inside = [client for _, members in initial.values() for client in members]
    clients = 1 + max([*inside, *(action.client for action in actions)])
    options = SurvivingOptions(
        order=_ORDERS[case["mode"]],  # type: ignore[arg-type]
        pipelined=case["pipe"],
        backups=case["k"],
        tick_ms=TICK_MS,
        lease_ticks=15,
        balance_ticks=0,
    )
    faults = Faults(loss=case["loss"], duplicate=case["dup"], delay="exponential:10")
    return FailoverPlan(
        options, initial, clients, len(case["nodes"]), len(case["units"]), faults, tuple(actions), tuple(happens), seed
    )
