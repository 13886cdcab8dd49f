"""The sequencing service over real processes: joins, leaves and moves under load lose nothing."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.kit.patience import PATIENCE_S


def quire_run(out: Path, *options: str, messages: int = 4000) -> dict[str, object]:
    given = [argument for option in options for argument in ("--option", option)]
    done = subprocess.run(
        [
            Path(sys.executable).with_name("quire"), "run", "--protocol", "sequencer", "--members", "4",
            "--messages", str(messages), "--no-audit", "--json", "--out", str(out), *given,
        ],
        capture_output=True, text=True, timeout=PATIENCE_S, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert isinstance(result, dict)
    return result


@pytest.mark.parametrize(
    "options",
    [("order=causal-total", "pipelined=true"), ("order=hybrid", "bodies=direct", "strangers=1")],
    ids=",".join,
)
def test_joins_leaves_and_forced_moves_under_load_lose_nothing(tmp_path: Path, options: tuple[str, ...]) -> None:
    ring = ("sequencers=2", "groups=3", "overlap=1", "changes=6", "moves=4", "tick_ms=20")
    result = quire_run(tmp_path / "run", *ring, *options)
    assert result["complete"]
    assert result["messages"] == 4 * 4000
    details = result["details"]
    assert isinstance(details, dict)
    assert details["groups_moved"] >= 1
    assert details["load of 4"] + details["load of 5"] == 4 * 4000
    rows = [row for path in sorted((tmp_path / "run" / "trace").iterdir()) for row in pq.read_table(path).to_pylist()]
    changes = {(row["group"], row["seq"], row["op"], row["origin"]) for row in rows if row["kind"] == "view"}
    assert sum(op == "leave" for _, _, op, _ in changes) == 6 - ("strangers=1" in options)
    due = sum(len(row["dests"]) for row in rows if row["kind"] == "send")
    assert due == sum(row["kind"] == "deliver" for row in rows) == result["deliveries"]
