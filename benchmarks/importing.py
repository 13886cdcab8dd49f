"""How fast logs are imported: whole imports, in one process and on Spark, beside plain readers of the same files.

    python -m benchmarks.importing [--megabytes 60] [--repeat 2] [--kinds shiviz,csv,jsonl,messages,spans]

An import parses, checks every clock against the events, or finds what each name means, reconstructs who sent what to whom, and
writes a run. A plain reader finds host and clock, or the names, of every event with Python's `re`, `csv` and `json` in one
process, and keeps and checks nothing.
"""

from __future__ import annotations

import argparse
import csv
import io
import json
import os
import random
import re
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from quire.pipeline.importing.importer import import_with
from quire.pipeline.importing.request import ImportRequest
from quire.pipeline.importing.tasks import IMPORT
from quire.pipeline.session import session
from quire.pipeline.tasks import Runner, run_here, run_on

HOSTS = 8
_EVENT = re.compile(rb"^(?P<host>\S+) (?P<clock>\{.*\})\n(?P<event>.*)$", re.MULTILINE)


def clocked_events(seed: int = 1) -> Iterator[tuple[str, dict[str, int], str]]:
    """Hosts that send to each other at random: whose event it is, its clock, and what is said."""
    draw = random.Random(seed)
    names = [f"host{number}" for number in range(HOSTS)]
    clocks = [dict.fromkeys((name,), 0) for name in names]
    flying: list[list[dict[str, int]]] = [[] for _ in names]
    while True:
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
        yield names[me], clock, text


def shiviz_log() -> Iterator[str]:
    for host, clock, text in clocked_events():
        yield f"{host} {json.dumps(clock)}\n{text}\n"


def csv_log() -> Iterator[str]:
    yield "host,clock,event\n"
    for host, clock, text in clocked_events():
        yield '{},"{}","{}"\n'.format(host, json.dumps(clock).replace('"', '""'), text)


def json_log() -> Iterator[str]:
    for host, clock, text in clocked_events():
        yield json.dumps({"host": host, "clock": clock, "event": text}) + "\n"


def message_log() -> Iterator[str]:
    """Messages by name: a send, and a delivery at every other host."""
    draw, number = random.Random(1), 0
    while True:
        sender, number = draw.randrange(HOSTS), number + 1
        for kind, host in [("send", sender), *(("deliver", host) for host in range(HOSTS) if host != sender)]:
            record = {"host": f"host{host}", "kind": kind, "message": f"request-{number}", "event": "about something"}
            yield json.dumps(record) + "\n"


def span_log() -> Iterator[str]:
    """Traces of some spans of services, each begun by one before it."""
    draw, begun = random.Random(1), 1_700_000_000_000_000_000
    yield "TraceID,SpanID,ParentID,PodName,OperationName,StartTimeUnixNano\n"
    while True:
        trace, spans = f"{draw.getrandbits(128):032x}", [""]
        for _ in range(draw.randint(1, 40)):
            begun += draw.randrange(1_000_000)
            parent = draw.choice(spans[1:] or spans)
            spans.append(f"{draw.getrandbits(64):016x}")
            yield f"{trace},{spans[-1]},{parent},service{draw.randrange(HOSTS)}-0,handles a request,{begun}\n"


def read_shiviz(path: Path) -> int:
    found = 0
    for match in _EVENT.finditer(path.read_bytes()):
        json.loads(match["clock"])
        found += bool(match["host"])
    return found


def read_csv(path: Path) -> int:
    found = 0
    for row in csv.DictReader(io.StringIO(path.read_text(), newline="")):
        json.loads(row["clock"])
        found += bool(row["host"])
    return found


def read_json(path: Path) -> int:
    return sum(bool(json.loads(line)["host"]) for line in path.read_bytes().splitlines())


def read_spans(path: Path) -> int:
    return sum(bool(row["SpanID"]) for row in csv.DictReader(io.StringIO(path.read_text(), newline="")))


class Kind(NamedTuple):
    """A kind of log: its lines, a plain reader, and how its files end."""

    lines: Callable[[], Iterator[str]]
    read: Callable[[Path], int]
    suffix: str


KINDS = {
    "shiviz": Kind(shiviz_log, read_shiviz, ".txt"),
    "csv": Kind(csv_log, read_csv, ".csv"),
    "jsonl": Kind(json_log, read_json, ".jsonl"),
    "messages": Kind(message_log, read_json, ".jsonl"),
    "spans": Kind(span_log, read_spans, ".csv"),
}


def write_log(path: Path, kind: Kind, size: int) -> None:
    written = 0
    with path.open("w", encoding="utf-8") as log:
        for line in kind.lines():
            written += log.write(line)
            if written >= size:
                return


def import_s(run: Runner, log: Path, events: int) -> float:
    """How long an import takes, with this runner."""
    out = log.with_suffix(".run")
    began = time.perf_counter()
    done = import_with(run, [log], out, ImportRequest())
    taken = time.perf_counter() - began
    assert sum(execution.events for execution in done.executions) == events
    shutil.rmtree(out)
    return taken


def main() -> None:
    parser = argparse.ArgumentParser(description="Imports beside plain readers.")
    parser.add_argument("--megabytes", type=int, default=60)
    parser.add_argument("--repeat", type=int, default=2)
    parser.add_argument("--kinds", default=",".join(KINDS))
    chosen = parser.parse_args()
    work = Path(tempfile.mkdtemp(prefix="quire-benchmark-"))
    print(f"{os.cpu_count()} cores; best of {chosen.repeat}, warm session")
    print(f"{'':<9} {'MB':>5} {'events':>10} {'plain s':>8} {'here s':>7} {'ratio':>6} {'Spark s':>8} {'ratio':>6}")
    try:
        with session() as spark:
            for name in chosen.kinds.split(","):
                kind, log = KINDS[name], work / f"{name}{KINDS[name].suffix}"
                write_log(log, kind, chosen.megabytes * 1_000_000)
                size = log.stat().st_size / 1e6
                events = kind.read(log)
                times: list[tuple[float, ...]] = []
                for _ in range(chosen.repeat + 1):
                    began = time.perf_counter()
                    kind.read(log)
                    plain = time.perf_counter() - began
                    times.append((plain, *(import_s(run, log, events) for run in (run_here(IMPORT), run_on(spark, IMPORT)))))
                plain, here, there = map(min, zip(*times[1:], strict=True))  # The first time, loops and modules are loaded.
                print(
                    f"{name:<9} {size:5.0f} {events:10,} {plain:8.2f} {here:7.2f} {here / plain:6.2f} {there:8.2f} "
                    f"{there / plain:6.2f}",
                    flush=True,
                )
                log.unlink()
    finally:
        shutil.rmtree(work, ignore_errors=True)


if __name__ == "__main__":
    main()
