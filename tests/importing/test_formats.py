"""Every format against what the log itself says, however it is cut into chunks and whoever reads it."""

from __future__ import annotations

import csv
import io
import json
import random
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from quire.model.errors import BadInput
from quire.model.orders import Guarantee
from quire.pipeline.auditing.auditor import audit_with
from quire.pipeline.auditing.registry import audit_job
from quire.pipeline.causality.events import Event, Named, Place, parse_event
from quire.pipeline.causality.times import follow
from quire.pipeline.exporting import EXPORT, export_with
from quire.pipeline.importing.importer import import_with
from quire.pipeline.importing.request import ImportRequest
from quire.pipeline.tasks import run_here
from quire.trace.schema import ROW_GROUP_ROWS
from tests.audit import oracle
from tests.audit.traces import Trace, random_trace
from tests.causality import oracle as causality_oracle
from tests.causality.test_oracle import all_clocks
from tests.importing import logs
from tests.importing.kit import FOLLOW, HERE, check_causality, contents, rows, take_in


@pytest.mark.parametrize("seed", range(12))
def test_shiviz_logs_keep_their_causality_however_they_are_cut(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    log = logs.random_log(rng, ["a", "b-1", "é", "d"][: rng.randint(1, 4)])
    write = rng.choice((logs.two_lines, logs.clock_first))
    text = write(rng.sample(log, len(log)) if seed % 2 else log)

    imported = take_in(tmp_path, text)
    whole = contents(tmp_path / "run")
    check_causality(tmp_path / "run", log)

    assert imported.executions[0].events == len(log)
    assert not imported.defects
    for chunk_bytes, shares in ((40, 2), (rng.randint(20, 200), 1), (1000, 5)):
        take_in(tmp_path, text, chunk_bytes=chunk_bytes, tasks_max=shares)
        assert contents(tmp_path / "run") == whole, f"chunks of {chunk_bytes} bytes"


def test_an_entry_that_another_accounts_for_is_no_cause(tmp_path: Path) -> None:
    imported = take_in(tmp_path, 'a {"a":1}\nx\nb {"a":1,"b":1}\ny\nc {"a":1,"b":1,"c":1}\nz\n')

    assert imported.executions[0].links == 2  # Of a at b, and of b at c.


def test_a_row_group_has_no_words_but_its_own(tmp_path: Path) -> None:
    """A word for every transaction, in every row group, would make files and audits of them many times as large."""
    lines = [json.dumps({"host": "a", "event": "x", "txn": f"t{number}"}) for number in range(ROW_GROUP_ROWS + 10)]

    take_in(tmp_path, "\n".join(lines), format="jsonl")

    with pq.ParquetFile(tmp_path / "run/trace/p00000.parquet", read_dictionary=["txn"]) as file:
        groups: list[Any] = [file.read_row_group(number)["txn"].chunk(0) for number in range(file.num_row_groups)]
    assert [len(group.dictionary) for group in groups] == [ROW_GROUP_ROWS, 10]


LAYOUTS = {
    "two-lines": 'ready\na {"a":1}\n',
    "clock-first": 'a {"a":1}\nready\n',
    "one-line": 'a {"a":1} ready\n',
    "timed": '1500 ready\na {"a":1}\n',
    "akka": '[INFO] [2015-03-01 10:00:00.5] [main] [akka://Broadcast/user/a] {"a":1} ready\n',
}


@pytest.mark.parametrize("parser", LAYOUTS)
def test_the_usual_layouts_are_built_in(tmp_path: Path, parser: str) -> None:
    imported = take_in(tmp_path, LAYOUTS[parser], parser=parser)

    assert imported.executions[0].hosts == ("a",)
    times = {"timed": 1500, "akka": 1_425_204_000_500_000_000}
    assert [(row["text"], row["time_ns"]) for row in rows(tmp_path / "run")] == [("ready", times.get(parser))]


def test_json_lines_with_clocks_are_as_good(tmp_path: Path) -> None:
    log = logs.random_log(random.Random(5), ["a", "b", "c"])

    take_in(tmp_path, logs.as_jsonl(log), "log.jsonl")

    check_causality(tmp_path / "run", log)


def as_rows(trace: Trace) -> list[dict[str, Any]]:
    found = []
    for p, log in enumerate(trace.logs):
        for i, e in enumerate(log):
            kind = "local" if e.kind == "packet" else e.kind
            row: dict[str, Any] = {"host": f"host {p}", "order": i, "kind": kind, "note": 'a "quoted"\nnote'}
            if kind != "local":
                row["message"] = f"{e.origin}:{e.seq}"
            if e.dests is not None:
                row["dests"] = [f"host {q}" for q in e.dests]
            found.append(row)
    return found


def as_csv(found: list[dict[str, Any]]) -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, ["host", "order", "kind", "note", "message", "dests"])
    writer.writeheader()
    writer.writerows(row | {"dests": json.dumps(row["dests"]) if "dests" in row else ""} for row in found)
    return text.getvalue()


