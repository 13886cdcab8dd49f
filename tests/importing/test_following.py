"""Events that say what they follow: spans, commits, and whatever has names and the names of causes."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from quire.cli.app import app
from quire.model.errors import BadInput
from quire.model.orders import Guarantee
from quire.pipeline import Verdict
from quire.pipeline.auditing.auditor import audit_here, audit_with
from quire.pipeline.auditing.registry import audit_job
from quire.pipeline.causality.events import Named
from quire.pipeline.causality.executions import each_with
from quire.pipeline.causality.times import Causality, follow
from quire.pipeline.importing import lanes as lanes_module
from quire.pipeline.importing.lanes import LANES_FEW
from quire.pipeline.importing.results import Imported
from quire.pipeline.tasks import run_here
from quire.trace.schema import BY_TIMES, LOCAL_ORDER
from tests.causality.test_oracle import all_clocks
from tests.importing.kit import FOLLOW, rows, take_in
from tests.importing.test_spans import otel, otel_span

Graph = Mapping[str, Sequence[str]]


def lines(events: Iterable[Mapping[str, Any]]) -> str:
    return "".join(json.dumps(event) + "\n" for event in events)


def places(run: Path) -> dict[str, tuple[int, int]]:
    return {row["message"]: (row["process"], row["event"]) for row in rows(run) if not row["implied"]}


def before(found: Causality, where: Mapping[str, tuple[int, int]]) -> set[tuple[str, str]]:
    """All pairs of which the first happened before the second."""
    clocks = all_clocks(found)
    return {
        (one, other)
        for one, (process, number) in where.items()
        for other, place in where.items()
        if one != other and clocks[place][process] > number
    }


def reaches(graph: Graph) -> set[tuple[str, str]]:
    """The same by brute force."""
    found: set[tuple[str, str]] = set()
    for event in graph:
        todo = list(graph[event])
        while todo:
            cause = todo.pop()
            if (cause, event) not in found:
                found.add((cause, event))
                todo += graph[cause]
    return found


def random_graph(rng: random.Random) -> dict[str, list[str]]:
    graph: dict[str, list[str]] = {}
    for number in range(rng.randint(1, 25)):
        graph[f"e{number}"] = rng.sample(list(graph), min(len(graph), rng.choice((0, 1, 1, 1, 2, 3))))
    return graph


@pytest.mark.parametrize("seed", range(10))
def test_without_hosts_exactly_what_is_said_is_ordered(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    graph = random_graph(rng)
    events = [{"id": event, "after": rng.choice((" ", ";", ", ")).join(causes)} for event, causes in graph.items()]

    done = take_in(tmp_path, lines(rng.sample(events, len(events))), "log.jsonl", columns={"id": "id", "after": "after"})

    assert done.executions[0].events == len(graph)
    for segments in (1, 3):
        found = follow(FOLLOW, tmp_path / "run", segments=segments)
        assert before(found, places(tmp_path / "run")) == reaches(graph)


@pytest.mark.parametrize("seed", range(10))
def test_with_hosts_causes_come_first_whatever_their_clocks_say_and_nothing_is_called_wrong(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    graph = random_graph(rng)
    spans = [
        {"TraceID": "t", "SpanID": name, "ParentID": causes, "PodName": rng.choice("ab"), "StartTimeUnixNano": rng.randrange(4)}
        for name, causes in graph.items()
    ]

    take_in(tmp_path, lines(rng.sample(spans, len(spans))), "log.jsonl", columns={"id": "SpanID"}, lanes=False)

    where = places(tmp_path / "run")
    found = before(follow(FOLLOW, tmp_path / "run"), where)
    assert {(f"t:{one}", f"t:{other}") for one, other in reaches(graph)} <= found
    checks = audit_with(run_here(audit_job()), tmp_path / "run", expect=["causal", "integrity"])
    assert checks.verdict is Verdict.HOLDS, checks


def test_a_history_of_commits_needs_no_clocks(tmp_path: Path) -> None:
    commits = [
        {"id": "d", "after": "b c", "time": "2020-01-01T00:00:00Z", "event": "merge"},
        {"id": "b", "after": "a", "time": "2020-01-03T00:00:00Z", "event": "left"},
        {"id": "c", "after": "a", "time": "2020-01-02T00:00:00Z", "event": "right"},
        {"id": "a", "after": "", "time": "2020-01-05T00:00:00Z", "event": "root"},
    ]

    done = take_in(tmp_path, lines(commits), "log.jsonl")

    assert done.executions[0].hosts == ("lane-1", "lane-2")
    found = follow(FOLLOW, tmp_path / "run")
    assert (found.pairs().ordered, found.pairs().concurrent) == (5, 1)
    assert found.relation(found.at(Named("b")), found.at(Named("c"))) == "concurrent"
    assert found.relation(found.at(Named("a")), found.at(Named("d"))) == "before"


@pytest.mark.parametrize("how", ["lines", "an array", "an array of several lines"])
def test_the_first_event_need_not_have_the_field_that_names_causes(tmp_path: Path, how: str) -> None:
    spans: list[dict[str, str]] = [{"spanId": "1", "service": "a"}, {"spanId": "2", "service": "b", "parentId": "1"}]

    text = lines(spans) if how == "lines" else json.dumps(spans, indent=2 if "lines" in how else None)
    done = take_in(tmp_path, text, "spans.json")

    assert (done.executions[0].events, done.executions[0].links) == (2, 1)


@pytest.mark.parametrize("lanes", [None, False])
def test_columns_of_spans_are_found_by_their_usual_names(tmp_path: Path, lanes: bool | None) -> None:
    text = (
        "TraceID,SpanID,ParentID,PodName,StartTimeUnixNano,OperationName\n"
        "t1,1,,A,100,root\nt1,2,1,B,90,early\nt1,3,1,B,130,again\nt1,4,1,A,80,own\n"
        "t1,4,1,A,80,own\nt1,3,2,B,131,other\nt1,9,77,B,5,lost\n"
    )

    done = take_in(tmp_path, text, "spans.csv", lanes=lanes)

    assert done.executions[0].events == 5
    assert done.defect_counts == {"begins too early": 2, "contradicts another": 1, "not there": 1, "repeated": 1}
    assert [(skew.behind, skew.ahead, skew.events, skew.at_least_ns) for skew in done.skews] == [("B", "A", 1, 10)]
    found = follow(FOLLOW, tmp_path / "run")
    where = places(tmp_path / "run")
    assert ("t1:1", "t1:4") in before(found, where), "a child of its own host is not turned round"
    said = {str(defect.kind): str(defect) for defect in done.defects}
    assert f"spans.csv line 6, host A: t1:4 repeats {tmp_path / 'spans.csv'} line 5" in said["repeated"]
    assert "is also the name of" in said["contradicts another"]
    assert "it names t1:77, which does not exist" in said["not there"]


def test_of_several_events_with_a_name_the_first_is_meant(tmp_path: Path) -> None:
    text = (
        "id,after,host,time,text\n"
        "x,,B,40,first in the log\nx,,A,10,elsewhere\nx,,B,20,other words\nx,,B,40,first in the log\ny,x,C,50,after it\n"
    )

    done = take_in(tmp_path, text, "events.csv")

    assert {row["text"] for row in rows(tmp_path / "run") if not row["implied"]} == {"other words", "after it"}
    assert done.defect_counts == {"contradicts another": 3}
    assert [str(defect).split(" is ")[0].split(": ")[-1] for defect in done.defects] == ["x"] * 3


def test_a_host_whose_only_event_contradicts_another_has_none(tmp_path: Path) -> None:
    done = take_in(tmp_path, "id,after,host\n1,,a\n1,,a\n1,,b\n", "log.csv")

    assert done.defect_counts == {"contradicts another": 1, "repeated": 1}
    assert audit_here(tmp_path / "run").events == 1


@pytest.mark.parametrize("bucket_events", [1, 7, 1 << 17])
def test_names_are_found_in_any_number_of_buckets_and_pieces(tmp_path: Path, bucket_events: int) -> None:
    rng = random.Random(3)
    events: list[dict[str, str]] = []
    for number in range(300):
        after = [rng.choice(events)["id"]] if events else []
        missing = ["nobody"] if rng.random() < 0.1 else []
        event = {"id": f"e{number}", "after": ";".join(after + missing), "host": rng.choice("ABC"), "text": f"no. {number}"}
        events += [event] * rng.choice([1, 1, 1, 2])
    text = "id,after,host,text\n" + "".join(",".join(event.values()) + "\n" for event in events)

    done = take_in(tmp_path, text, "events.csv", bucket_events=bucket_events, chunk_bytes=1000)

    once = {event["id"]: event for event in events}
    said = {name: [cause for cause in event["after"].split(";") if cause in once] for name, event in once.items()}
    nobody = sum("nobody" in event["after"] for event in events)
    assert done.defect_counts == {"not there": nobody, "repeated": len(events) - 300}
    lines = [defect.line for defect in done.defects if str(defect.kind) == "repeated"]
    again = [line for line, event in enumerate(events, 2) if events.index(event) + 2 < line]
    assert lines == again[: len(lines)], "the first in the file are listed"
    found = before(follow(FOLLOW, tmp_path / "run"), places(tmp_path / "run"))
    assert all((cause, name) in found for name, causes in said.items() for cause in causes)


def test_events_that_follow_others_are_not_mixed_with_deliveries(tmp_path: Path) -> None:
    events: list[dict[str, Any]] = [{"id": "1", "after": "", "host": "a"}, {"host": "b", "kind": "deliver", "message": "m"}]
    text = lines([*events, {"id": "2", "after": "1", "host": "b"}])

    with pytest.raises(
        BadInput, match=r"log.jsonl line 2 delivers a message, but other events of the log say what they follow"
    ):
        take_in(tmp_path, text, "log.jsonl")


def as_otel(*spans: tuple[str, dict[str, Any]]) -> str:
    return "".join(json.dumps(otel({service: [span]})) + "\n" for service, span in spans)


def audited(tmp_path: Path) -> dict[str, Verdict]:
    return {name: check.verdict for name, check in audit_with(run_here(audit_job()), tmp_path / "run").checks.items()}


@pytest.mark.parametrize("lanes", [None, False])
def test_two_children_in_one_service_are_no_repeated_delivery(tmp_path: Path, lanes: bool | None) -> None:
    spans = as_otel(("a", otel_span("1", 5)), ("b", otel_span("2", 6, "1")), ("b", otel_span("3", 7, "1")))

    take_in(tmp_path, spans, "s.json", lanes=lanes)

    assert audited(tmp_path)[Guarantee.INTEGRITY] is Verdict.HOLDS


@pytest.mark.parametrize("lanes", [None, False])
def test_equal_times_are_no_causes(tmp_path: Path, lanes: bool | None) -> None:
    spans = [("a", otel_span("1", 5, "4")), ("a", otel_span("2", 5)), ("b", otel_span("3", 5, "2")), ("b", otel_span("4", 5))]

    done = take_in(tmp_path, as_otel(*spans), "s.json", lanes=lanes)

    assert done.executions[0].events == 4
    assert audited(tmp_path)[Guarantee.CAUSAL] is Verdict.HOLDS


def test_clocks_that_differ_are_estimated_from_both_ways(tmp_path: Path) -> None:
    spans = [
        ("a", otel_span("1", 1000)), ("b", otel_span("2", 600, "1")), ("a", otel_span("3", 1700, "2")),
    ]  # fmt: skip

    done: Imported = take_in(tmp_path, as_otel(*spans), "s.json")

    (skew,) = done.skews
    assert (skew.behind, skew.ahead, skew.at_least_ns, skew.estimate_ns) == ("b", "a", 400, 750)


@pytest.mark.parametrize("seed", range(10))
def test_in_lanes_exactly_what_is_said_is_ordered_though_hosts_are_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, seed: int
) -> None:
    rng = random.Random(seed)
    graph = random_graph(rng)
    hosts = {name: rng.choice(("a", "b", "a~2")) for name in graph}
    spans = [
        {"TraceID": "t", "SpanID": name, "ParentID": causes, "PodName": hosts[name], "StartTimeUnixNano": rng.randrange(4)}
        for name, causes in graph.items()
    ]

    wanted = (None, True)[seed % 2]
    if wanted:  # They are too many for vectors that tell who follows whom through others.
        monkeypatch.setattr(lanes_module, "LANES_FEW", 0)
    done = take_in(tmp_path, lines(rng.sample(spans, len(spans))), "log.jsonl", columns={"id": "SpanID"}, lanes=wanted)

    where = places(tmp_path / "run")
    named = {name: done.executions[0].hosts[where[f"t:{name}"][0]] for name in graph}
    assert all(lane == hosts[name] or lane.startswith(f"{hosts[name]}~") for name, lane in named.items())
    for segments in (1, 3):
        found = before(follow(FOLLOW, tmp_path / "run", segments=segments), where)
        assert found == {(f"t:{one}", f"t:{other}") for one, other in reaches(graph)}
    checks = audit_with(run_here(audit_job()), tmp_path / "run", expect=["causal", "integrity"])
    assert checks.verdict is Verdict.HOLDS, checks


def test_hosts_whose_events_follow_each_other_through_others_have_one_lane(tmp_path: Path) -> None:
    text = "id,after,host\n" + "".join(f"{number},{number - 1 if number else ''},{'ab'[number % 2]}\n" for number in range(9))

    done = take_in(tmp_path, text, "log.csv")

    assert (done.executions[0].hosts, done.executions[0].named) == (("a", "b"), 2)


def test_an_event_follows_what_any_of_its_causes_follows(tmp_path: Path) -> None:
    text = "id,after,host\nx,,a\ny,x,b\nz,,c\nzz,z,c\nw,y zz,a\n"

    assert take_in(tmp_path, text, "log.csv").executions[0].hosts == ("a", "b", "c")


def roots(count: int, *columns: str) -> str:
    """Events of one host that follow nothing, though they could."""
    return "\n".join([",".join(("id,after,host,time", *columns)), *(f"e{number},,a,{number}" for number in range(count))])


def test_times_order_the_events_of_a_host_if_lanes_would_be_many_or_are_not_wanted_and_that_is_said(tmp_path: Path) -> None:
    few, many = roots(LANES_FEW), roots(LANES_FEW + 1)
    told = "events of a host that do not follow each other are in the order of their times"
    for text, lanes, hosts, by_times, noted in (
        (few, None, LANES_FEW, False, False), (many, None, 1, True, True), (many, True, LANES_FEW + 1, False, False),
        (few, False, 1, True, False),
    ):  # fmt: skip
        done = take_in(tmp_path, text, "log.csv", lanes=lanes)

        assert (len(done.executions[0].hosts), done.executions[0].named) == (hosts, 1)
        assert any(note.startswith(told) for note in done.notes) is noted
        described = json.loads((tmp_path / "run" / "run.json").read_text())
        assert (described["settings"].get(LOCAL_ORDER) == BY_TIMES) is by_times
        asked = CliRunner().invoke(app, ["causality", str(tmp_path / "run"), "--relation", "e0", "e1"])
        assert ("a@0 happened before a@1" in asked.stdout) is by_times
        assert ("are in the order of their times" in asked.stdout) is by_times


def test_times_order_the_events_of_a_host_if_the_log_does_not_say_what_they_follow(tmp_path: Path) -> None:
    done = take_in(tmp_path, "name,host,time\nx,a,2\ny,a,1\n", "log.csv", columns={"id": "name"})

    assert (done.executions[0].hosts, done.notes) == (("a",), ())
    found = follow(FOLLOW, tmp_path / "run")
    assert found.relation(found.at(Named("y")), found.at(Named("x"))) == "before"


def test_positions_that_the_log_states_order_the_events_of_a_host(tmp_path: Path) -> None:
    done = take_in(tmp_path, "id,after,host,pos\nx,,a,2\ny,,a,1\n", "log.csv")

    assert done.executions[0].hosts == ("a",)
    found = follow(FOLLOW, tmp_path / "run")
    assert found.relation(found.at(Named("y")), found.at(Named("x"))) == "before"


@pytest.mark.parametrize("separate_max", [1, 9])
def test_executions_share_the_lanes_of_their_hosts(tmp_path: Path, separate_max: int) -> None:
    text = "TraceID,SpanID,ParentID,PodName,StartTimeUnixNano\n"
    for trace in "tuv":
        text += f"{trace},0,,a,100\n{trace},1,0,b,200\n{trace},2,0,b,300\n{trace},3,1,c,400\n"

    done = take_in(tmp_path, text, "spans.csv", columns={"execution": "TraceID"}, separate_max=separate_max)

    assert {execution.hosts for execution in done.executions} == {("a", "b", "b~2", "c")}
    answers = each_with(FOLLOW, tmp_path / "run", "time", None, "text")
    paths = [[one.hosts[stretch.process] for stretch in one.answer.path.stretches] for one in answers if one.answer.path]
    assert paths == [["a", "b", "c"]] * 3
    if separate_max == 1:
        where = {row["line"]: row["process"] for row in rows(tmp_path / "run")}
        assert all(where[root + 1] != where[root + 2] for root in (2, 6, 10))


def test_a_child_that_begins_before_its_parent_is_after_it_and_strangers_are_concurrent(tmp_path: Path) -> None:
    text = "TraceID,SpanID,ParentID,PodName,StartTimeUnixNano\nt,parent,,a,100\nt,child,parent,a,90\nt,stranger,,a,95\n"
    text += "t,child,parent,a,90\n"

    done = take_in(tmp_path, text, "spans.csv", lanes=True)

    assert done.executions[0].hosts == ("a", "a~2")
    assert (done.executions[0].events, done.defect_counts) == (3, {"begins too early": 1, "repeated": 1})
    found = follow(FOLLOW, tmp_path / "run")
    assert found.relation(found.at(Named("t:parent")), found.at(Named("t:child"))) == "before"
    for other in ("t:parent", "t:child"):
        assert found.relation(found.at(Named("t:stranger")), found.at(Named(other))) == "concurrent"


def test_lanes_are_for_events_that_say_what_they_follow(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="--lanes is for events that say what they follow"):
        take_in(tmp_path, '{"host":"a"}\n', "log.jsonl", lanes=True)
