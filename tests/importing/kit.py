"""What tests of the import share: a text imported without Spark, and what the run then says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from quire.pipeline.causality.tasks import CAUSALITY
from quire.pipeline.causality.times import follow
from quire.pipeline.importing.importer import import_with
from quire.pipeline.importing.request import ImportRequest
from quire.pipeline.importing.results import Imported
from quire.pipeline.importing.tasks import IMPORT
from quire.pipeline.tasks import run_here
from tests.causality.test_oracle import all_clocks
from tests.importing import logs

HERE = run_here(IMPORT)
FOLLOW = run_here(CAUSALITY)


def take_in(tmp_path: Path, text: str | bytes, name: str = "log.txt", **wanted: Any) -> Imported:
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return import_with(HERE, [path], tmp_path / "run", ImportRequest(**wanted), force=True)


def rows(run: Path) -> list[dict[str, Any]]:
    return [row for path in sorted((run / "trace").glob("*.parquet")) for row in pq.read_table(path).to_pylist()]


def contents(run: Path) -> dict[str, bytes]:
    return {str(path.relative_to(run)): path.read_bytes() for path in sorted(run.rglob("*")) if path.is_file()}


def check_causality(run: Path, log: list[logs.Logged]) -> None:
    """What happened before what in the trace is what the clocks of the log say."""
    places = {row["text"]: (row["process"], row["event"]) for row in rows(run) if row["text"] is not None}
    assert len(places) == len(log)
    for pieces in (1, 3):
        found = follow(FOLLOW, run, segments=pieces)
        assert not found.rebuilt
        clocks = all_clocks(found)
        for one in log:
            for other in log:
                process, pos = places[one.text]
                before = places[one.text] != places[other.text] and clocks[places[other.text]][process] > pos
                assert before == logs.happened_before(one, other), (one, other)