def counts(run: Path) -> tuple[int | None, ...]:
    """The violations that an audit finds; None for causal order where it is not known."""
    checks = audit_with(run_here(audit_job()), run).checks
    return tuple(checks[guarantee].violations for guarantee in Guarantee if guarantee in checks)[:6]


def test_messages_by_name_give_the_same_audit_as_the_trace_itself(tmp_path: Path) -> None:
    checked = 0
    for seed in range(40):
        rng = random.Random(seed)
        trace = random_trace(rng)
        named = [e for p, log in enumerate(trace.logs) for e in log if e.kind == "send" and (e.origin != p or e.dests is None)]
        past = causality_oracle.pasts(trace.logs)
        if named or past is None or not any(log for log in trace.logs):
            continue
        expected = oracle.judge(trace.logs, frozenset())
        found = rng.sample(as_rows(trace), sum(map(len, trace.logs)))
        hosts = {row["host"] for row in found} | {dest for row in found for dest in row.get("dests", ())}
        if len(hosts) < len(trace.logs):
            continue  # A member that does nothing and is named by nobody is not in the log at all.
        text = "".join(json.dumps(row) + "\n" for row in found)

        take_in(tmp_path, text, "log.jsonl", tasks_max=rng.randint(1, 5))
        whole = contents(tmp_path / "run" / "trace")
        assert counts(tmp_path / "run") == tuple(expected), f"seed {seed}"
        take_in(tmp_path, text, "log.jsonl", chunk_bytes=rng.randint(50, 500))
        assert contents(tmp_path / "run" / "trace") == whole, f"seed {seed}"
        checked += 1
    assert checked > 8


def test_csv_is_read_as_json_lines_are_even_with_line_breaks_in_quotes(tmp_path: Path) -> None:
    trace = random_trace(random.Random(14))
    found = as_rows(trace)
    columns = {"event": "note"}

    take_in(tmp_path, "".join(json.dumps(row) + "\n" for row in found), "log.jsonl", columns=columns)
    expected = events(tmp_path / "run")
    for chunk_bytes in (30, 77, 1 << 20):
        take_in(tmp_path, as_csv(found), "log.csv", columns=columns, chunk_bytes=chunk_bytes)
        assert events(tmp_path / "run") == expected, f"chunks of {chunk_bytes} bytes"


def events(run: Path) -> list[dict[str, Any]]:
    """The rows, but where in which file they come from."""
    return [{name: value for name, value in row.items() if name not in ("run", "line", "file")} for row in rows(run)]


def test_clocks_that_a_logger_has_put_in_a_string_are_clocks(tmp_path: Path) -> None:
    plain = 'a {"a":1}\nbegins\nb {"b":1, "a":1}\nhears\n'
    take_in(tmp_path, plain)
    expected = rows(tmp_path / "run")

    take_in(tmp_path, plain.replace('"', '\\"'))

    assert rows(tmp_path / "run") == expected


def test_delimited_executions_become_runs_of_their_own(tmp_path: Path) -> None:
    first, second = (logs.random_log(random.Random(seed), ["a", "b"]) for seed in (1, 2))
    text = f"=== one ===\n{logs.two_lines(first)}=== ../two ===\n{logs.two_lines(second)}"

    for chunk_bytes in (1 << 20, 90):
        imported = take_in(tmp_path, text, delimiter="^=== (?<trace>.*) ===$", chunk_bytes=chunk_bytes)

        assert [execution.label for execution in imported.executions] == ["one", "../two"]
        check_causality(tmp_path / "run" / "0001", first)
        check_causality(tmp_path / "run" / "0002", second)
        assert sorted(path.name for path in (tmp_path / "run").iterdir()) == ["0001", "0002", "executions.json"]


def test_an_exported_run_comes_back_with_the_same_causality(tmp_path: Path) -> None:
    log = logs.random_log(random.Random(9), ["a b", "a_b", "c"])
    take_in(tmp_path, logs.as_jsonl(log), "log.jsonl")
    before = all_clocks(follow(FOLLOW, tmp_path / "run"))

    for segments in (1, 3):
        done = export_with(FOLLOW, run_here(EXPORT), tmp_path / "run", tmp_path / "x.log", segments=segments, force=True)
        imported = import_with(HERE, [tmp_path / "x.log"], tmp_path / "back", ImportRequest(), force=True)

        assert imported.executions[0].events == done.events == len(before) == len(log)
        back = {row["text"]: row for row in rows(tmp_path / "back") if row["text"] is not None}
        clocks = all_clocks(follow(FOLLOW, tmp_path / "back"))
        places = {event.text: event for event in log}
        for one in log:
            for other in log:
                process, number = back[one.text]["process"], back[one.text]["event"]
                if one is not other:
                    told = clocks[back[other.text]["process"], back[other.text]["event"]][process] > number
                    assert told == logs.happened_before(places[one.text], places[other.text])


