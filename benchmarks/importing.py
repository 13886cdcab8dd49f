"""How fast logs are imported: the whole import of a ShiViz log on Spark, beside a plain reader of the same file.

    python -m benchmarks.importing [--megabytes 60] [--repeat 2]

The import parses, checks every clock against the events, reconstructs who sent what to whom, and writes a run. The plain
reader finds host and clock of every event with Python's `re` and `json` in one process, and keeps and checks nothing: a
bound that no import in Python can reach on one core.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import shutil
import tempfile
import time
from pathlib import Path

from quire.pipeline.importing.importer import import_logs
from quire.pipeline.importing.request import ImportRequest
from quire.pipeline.session import session

HOSTS = 8
_EVENT = re.compile(rb"^(?P<host>\S+) (?P<clock>\{.*\})\n(?P<event>.*)$", re.MULTILINE)


def write_log(path: Path, size: int, seed: int = 1) -> int:
    """Hosts that send to each other at random; returns how many events there are."""
    draw = random.Random(seed)
    names = [f"host{number}" for number in range(HOSTS)]
    clocks = [dict.fromkeys((name,), 0) for name in names]
    flying: list[list[dict[str, int]]] = [[] for _ in names]
    written = events = 0
    with path.open("w", encoding="utf-8") as log:
        while written < size:
            me = draw.randrange(HOSTS)
            clock, text = clocks[me], "works on something of its own"
            if flying[me] and draw.random() < 0.5:
                for name, count in flying[me].pop(0).items():
                    clock[name] = max(count, clock.get(name, 0))
                text = "received a request, and thinks about it"
            clock[names[me]] += 1
            if draw.random() < 0.4 and len(flying[me]) < 100:
                flying[draw.choice([other for other in range(HOSTS) if other != me])].append(dict(clock))
                text = "sends a request to somebody else"
            written += log.write(f"{names[me]} {json.dumps(clock)}\n{text}\n")
            events += 1
    return events


def read_plainly(path: Path) -> int:
    found = 0
    for match in _EVENT.finditer(path.read_bytes()):
        json.loads(match["clock"])
        found += bool(match["host"])
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description="Import beside a plain reader.")
    parser.add_argument("--megabytes", type=int, default=60)
    parser.add_argument("--repeat", type=int, default=2)
    chosen = parser.parse_args()
    work = Path(tempfile.mkdtemp(prefix="quire-benchmark-"))
    try:
        log = work / "log.txt"
        events = write_log(log, chosen.megabytes * 1_000_000)
        size = log.stat().st_size / 1e6
        print(
            f"{size:.0f} MB, {events:,} events of {HOSTS} hosts, {os.cpu_count()} cores; best of {chosen.repeat}, warm session"
        )
        with session() as spark:
            import_logs(spark, [log], work / "warm", ImportRequest())
            times: dict[str, list[float]] = {"import": [], "plain reader": []}
            for number in range(chosen.repeat):
                began = time.perf_counter()
                import_logs(spark, [log], work / f"run-{number}", ImportRequest())
                times["import"].append(time.perf_counter() - began)
                began = time.perf_counter()
                assert read_plainly(log) == events
                times["plain reader"].append(time.perf_counter() - began)
        best = {name: min(taken) for name, taken in times.items()}
        for name, seconds in best.items():
            print(f"{name:<14} {seconds:6.1f} s  {size / seconds:6.1f} MB/s")
        print(f"import to the plain reader: {best['import'] / best['plain reader']:.2f} times the time")
    finally:
        shutil.rmtree(work, ignore_errors=True)


if __name__ == "__main__":
    main()
