"""What causal order costs as groups grow: a hierarchy against one flat matrix and flat vectors, in the same run.

The same messages go to the same members, one each: a hierarchy passes them on from cluster to cluster, a flat matrix
sends each to its member alone, and flat vectors, which know no destinations, multicast each to everybody. Header bytes are
counted on the wire, over all hops and copies of a message; deliveries are those a second of processor time. What grows like
log n grows by the same step with each factor of four; n² grows sixteenfold. The last column says how many times as large
the header of the flat matrix is.

    python -m benchmarks.hierarchy [--messages 1024] [--repeats 1] [--json]
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from typing import Any

from quire.simulation.config import SimulationConfig, WorkloadConfig
from quire.simulation.simulate import SimulationResult, simulate

SIZES = (16, 64, 256)
SIZE = 64

CONTENDERS: dict[str, tuple[str, dict[str, object]]] = {
    "hierarchy, dense": ("hierarchy", {"branching": 4, "encoding": "dense"}),
    "hierarchy, adaptive": ("hierarchy", {"branching": 4, "encoding": "adaptive"}),
    "hierarchy, coordinators": ("hierarchy", {"branching": 4, "inside": "coordinator"}),
    "flat matrix, dense": ("matrix", {"encoding": "dense"}),
    "flat vector": ("causal-vector", {}),
}


def configure(protocol: str, options: dict[str, object], members: int, messages: int) -> SimulationConfig:
    """About as many messages in all, whatever the size of the group, each for one member where that can be said."""
    shares: dict[str, Any] = {} if protocol == "causal-vector" else {"broadcast": 0.0, "multicast": 0.0}
    workload = WorkloadConfig(messages=max(messages // members, 1), size=SIZE, interval_ms=20.0, **shares)
    return SimulationConfig(protocol=protocol, options=options, members=members, workload=workload)


def measure(protocol: str, options: dict[str, object], members: int, messages: int, repeats: int) -> dict[str, Any]:
    config = configure(protocol, options, members, messages)
    best = float("inf")
    for _ in range(repeats):
        began = time.process_time()
        result = simulate(config)
        best = min(best, time.process_time() - began)
    return summarise(result, best)


def summarise(result: SimulationResult, cpu_s: float) -> dict[str, Any]:
    assert result.complete
    copies = sum(result.packets_point_to_point.values()) / result.messages
    return {
        "messages": result.messages,
        "hops": copies,
        "header_entries": result.header_entries_per_message,
        "header_bytes": result.header_bytes_per_message,
        "wire_bytes": result.header_bytes_per_message + copies * SIZE,
        "deliveries_per_cpu_s": result.deliveries / cpu_s,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description="What causal order costs as groups grow.")
    parser.add_argument("--messages", type=int, default=1024, help="about so many in all, divided among the members")
    parser.add_argument("--repeats", type=int, default=1, help="the best of so many runs counts")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    if arguments.messages < 1 or arguments.repeats < 1:
        sys.exit("hierarchy benchmark: --messages and --repeats must be at least 1")
    figures = {
        name: {n: measure(protocol, options, n, arguments.messages, arguments.repeats) for n in SIZES}
        for name, (protocol, options) in CONTENDERS.items()
    }
    if arguments.json:
        print(json.dumps(figures))
        return
    show(figures)


def show(figures: dict[str, dict[int, dict[str, Any]]]) -> None:
    first = SIZES[0]
    print(f"about as many messages of {SIZE} bytes in groups of {', '.join(map(str, SIZES))}; bytes are those of one message")
    titles = (("n", 5), ("hops", 8), ("header", 10), ("on the wire", 13), ("per CPU s", 11), ("header x", 10), ("step", 9))
    print(f"{'':<26}" + "".join(f"{title:>{width}}" for title, width in (*titles, ("flat matrix x", 15))))
    for name, by_size in figures.items():
        last = None
        for n, each in by_size.items():
            bytes_ = each["header_bytes"]
            step = "" if last is None else f"{bytes_ - last:+,.0f}"
            rival = figures["flat matrix, dense"][n]["header_bytes"] / bytes_
            print(
                f"{name if n == first else '':<26}{n:>5}{each['hops']:>8.1f}{bytes_:>10,.0f}{each['wire_bytes']:>13,.0f}"
                f"{each['deliveries_per_cpu_s']:>11,.0f}{bytes_ / by_size[first]['header_bytes']:>10.1f}{step:>9}{rival:>15.1f}"
            )
            last = bytes_


if __name__ == "__main__":
    main()
