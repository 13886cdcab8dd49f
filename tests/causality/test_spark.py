"""Vector times and questions through real files, real Spark and the command."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner

from quire.cli.app import app
from quire.pipeline import happened_before
from quire.pipeline.causality.tasks import CAUSALITY
from quire.pipeline.causality.times import follow
from quire.pipeline.importing.importer import import_with
from quire.pipeline.importing.request import ImportRequest
from quire.pipeline.importing.tasks import IMPORT
from quire.pipeline.tasks import run_here
from tests.audit.traces import Trace, plain, random_trace, write
from tests.causality import oracle

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HERE = run_here(CAUSALITY)
RELAY = plain("s0>13", "d0:0 s0>2", "d1:0 s0>3", "d2:0 d0:0")


def test_the_frame_equals_brute_force_for_any_number_of_segments(spark: SparkSession, tmp_path: Path) -> None:
    for seed in (3, 14):
        trace = random_trace(random.Random(seed))
        past = oracle.pasts(trace.logs)
        assert past is not None
        directory = write(tmp_path / str(seed), trace, rows_per_append=3)
        for pieces in (1, 3):
            rows = happened_before(spark, directory, segments=pieces).frame(spark).collect()
            assert {(row.process, row.pos): tuple(row.clock) for row in rows} == oracle.clocks(trace.logs, past), f"seed {seed}"


def test_missing_logical_times_are_rebuilt_as_the_longest_chains(spark: SparkSession, tmp_path: Path) -> None:
    untimed = RELAY._replace(clocks=[[None] * len(log) for log in RELAY.logs])
    past = oracle.pasts(RELAY.logs)
    assert past is not None

    found = happened_before(spark, write(tmp_path / "run", untimed), segments=3)

    assert found.rebuilt
    depths = {(row.process, row.pos): row.lamport for row in found.frame(spark).collect()}
    assert depths == oracle.depths(RELAY.logs, past)


def test_the_answers_do_not_depend_on_the_number_of_segments(tmp_path: Path) -> None:
    directory = write(tmp_path / "run", random_trace(random.Random(8)), rows_per_append=2)
    told = []
    for pieces in (1, 2, 3, 5, 8):
        found = follow(HERE, directory, segments=pieces)
        events = found.matching("deliver", "kind", limit=100)
        told.append(
            (
                [found.around(event) for event in events],
                found.pairs(),
                found.first("deliver", "kind"),
                found.concurrent_pairs("deliver", "kind"),
                found.critical_path().stretches,
            )
        )

    assert all(answers == told[0] for answers in told)


def test_first_and_concurrent_matches_equal_brute_force(tmp_path: Path) -> None:
    checked = 0
    for seed in range(40):
        trace = random_trace(random.Random(seed))
        past = oracle.pasts(trace.logs)
        if not past:
            continue
        found = follow(HERE, write(tmp_path / str(seed), trace), segments=1 + seed % 3)
        matches = [place for place in sorted(past) if trace.logs[place[0]][place[1]].kind == "deliver"]
        first = [place for place in matches if not any(other in past[place] for other in matches)]
        pairs = [(a, b) for i, a in enumerate(matches) for b in matches[i + 1 :] if a not in past[b] and b not in past[a]]

        assert [(e.process, e.pos) for e in found.first("^deliver$", "kind")] == first, f"seed {seed}"
        told = found.concurrent_pairs("^deliver$", "kind", limit=10_000)
        assert [((a.process, a.pos), (b.process, b.pos)) for a, b in told] == pairs, f"seed {seed}"
        checked += bool(pairs)
    assert checked > 10


def test_the_critical_path_by_time_goes_back_to_the_later_cause(tmp_path: Path) -> None:
    """Host c hears of both: a spoke first, b later, so that b is what it waited for."""
    log = [
        {"host": "a", "kind": "send", "message": "x", "time": 1},
        {"host": "b", "kind": "local", "time": 2},
        {"host": "b", "kind": "send", "message": "y", "time": 50},
        {"host": "c", "kind": "deliver", "message": "y", "time": 60},
        {"host": "c", "kind": "deliver", "message": "x", "time": 70},
        {"host": "c", "kind": "local", "time": 75},
    ]
    (tmp_path / "log.jsonl").write_text("".join(json.dumps(event) + "\n" for event in log))
    import_with(run_here(IMPORT), [tmp_path / "log.jsonl"], tmp_path / "run", ImportRequest())

    path = follow(HERE, tmp_path / "run").critical_path("time")

    assert path.length == 5
    assert [(s.process, s.first_pos, s.last_pos, s.waited_ns, s.lasted_ns) for s in path.stretches] == [
        (1, 0, 1, None, 48),
        (2, 0, 2, 10, 15),
    ]


def test_the_command_answers_for_people_and_machines(command: CliRunner, tmp_path: Path) -> None:
    run = str(write(tmp_path / "run", RELAY))
    out = tmp_path / "times"

    said = json.loads(command.invoke(app, ["causality", run, "--past", "3@0", "--out", str(out), "--json"]).stdout)
    shown = command.invoke(app, ["causality", run, "--relation", "0:0", "3@1", "--critical-path", "events"])
    whole = command.invoke(app, ["causality", run, "--master", "local[2]"])

    assert said["past"]["clock"] == [1, 2, 2, 1]
    assert said["past"]["events"] == 5
    assert [share["edge"]["message"] for share in said["past"]["shares"]] == ["0:0", "1:0", "2:0"]
    assert "0@0 happened before 3@1" in shown.stdout
    assert "critical path by events: 7 events" in shown.stdout
    assert "21 pairs of events are ordered (100.0%), 0 are concurrent" in whole.stdout
    assert list(out.glob("*.parquet"))


def test_a_contradiction_ends_with_1_and_the_cycle(command: CliRunner, tmp_path: Path) -> None:
    trace = plain("s0>1 d1:0", "s0>0 d0:0")
    run = write(tmp_path / "run", Trace([log[::-1] for log in trace.logs], [[1, 2], [1, 2]]))

    result = command.invoke(app, ["causality", str(run), "--json"])

    assert result.exit_code == 1
    assert [step["member"] for step in json.loads(result.stdout)["cycle"]] == [0, 1]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--past", "nonsense"], "'nonsense' is not an event"),
        (["--past", "9@0"], "there is no event 9@0: the run has processes 0 to 3"),
        (["--past", "0:9"], "message 0:9 was never sent"),
        (["--past", "7:0"], "so none sent 7:0"),
        (["--first", "x"], "has no column 'text'"),
        (["--first", "(", "--column", "kind"], "is not a regular expression"),
        (["--first", "1", "--column", "seq"], "holds int64, not text"),
        (["--critical-path", "luck"], "by events or time, not by 'luck'"),
        (["--critical-path", "time"], "does not record when its events happened"),
        (["--segments", "0"], "segments must be between 1 and 512"),
    ],
)
def test_bad_questions_are_refused_in_one_sentence(
    command: CliRunner, tmp_path: Path, arguments: list[str], sentence: str
) -> None:
    result = command.invoke(app, ["causality", str(write(tmp_path / "run", RELAY)), *arguments])

    assert type(result.exception).__name__ == "BadInput"
    assert sentence in str(result.exception)
    assert "\n" not in str(result.exception)


def test_every_execution_is_asked_by_the_command(command: CliRunner, tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text(
        "trace,id,after,service,time,event\n"
        "x,x1,,front,10,asks\nx,x2,x1,db,30,ERROR refused\nx,x3,x2,db,35,ERROR again\ny,y1,,front,10,asks\n"
    )
    import_with(run_here(IMPORT), [tmp_path / "log.csv"], tmp_path / "run", ImportRequest(separate_max=1))
    words = ["causality", str(tmp_path / "run"), "--each", "--critical-path", "time", "--first", "ERROR"]

    data, shown = command.invoke(app, [*words, "--json"]), command.invoke(app, words)

    found = {one["execution"]: one for one in json.loads(data.stdout)["executions"]}
    assert (found["x"]["events"], found["x"]["lasted_ns"], found["x"]["matches"]) == (3, 25, 2)
    assert [stretch["host"] for stretch in found["x"]["critical_path"]["stretches"]] == ["front", "db"]
    assert [(match["host"], match["text"], match["line"]) for match in found["x"]["first"]] == [("db", "ERROR refused", 3)]
    assert (found["y"]["first"], found["y"]["critical_path"]["length"]) == ([], 1)
    assert "3 events: front > db" in shown.stdout
    assert "2 executions, the longest first; 'ERROR' matches in 1" in shown.stdout
    refused = command.invoke(app, ["causality", str(tmp_path / "run"), "--past", "db@0"])
    assert "holds 2 executions" in str(refused.exception)
    assert "not --past" in str(command.invoke(app, [*words, "--past", "db@0"]).exception)
    taken = command.invoke(
        app, ["export", str(tmp_path / "run"), "--format", "run", "--execution", "x", "--out", str(tmp_path / "x")]
    )
    assert "3 events of execution x" in " ".join(taken.stdout.split())