def test_a_log_that_was_exported_is_the_log_itself(tmp_path: Path) -> None:
    for seed in range(4):
        log = logs.random_log(random.Random(seed), ["a", "b", "c"])
        take_in(tmp_path, logs.two_lines(log))

        export_with(FOLLOW, run_here(EXPORT), tmp_path / "run", tmp_path / "x.log", force=True)
        again = import_with(HERE, [tmp_path / "x.log"], tmp_path / "back", ImportRequest(), force=True)
        export_with(FOLLOW, run_here(EXPORT), tmp_path / "back", tmp_path / "y.log", force=True)

        def told(path: Path) -> set[tuple[str, str]]:
            lines = path.read_text().splitlines()
            return set(zip(lines[::2], [_sorted_clock(line) for line in lines[1::2]], strict=True))

        assert again.executions[0].events == len(log)
        assert told(tmp_path / "x.log") == told(tmp_path / "log.txt") == told(tmp_path / "y.log")


def _sorted_clock(line: str) -> str:
    host, clock = line.split(" ", 1)
    return f"{host} {json.dumps(json.loads(clock), sort_keys=True)}"


RELAY = """sent\u0020 ping
a {"a":1}
got ping
b {"a":1,"b":1}
told c
b {"a":1,"b":2}
on its own
c {"c":1}
knows all
c {"a":2,"b":2,"c":2}
said more
a {"a":2}
"""


def test_deliveries_that_are_only_implied_are_no_events(tmp_path: Path) -> None:
    imported = take_in(tmp_path, RELAY)

    done = imported.executions[0]
    assert (done.events, done.rows, done.deliveries, done.links) == (6, 9, 0, 3)
    found = follow(FOLLOW, tmp_path / "run")
    assert found.layout.events == 6
    last = Event(2, 1)
    assert found.around(last).clock == (2, 2, 2)
    assert sum(share.events for share in found.around(last).past) == 5
    assert found.pairs().ordered + found.pairs().concurrent == 15
    assert found.relation(Event(0, 0), last) == "before"
    assert found.relation(Event(2, 0), Event(1, 1)) == "concurrent"
    assert found.critical_path().length == 4
    assert found.matching("deliver", "kind", limit=9) == []
    assert audit_with(run_here(audit_job()), tmp_path / "run").events == 6


def test_events_are_named_by_host_and_number_or_by_file_and_line(tmp_path: Path) -> None:
    take_in(tmp_path, RELAY)
    found = follow(FOLLOW, tmp_path / "run")
    hosts = found.layout.hosts

    assert parse_event("c@1", hosts) == Event(2, 1)
    assert parse_event("2@1", hosts) == Event(2, 1)
    place = parse_event("log.txt:9", hosts)
    assert isinstance(place, Place)
    assert found.at(place) == Event(2, 1)
    described = found.describe([Event(2, 1)])[Event(2, 1)]
    assert (described.host, described.text, described.line) == ("c", "knows all", 9)
    with pytest.raises(BadInput, match=r"there is no event log\.txt:10; write HOST@NUMBER, like a@0, FILE:LINE, or what"):
        found.at(Place("log.txt", 10))
    assert parse_event("nobody@1", hosts) == Named("nobody@1")


def test_an_audit_speaks_of_the_hosts_and_messages_of_the_log(tmp_path: Path) -> None:
    lines = [
        {"host": "alpha", "kind": "send", "message": "ping-1", "event": "one"},
        {"host": "alpha", "kind": "send", "message": "ping-2", "event": "two"},
        {"host": "beta", "kind": "receive", "message": "ping-2", "event": "got two"},
        {"host": "beta", "kind": "receive", "message": "ping-1", "event": "got one"},
        {"host": "beta", "kind": "receive", "message": "pong", "event": "from nowhere"},
    ]
    take_in(tmp_path, "".join(json.dumps(line) + "\n" for line in lines), "log.jsonl")

    checks = audit_with(run_here(audit_job()), tmp_path / "run").checks

    assert checks["fifo"].because == "beta delivered ping-2 before ping-1, though alpha had sent ping-1 before ping-2"
    assert checks["integrity"].because == "beta delivered pong at log.jsonl:5, though it was never sent"
    witness = checks["fifo"].witness
    assert witness is not None
    assert witness.messages == ("ping-1", "ping-2")
    assert [(event.at, event.place, event.text) for event in witness.positions] == [
        ("alpha@0", "log.jsonl:1", "one"),
        ("alpha@1", "log.jsonl:2", "two"),
        ("beta@0", "log.jsonl:3", "got two"),
        ("beta@1", "log.jsonl:4", "got one"),
    ]
