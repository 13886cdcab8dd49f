"""Executions so many that they share a run: in it, each is what it would be by itself."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from quire.model.errors import BadInput
from quire.pipeline import Verdict
from quire.pipeline.auditing.auditor import audit_with
from quire.pipeline.auditing.registry import audit_job
from quire.pipeline.causality.executions import check_single, each_with
from quire.pipeline.causality.times import Causality, follow
from quire.pipeline.extracting import extract_execution
from quire.pipeline.tasks import run_here
from quire.trace.executions import read_executions
from tests.causality.test_oracle import all_clocks
from tests.importing import logs
from tests.importing.kit import FOLLOW, check_causality, contents, rows, take_in
from tests.kit.effort import runs

AUDIT = run_here(audit_job())


def spans(rng: random.Random, label: str) -> list[dict[str, Any]]:
    """A trace of a few services, some of whose clocks are wrong."""
    made: list[dict[str, Any]] = []
    for number in range(rng.randint(1, 8)):
        parents = [rng.choice(made)["id"]] if made and rng.random() < 0.9 else []
        event = rng.choice(("reads", "writes", "ERROR refused"))
        made.append({
            "trace": label, "id": f"s{number}", "after": parents, "service": rng.choice("abc"),
            "time_ns": rng.randrange(1, 60), "event": f"{event} {label}/{number}",
        })  # fmt: skip
    return made


def messages(rng: random.Random, label: str) -> list[dict[str, Any]]:
    """Sends and deliveries to all, some of which are late or never come."""
    hosts = ["a", "b", "c"]
    queues: dict[str, list[str]] = {host: [] for host in hosts}
    made: list[dict[str, Any]] = []
    for number in range(rng.randint(1, 6)):
        sender = rng.choice(hosts)
        made.append({"execution": label, "host": sender, "kind": "send", "message": f"m{number}", "dests": hosts})
        for queue in queues.values():
            queue.append(f"m{number}")
        for host in rng.sample(hosts, 2):
            while queues[host] and rng.random() < 0.7:
                taken = queues[host].pop(0 if rng.random() < 0.8 else -1)
                made.append({"execution": label, "host": host, "kind": "deliver", "message": taken})
    return made


def as_lines(events: list[dict[str, Any]]) -> str:
    return "".join(json.dumps(event) + "\n" for event in events)


def import_both_ways(tmp_path: Path, text: str, name: str, **wanted: Any) -> list[str]:
    """The labels, in order, of what becomes runs of their own in `apart`, and one run in `run`."""
    apart = tmp_path / "apart"
    apart.mkdir(exist_ok=True)
    done = take_in(apart, text, name, **wanted)
    together = take_in(tmp_path, text, name, separate_max=1, **wanted)
    assert len(together.executions) == 1
    assert together.executions[0].together == len(done.executions)
    assert together.executions[0].events == sum(one.events for one in done.executions)
    assert together.executions[0].messages == sum(one.messages for one in done.executions)
    assert together.defect_counts == done.defect_counts
    return [one.label for one in done.executions]


def before(found: Causality, run: Path) -> set[tuple[str, str]]:
    """All pairs of events, by their lines, of which the first happened before the second."""
    where = {(row["file"], row["line"]): (row["process"], row["event"]) for row in rows(run) if not row["implied"]}
    clocks = all_clocks(found)
    return {
        (str(one), str(other))
        for one, (process, number) in where.items()
        for other, place in where.items()
        if one != other and clocks[place][process] > number
    }  # fmt: skip


@pytest.mark.parametrize("seed", range(runs(4, 12)))
@pytest.mark.parametrize("make", [spans, messages])
def test_what_happened_before_what_in_an_execution_is_the_same(tmp_path: Path, make: Any, seed: int) -> None:
    rng = random.Random(seed)
    events = [event for number in range(4) for event in make(rng, f"x{number}")]
    if make is spans:  # These say themselves what follows what, so that the file may be in any order.
        rng.shuffle(events)
    columns = {"execution": "trace", "host": "service", "id": "id", "after": "after"} if make is spans else {}
    for chunk_bytes in (1 << 20, 300):
        labels = import_both_ways(tmp_path, as_lines(events), "log.jsonl", columns=columns, chunk_bytes=chunk_bytes)
        for number, label in enumerate(labels, 1):
            extract_execution(tmp_path / "run", label, tmp_path / "one", force=True)

            apart = tmp_path / "apart" / "run" / f"{number:04d}"
            found, expected = follow(FOLLOW, tmp_path / "one"), follow(FOLLOW, apart)
            assert before(found, tmp_path / "one") == {
                (one.replace("apart/", ""), other.replace("apart/", "")) for one, other in before(expected, apart)
            }


COUNTED = ("integrity", "agreement", "fifo", "causal")
"""What total order counts are pairs of members, which may disagree in several executions."""


def violations(run: Path, segments: int | None = None) -> dict[str, int]:
    checks = audit_with(AUDIT, run, segments=segments).checks
    return {name: check.violations if name in COUNTED else check.violations > 0 for name, check in checks.items()}


@pytest.mark.parametrize("seed", range(runs(5, 16)))
def test_verdicts_are_those_of_the_executions_by_themselves(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    labels = import_both_ways(
        tmp_path, as_lines([event for number in range(3) for event in messages(rng, f"x{number}")]), "log.jsonl"
    )
    expected: dict[str, int] = {}
    for number in range(1, len(labels) + 1):
        for name, count in violations(tmp_path / "apart" / "run" / f"{number:04d}").items():
            expected[name] = expected.get(name, 0) + count if name in COUNTED else max(expected.get(name, 0), count)

    for segments in (1, 2, 5):
        assert violations(tmp_path / "run", segments=segments) == expected


def test_what_an_execution_lacks_is_not_missed_in_the_next(tmp_path: Path) -> None:
    events: list[dict[str, Any]] = []
    for label, delivered in (("first", []), ("second", ["m"])):
        events.append({"execution": label, "host": "a", "kind": "send", "message": "m", "dests": ["b"]})
        events += [{"execution": label, "host": "b", "kind": "deliver", "message": name} for name in delivered]
        events.append({"execution": label, "host": "b", "kind": "local"})
    take_in(tmp_path, as_lines(events), "log.jsonl", separate_max=1)

    for segments in (1, 3):
        checks = audit_with(AUDIT, tmp_path / "run", segments=segments).checks

        assert checks["agreement"].violations == 1
        assert (checks["fifo"].verdict, checks["causal"].verdict) == (Verdict.HOLDS, Verdict.HOLDS)


@pytest.mark.parametrize("chunk_bytes", [1 << 20, 150])
def test_vector_clocks_begin_anew_in_every_execution(tmp_path: Path, chunk_bytes: int) -> None:
    made = [logs.random_log(random.Random(seed), ["a", "b", "c"]) for seed in range(5)]
    text = "".join(f"=== x{number} ===\n{logs.two_lines(log)}" for number, log in enumerate(made))

    done = take_in(
        tmp_path, text, delimiter="^=== (?<trace>.*) ===$", separate_max=4, chunk_bytes=chunk_bytes, parser="two-lines"
    )

    assert (done.executions[0].together, done.executions[0].events) == (5, sum(map(len, made)))
    for number, log in enumerate(made):
        extract_execution(tmp_path / "run", f"x{number}", tmp_path / "one", force=True)
        check_causality(tmp_path / "one", log)


def test_an_import_of_many_has_the_same_bytes_for_any_number_of_tasks(tmp_path: Path) -> None:
    rng = random.Random(5)
    text = as_lines([event for number in range(4) for event in messages(rng, f"x{number}")])
    take_in(tmp_path, text, "log.jsonl", separate_max=1)
    expected = contents(tmp_path / "run")

    take_in(tmp_path, text, "log.jsonl", separate_max=1, tasks_max=1, chunk_bytes=200)

    assert contents(tmp_path / "run") == expected
    assert sorted(expected)[0] == "executions.parquet"


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("by", ["events", "time"])
def test_each_execution_is_asked_as_it_would_be_by_itself(tmp_path: Path, by: str, seed: int) -> None:
    rng = random.Random(seed)
    events = [event for number in range(5) for event in spans(rng, f"x{number}")]
    columns = {"execution": "trace", "host": "service", "id": "id", "after": "after"}
    labels = import_both_ways(tmp_path, as_lines(events), "log.jsonl", columns=columns)
    expected = []
    for number, label in enumerate(labels, 1):
        found = follow(FOLLOW, tmp_path / "apart" / "run" / f"{number:04d}")
        first = found.describe(found.first("ERROR"))
        path = found.critical_path(by)
        times = [event["time_ns"] for event in events if event["trace"] == label]
        expected.append((
            label, found.layout.events, max(times) - min(times), path.length,
            [found.layout.hosts[stretch.process] for stretch in path.stretches],
            sorted(str(event.text) for event in first.values()),
        ))  # fmt: skip

    for directory in ("run", "apart/run"):
        for rows_per_task in (1, 1 << 20):
            each = each_with(FOLLOW, tmp_path / directory, by, "ERROR", "text", rows_per_task=rows_per_task)

            assert [
                (
                    one.label, one.answer.events, one.answer.lasted_ns, one.answer.path.length if one.answer.path else None,
                    [one.hosts[stretch.process] for stretch in one.answer.path.stretches] if one.answer.path else [],
                    sorted(match.text for match in one.answer.first),
                )
                for one in each
            ] == expected  # fmt: skip


def test_a_question_about_one_execution_is_not_answered_for_all(tmp_path: Path) -> None:
    text = "".join(f'{{"host":"a","execution":"{number}"}}\n' for number in range(4))
    take_in(tmp_path, text, "log.jsonl", separate_max=3)

    executions = read_executions(tmp_path / "run")
    assert executions is not None
    assert executions.labels == ("0", "1", "2", "3")
    assert executions.events.tolist() == [1] * 4
    with pytest.raises(BadInput, match="holds 4 executions: ask of every one with"):
        check_single(tmp_path / "run")
    with pytest.raises(BadInput, match="holds 4 executions, which cannot be checked for serialisable"):
        audit_with(AUDIT, tmp_path / "run", expect=["serialisable"])
    with pytest.raises(BadInput, match="there is no execution 'none'; there are 4, like '0'"):
        extract_execution(tmp_path / "run", "none", tmp_path / "one")
    take_in(tmp_path, text, "log.jsonl", separate_max=4)
    assert not (tmp_path / "run" / "executions.parquet").exists(), "what is replaced goes as a whole"
