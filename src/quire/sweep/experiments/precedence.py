"""The experiment on calls between objects: how many pairs of messages are ordered by significance and by causality."""

from __future__ import annotations

import msgspec

from quire.objects.workload import ObjectWorkloadOptions, placements
from quire.protocols.registry import convert_options
from quire.simulation.config import NetworkConfig, SimulationConfig, WorkloadConfig, check
from quire.simulation.precedence import Pairs, count_pairs
from quire.sweep.experiments.contract import Experiment, Quantity


class Cell(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`roots` are the trees of calls that each member starts; the rest is as in `quire simulate --protocol objects`."""

    members: int = 4
    objects: int = 6
    replicated: int = 0
    conflicts: int = 30
    depth: int = 2
    width: int = 2
    targets: int = 2
    vectors: str = "exact"
    roots: int = 20
    interval_ms: float = 20.0
    delay: str = "exponential:5"
    loss: float = 0.0
    seed: int = 0


_OPTIONS = ("objects", "replicated", "conflicts", "depth", "width", "targets", "vectors")


def _configure(cell: Cell) -> tuple[SimulationConfig, ObjectWorkloadOptions]:
    workload = WorkloadConfig(messages=cell.roots, interval_ms=cell.interval_ms, spacing="poisson")
    network = NetworkConfig(delay=cell.delay, loss=cell.loss, duplicate=cell.loss, reorder=True)
    config = SimulationConfig(protocol="objects", members=cell.members, network=network, workload=workload, seed=cell.seed)
    return config, convert_options("objects", ObjectWorkloadOptions, {name: getattr(cell, name) for name in _OPTIONS})


def _check(cell: Cell) -> None:
    config, options = _configure(cell)
    check(config)
    placements(cell.members, options)


def _measure(cell: Cell) -> Pairs:
    return count_pairs(*_configure(cell))


def _share(part: int, whole: int) -> float | None:
    return 100 * part / whole if whole else None


_QUANTITIES = (
    Quantity("messages", "", "requests and responses", lambda _, pairs: pairs.messages),
    Quantity("significant", "%", "pairs of messages that significance orders", lambda _, p: _share(p.significant, p.all)),
    Quantity("causal", "%", "pairs of messages that causality orders", lambda _, p: _share(p.causal, p.all)),
    Quantity("of_causal", "%", "of the pairs that causality orders, as many as significance does",
             lambda _, p: _share(p.significant, p.causal)),
    Quantity("entries_mean", "entries", "entries of a message's vector, if nothing is forgotten", lambda _, p: p.entries_mean),
)  # fmt: skip

PRECEDENCE = Experiment(
    name="precedence",
    summary="pairs of messages between objects that are ordered",
    cell=Cell,
    quantities=_QUANTITIES,
    check=_check,
    measure=_measure,
    work=lambda cell: cell.members * cell.roots * (1 + cell.depth * cell.width * cell.targets),
)
