"""How fast the simulator is: deliveries a second with the trace on, and how much slower that is than doing nothing.

The bare loop pushes and pops a heap entry and appends to a list for each packet that arrives: the least that an
event-driven simulator in Python would do. Processor time is shown beside elapsed time, because a machine that is busy
with something else stretches only the latter.

    python -m benchmarks.simulator [--messages 5000] [--repeats 3] [--json]
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from heapq import heappop, heappush
from pathlib import Path
from typing import Any

from quire.simulation.config import NetworkConfig, SimulationConfig, WorkloadConfig
from quire.simulation.simulate import SimulationResult, simulate

MEMBERS = 8
GOAL = 100_000

LOADS: dict[str, dict[str, Any]] = {
    "the command's defaults (every 50 ms)": {},
    "busy (every 5 ms)": {"interval_ms": 5.0},
    "saturated (every 0.5 ms)": {"interval_ms": 0.5},
    "busy, Poisson": {"interval_ms": 5.0, "spacing": "poisson"},
    "busy, random delays": {"interval_ms": 5.0, "delay": "uniform:5:15"},
    "busy, batches of 16": {"interval_ms": 5.0, "batch": 16},
}


def configure(messages: int, load: dict[str, Any]) -> SimulationConfig:
    load = dict(load)
    network = NetworkConfig(delay=load.pop("delay", "constant:10"))
    return SimulationConfig(members=MEMBERS, network=network, workload=WorkloadConfig(messages=messages, **load))


def bare_loop(arrivals: int) -> float:
    """Processor seconds for the least that a simulation with so many arrivals of packets must do."""
    started = time.process_time()
    heap = [(number, number) for number in range(64)]
    log: list[int] = []
    for number in range(64, 64 + arrivals):
        heappush(heap, (number, number))
        log.append(heappop(heap)[1])
    return time.process_time() - started


def measure(messages: int, load: dict[str, Any], repeats: int) -> dict[str, Any]:
    config = configure(messages, load)
    best_wall = best_cpu = float("inf")
    for _ in range(repeats):
        with tempfile.TemporaryDirectory() as directory:
            wall, cpu = time.perf_counter(), time.process_time()
            result = simulate(config, Path(directory) / "run")
            wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        best_wall, best_cpu = min(best_wall, wall), min(best_cpu, cpu)
    return summarise(result, best_wall, best_cpu, repeats)


def summarise(result: SimulationResult, wall: float, cpu: float, repeats: int) -> dict[str, Any]:
    assert result.complete
    arrivals = sum(result.packets_point_to_point.values())
    bare = min(bare_loop(arrivals) for _ in range(repeats))
    return {
        "deliveries": result.deliveries,
        "arrivals_per_delivery": arrivals / result.deliveries,
        "deliveries_per_s": result.deliveries / wall,
        "deliveries_per_cpu_s": result.deliveries / cpu,
        "bare_loop_ratio": cpu / bare,
        "goal_ratio": result.deliveries / wall / GOAL,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description="Speed of the simulator.")
    parser.add_argument("--messages", type=int, default=5000, help="messages of each of the 8 senders")
    parser.add_argument("--repeats", type=int, default=3, help="the best of so many runs counts")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    if arguments.messages < 1 or arguments.repeats < 1:
        sys.exit("simulator benchmark: --messages and --repeats must be at least 1")
    figures = {name: measure(arguments.messages, load, arguments.repeats) for name, load in LOADS.items()}
    if arguments.json:
        print(json.dumps(figures))
        return
    print(f"single-phase, economical, {MEMBERS} members, {arguments.messages:,} messages each, trace on")
    print(f"{'load':<40}{'deliveries/s':>14}{'per CPU s':>12}{'arrivals/delivery':>19}{'x bare loop':>13}{'x goal':>8}")
    for name, each in figures.items():
        print(
            f"{name:<40}{each['deliveries_per_s']:>14,.0f}{each['deliveries_per_cpu_s']:>12,.0f}"
            f"{each['arrivals_per_delivery']:>19.2f}{each['bare_loop_ratio']:>13.1f}{each['goal_ratio']:>8.2f}"
        )


if __name__ == "__main__":
    main()
