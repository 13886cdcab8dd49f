"""What it is worth to know what conflicts: `objects` beside `causal-vector` and `single-phase` on the same calls.

Four members, each of which holds replicas of eight objects and calls them at random times; a share of the calls conflicts
with each other at one object. The rivals multicast the same calls at the same times and know nothing of objects.

hold-back    simulated: how long a call waits at a member from its receipt until it may run (mean, p99)
calls/s      simulated, calls that take 1 ms each and come faster than one member could run one after the other: the rivals
             must run them in the order of delivery; objects run side by side what does not conflict
cpu          processor time of the simulation for each call, all members together. Objects answer each call and carry
             vectors; the rivals do neither

Causal order alone does not suffice where calls conflict: `differ` counts pairs of conflicting calls, of one object, that
two members ran in different orders.

    python -m benchmarks.objects [--calls 300] [--json]
"""

from __future__ import annotations

import argparse
import tempfile
import time
from itertools import combinations
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from benchmarks.tables import Row, show
from quire.objects.workload import ObjectWorkloadOptions, random_call
from quire.simulation.config import NetworkConfig, SimulationConfig, WorkloadConfig
from quire.simulation.randomness import stream
from quire.simulation.simulate import simulate

MEMBERS = 4
REPLICATED = 8
SHARES = (0, 10, 50, 100)
WORK_US = 1000
DELAY = "uniform:5:15"
RIVALS = ("causal-vector", "single-phase")

Order = list[tuple[int, int]]


def configure(protocol: str, calls: int, interval_ms: float, options: dict[str, object]) -> SimulationConfig:
    workload = WorkloadConfig(messages=calls, interval_ms=interval_ms, spacing="poisson", size=16)
    network = NetworkConfig(delay=DELAY)
    return SimulationConfig(protocol=protocol, members=MEMBERS, options=options, network=network, workload=workload)


def object_options(share: int, work_us: int) -> dict[str, object]:
    return {"objects": 0, "replicated": REPLICATED, "targets": 1, "depth": 0, "conflicts": share, "work_us": work_us}


def deliveries(directory: Path) -> dict[int, list[tuple[int, int, int]]]:
    """Of each member, the calls that it delivered in order: who called, the number there, when."""
    found: dict[int, list[tuple[int, int, int]]] = {}
    for rows in read_rows(directory):
        found[rows[0]["process"]] = [(row["origin"], row["seq"], row["time_ns"]) for row in rows if row["kind"] == "deliver"]
    return found


def read_rows(directory: Path) -> list[list[dict[str, Any]]]:
    columns = ["process", "kind", "origin", "seq", "time_ns", "object", "op"]
    return [pq.read_table(path, columns=columns).to_pylist() for path in sorted((directory / "trace").glob("*.parquet"))]


def one_after_the_other_ns(times: list[int]) -> int:
    """When a member is done that runs what it delivers one after the other."""
    free = 0
    for time_ns in times:
        free = max(free, time_ns) + WORK_US * 1000
    return free


def planned(calls: int, share: int) -> dict[tuple[int, int], tuple[str, str]]:
    """The object and the operation of each call, as the workload of objects draws them."""
    options = ObjectWorkloadOptions(**object_options(share, 0))  # type: ignore[arg-type]
    found = {}
    for member in range(MEMBERS):
        random = stream(0, f"calls/{member}")
        for number in range(calls):
            targets, op, *_ = random_call(random, options)
            found[member, number] = (targets[0], op)
    return found


def pairs_that_differ(orders: list[list[tuple[str, tuple[int, int]]]]) -> int:
    """Pairs of conflicting calls, each with its object, that not all members ran in the same order."""
    sets: list[set[tuple[tuple[int, int], tuple[int, int]]]] = []
    for order in orders:
        by_object: dict[str, Order] = {}
        for name, call in order:
            by_object.setdefault(name, []).append(call)
        sets.append({pair for calls in by_object.values() for pair in combinations(calls, 2)})
    return len(set.union(*sets)) - len(sets[0])


def conflicting(order: Order, plan: dict[tuple[int, int], tuple[str, str]]) -> list[tuple[str, tuple[int, int]]]:
    """Of the calls that a rival delivered, those that conflict, as they were planned."""
    return [(plan[call][0], call) for call in order if plan[call][1] == "set"]


def measure_rival(protocol: str, calls: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as directory:
        cpu = time.process_time()
        easy = simulate(configure(protocol, calls, 20.0, {}), Path(directory) / "easy")
        cpu = time.process_time() - cpu
        orders = [[(origin, seq) for origin, seq, _ in each] for each in deliveries(Path(directory) / "easy").values()]
        simulate(configure(protocol, calls, 1.0, {}), Path(directory) / "busy")
        busy = deliveries(Path(directory) / "busy")
    end_ns = max(one_after_the_other_ns([time_ns for _, _, time_ns in each]) for each in busy.values())
    assert easy.latency.remote is not None
    return {
        "held_mean_ms": easy.latency.remote.mean,
        "held_p99_ms": easy.latency.remote.p99,
        "calls_per_s": MEMBERS * calls / (end_ns / 1e9),
        "cpu_us": cpu / (MEMBERS * calls) * 1e6,
        "orders": orders,
    }


def measure_objects(calls: int, share: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as directory:
        cpu = time.process_time()
        easy = simulate(configure("objects", calls, 20.0, object_options(share, 0)), Path(directory) / "easy")
        cpu = time.process_time() - cpu
        orders = [
            [(row["object"], (row["origin"], row["seq"])) for row in rows if row["kind"] == "deliver" and row["op"] == "set"]
            for rows in read_rows(Path(directory) / "easy")
        ]
    busy = simulate(configure("objects", calls, 1.0, object_options(share, WORK_US)))
    assert easy.complete
    assert busy.complete
    assert easy.latency.remote is not None
    return {
        "held_mean_ms": easy.latency.remote.mean,
        "held_p99_ms": easy.latency.remote.p99,
        "calls_per_s": MEMBERS * calls / (busy.simulated_ms / 1e3),
        "cpu_us": cpu / (MEMBERS * calls) * 1e6,
        "differ": pairs_that_differ(orders),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description="What it is worth to know what conflicts.")
    parser.add_argument("--calls", type=int, default=300, help="calls of each member")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    rivals = {name: measure_rival(name, arguments.calls) for name in RIVALS}
    table = []
    for share in SHARES:
        plan = planned(arguments.calls, share)
        rows = {
            name: {**rival, "differ": pairs_that_differ([conflicting(order, plan) for order in rival["orders"]])}
            for name, rival in rivals.items()
        }
        rows["objects"] = measure_objects(arguments.calls, share)
        for name, row in rows.items():
            row.pop("orders", None)
            table.append({"conflicting": share, "protocol": name, **row})
    heading = (
        f"{MEMBERS} members, {REPLICATED} replicated objects, {arguments.calls} calls each, delays {DELAY} ms",
        "conflicting  protocol        held mean    held p99     calls/s   cpu a call  differ",
    )
    show(table, heading, written, as_json=arguments.json)


def written(row: Row) -> str:
    return (
        f"{row['conflicting']:>9} %  {row['protocol']:<14} {row['held_mean_ms']:>8.2f} ms {row['held_p99_ms']:>8.2f} ms"
        f" {row['calls_per_s']:>11,.0f} {row['cpu_us']:>9,.0f} us {row['differ']:>7,}"
    )


if __name__ == "__main__":
    main()
