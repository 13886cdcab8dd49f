"""What a small audit costs, part by part: 120,000 events are judged in a fiftieth of a second, and the rest is starting.

    python -m benchmarks.starting [--repeat 3] [--json]

Each line is a process of its own that audits the same run. `first` finds neither the audit's loops compiled nor an archive of
Java's classes, as after an installation without `python -m quire.cli.warming`; `warm` finds both. Wall time depends on who else
uses the machine, so the processors' time is shown beside it: half of the sum is the least that two cores can need.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from contextlib import nullcontext, suppress
from pathlib import Path
from unittest.mock import patch

from benchmarks.tables import Row, show
from quire.simulation.config import SimulationConfig, WorkloadConfig
from quire.simulation.simulate import simulate

TARGET_S = 6.0
_TICK = os.sysconf("SC_CLK_TCK")
_PARTS = ("imports", "session", "first audit", "second audit", "end")


def audit_once(run: Path, *, warm: bool, began: float) -> Row:
    """Audit the run in this process; when each part of that was over, and the processors' time of everybody who took part."""
    from pyspark import SparkContext

    from quire.pipeline.auditing.auditor import audit
    from quire.pipeline.session import session

    ended = {"imports": time.time()}
    without_archive = patch("quire.pipeline.session.use_archive", return_value="")
    with nullcontext() if warm else without_archive, session("local[2]") as spark:
        ended["session"] = time.time()
        for part in ("first audit", "second audit"):
            assert audit(spark, run).verdict == "holds"
            ended[part] = time.time()
        gateway = SparkContext._gateway
        assert gateway is not None
        java, workers = _processor_s(gateway.proc.pid), sum(map(_processor_s, _descendants(gateway.proc.pid)))
    ended["end"] = time.time()
    starts = [began, *ended.values()]
    row: Row = {part: ended[part] - start for part, start in zip(_PARTS, starts, strict=False)}
    return row | {"all": ended["end"] - began, "driver": time.process_time(), "java": java, "workers": workers}


def _processor_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICK


def _descendants(pid: int) -> list[int]:
    children = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        with suppress(FileNotFoundError):  # Java's threads come and go.
            children += [int(child) for child in (task / "children").read_text().split()]
    return children + [other for child in children for other in _descendants(child)]


def measure(run: Path, scratch: Path, *, warm: bool) -> Row:
    environment = dict(os.environ)
    if not warm:
        environment["NUMBA_CACHE_DIR"] = tempfile.mkdtemp(dir=scratch)
    words = [sys.executable, "-m", "benchmarks.starting", "--once", str(run), *(["--warm"] if warm else [])]
    done = subprocess.run([*words, str(time.time())], env=environment, capture_output=True, text=True, check=True)
    row: Row = {"start": "warm" if warm else "first", **json.loads(done.stdout)}
    return row


def _line(row: Row) -> str:
    names = (*_PARTS, "all", "driver", "java", "workers")
    mark = "" if row["all"] <= TARGET_S else f"  (over {TARGET_S:.0f} s)"
    return f"{row['start']:5s}" + "".join(f"{row[name]:13.2f}" for name in names) + mark


def main() -> None:
    if "--once" in sys.argv:
        *_, audited, began = (word for word in sys.argv if word not in ("--once", "--warm"))
        print(json.dumps(audit_once(Path(audited), warm="--warm" in sys.argv, began=float(began))))
        return
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        run = Path(folder) / "run"
        simulate(SimulationConfig(protocol="single-phase", workload=WorkloadConfig(messages=10_000, batch=100)), run)
        table = [measure(run, Path(folder), warm=warm) for warm in (False, *[True] * arguments.repeat)]
    heading = f"{'':5s}" + "".join(f"{name:>13s}" for name in (*_PARTS, "all", "driver", "java", "workers"))
    titles = [
        f"seconds that pass in each part of an audit, and the processors' seconds; wanted in all: {TARGET_S:.0f}",
        heading,
    ]
    show(table, titles, _line, as_json=arguments.json)


if __name__ == "__main__":
    main()
