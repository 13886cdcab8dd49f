"""The specification's shrunk schedules: who is in which group, and what is done when."""

from __future__ import annotations

import json
from pathlib import Path

from quire.protocols.sequencing.options import SequencingOptions
from tests.sequencing.kit import Action, Faults
from tests.sequencing.plans import Plan

GOLDEN = Path(__file__).parent.parent / "golden"
NAMES = sorted(path.stem for path in GOLDEN.glob("kb_min_*.json"))
_ORDERS = {"ct": "causal-total", "total": "total", "hybrid": "hybrid"}
_TICK_MS = 60
"""The schedules count in steps in which a packet takes some, and what is lost is repeated after some tens."""


def schedule(name: str, seed: int, loss: float = 0.25) -> Plan:
    """A golden schedule on a network of that seed."""
    case = json.loads((GOLDEN / f"{name}.json").read_text())
    initial = {
        group: (int(location[1:]), tuple(int(client[1:]) for client in clients))
        for group, (location, clients) in case["initial"].items()
    }
    actions = [
        Action(at, "move" if kind == "rebal" else kind, int(client[1:]), group) for at, kind, client, group in case["actions"]
    ]
    options = SequencingOptions(
        order=_ORDERS[case.get("mode", "total")],  # type: ignore[arg-type]
        pipelined=case.get("pipelined", False),
        tick_ms=_TICK_MS,
        balance_ticks=0,
    )
    clients = 1 + max([action.client for action in actions] + [each for _, inside in initial.values() for each in inside])
    faults = Faults(loss=loss, duplicate=0.2, delay="exponential:15")
    return Plan(options, initial, clients, 2, faults, tuple(actions), seed)
