"""What is wrong with logs, told with line and host; and what is refused in one sentence, with nothing written."""

from __future__ import annotations

import gzip
import json
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from typer.testing import CliRunner

from quire.cli import main
from quire.cli.app import app
from quire.cli.legible import legible
from quire.model.errors import BadInput
from quire.pipeline.importing import chunks
from quire.pipeline.importing.defects import DefectKind, Unusable
from quire.pipeline.importing.formats import shiviz as shiviz_format
from quire.pipeline.importing.importer import import_with
from quire.pipeline.importing.request import ImportRequest
from quire.pipeline.importing.tasks import IMPORT
from quire.pipeline.tasks import run_here
from tests.kit.patience import PATIENCE_S

HERE = run_here(IMPORT)


def shiviz(*events: tuple[str, dict[str, int]]) -> bytes:
    return "".join(f"event\n{host} {json.dumps(clock)}\n" for host, clock in events).encode()


DEFECTS: dict[str, tuple[bytes, DefectKind, str, bool]] = {
    "a missing own entry": (
        shiviz(("a", {"a": 1}), ("b", {"a": 1})),
        DefectKind.NO_OWN_ENTRY, "line 3, host b: its clock has no entry for the host itself", True,
    ),
    "going backwards": (
        shiviz(("b", {"b": 1}), ("a", {"a": 1, "b": 1}), ("a", {"a": 2})),
        DefectKind.BACKWARDS, "line 5, host a: its clock has a lower entry for b than the host's previous event", True,
    ),
    "two events of one number": (
        shiviz(("a", {"a": 1}), ("a", {"a": 1})), DefectKind.DUPLICATE, "line 3, host a: its own entry is 1, as at", True,
    ),
    "an unknown host": (
        shiviz(("a", {"a": 1, "z": 3})), DefectKind.UNKNOWN_HOST, "line 1, host a: its clock names host z", False,
    ),
    "an event that is not there": (
        shiviz(("b", {"b": 1}), ("a", {"a": 1, "b": 2})),
        DefectKind.NOT_THERE, "line 3, host a: its clock names event 2 of b, which does not exist", False,
    ),
    "a gap": (
        shiviz(("a", {"a": 1}), ("a", {"a": 3})),
        DefectKind.GAP, "line 3, host a: its own entry is 3, but there is no event 2", False,
    ),
    "a clock that forgets": (
        shiviz(("c", {"c": 1}), ("b", {"b": 1, "c": 1}), ("a", {"a": 1, "b": 1})),
        DefectKind.NOT_COVERED, "its clock names event 1 of b, but has a lower entry for c than that event's clock", True,
    ),
    "a cycle": (
        shiviz(("a", {"a": 1, "b": 1}), ("b", {"a": 1, "b": 1})),
        DefectKind.CYCLE, "line 1, host a: its clock names event 1 of b, whose clock names this event", True,
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", DEFECTS)
def test_a_defect_of_clocks_is_told_with_line_and_host_and_decides(tmp_path: Path, what: str) -> None:
    text, kind, sentence, fatal = DEFECTS[what]
    (tmp_path / "log.txt").write_bytes(text)

    if fatal:
        with pytest.raises(Unusable) as raised:
            import_with(HERE, [tmp_path / "log.txt"], tmp_path / "run", ImportRequest())
        told, counts = raised.value.defects.listed, raised.value.defects.counts
        assert sentence in str(raised.value)
        assert [path.name for path in tmp_path.iterdir()] == ["log.txt"]
    else:
        imported = import_with(HERE, [tmp_path / "log.txt"], tmp_path / "run", ImportRequest())
        told, counts = list(imported.defects), {DefectKind(name): count for name, count in imported.defect_counts.items()}
        assert json.loads((tmp_path / "run" / "run.json").read_text())["settings"]["defects"][kind] == 1
    assert counts[kind] >= 1
    assert any(sentence in str(defect) for defect in told)


def spans(*edges: tuple[str, str, str]) -> bytes:
    """(service, span, parent), at one time."""
    return "".join(
        json.dumps({"resourceSpans": [{
            "resource": {"attributes": [{"key": "service.name", "value": {"stringValue": service}}]},
            "scopeSpans": [{"spans": [
                {"traceId": "t", "spanId": span, "parentSpanId": parent, "startTimeUnixNano": 5, "name": span}
            ]}],
        }]}) + "\n"
        for service, span, parent in edges
    ).encode()  # fmt: skip


EVIL = r"(?<event>(a+)+)\n(?<host>(\S+)+) (?<clock>{.*})"

BAD: dict[str, tuple[str, bytes, list[str], str]] = {
    "bad UTF-8": ("a.txt", b"ev\xffent\na {\"a\":1}\n", [], "line 1 holds bytes that are not UTF-8"),
    "bad UTF-8 in JSON": ("a.jsonl", b'{"host":"a"}\n{"host":"\xff"}\n', [], "line 2 is not a JSON object"),
    "bad UTF-8 in CSV": ("a.csv", b"host,event\na,b\nb,\xff\n", [], "line 3 holds bytes that are not UTF-8"),
    "an empty file": ("a.txt", b"", [], "is empty"),
    "only spaces": ("a.txt", b" \n \n", [], "is empty"),
    "no events": ("a.txt", b"nothing here\n", ["--format", "shiviz"], "holds no events that shiviz finds"),
    "nothing known": ("a.txt", b"nothing here\n", [], "is in none of the formats shiviz, jsonl, csv, otel, jaeger"),
    "an evil expression that finds nothing": ("a.txt", b"a" * 200_000 + b"!\n", ["--regex", EVIL], "holds no events"),
    "a look ahead": ("a.txt", b"x\n", ["--regex", r"(?<event>a)(?<host>b)(?<clock>c)(?=d)"], "no look-around"),
    "no expression": ("a.txt", b"x\n", ["--regex", "(?<event>"], "is not a regular expression of RE2"),
    "an expression without a host": ("a.txt", b"x\n", ["--regex", "(?<event>.+)(?<clock>x)"], "needs a group (?<host>…)"),
    "an expression that matches nothing": (
        "a.txt", b"x\n", ["--regex", "(?<event>.*)(?<host>.*)(?<clock>.*)"], "would match everywhere",
    ),
    "a clock that is none": ("a.txt", b'e\na {"a":"one"}\n', [], "line 1: the clock is not a JSON object from hosts to whole"),
    "a negative clock": ("a.txt", b'e\na {"a":-1}\n', [], "line 1: the clock's entry for 'a' is -1"),
    "a path for a host": ("a.txt", b'e\n../../etc/passwd {"../../etc/passwd":1}\n', [], "contains `..`, which would leave"),
    "a formula for a host": ("a.csv", b"host,event\n=cmd|calc,x\n", [], "begins like a spreadsheet formula"),
    "a formula for a number": ("a.csv", b"host,lamport\na,=1+1\n", [], "line 2: the logical time '=1+1' is not a whole number"),
    "a host with a bell": ("a.jsonl", b'{"host":"a\\u0007"}\n', [], "holds control characters"),
    "too few columns": ("a.csv", b"host,event\na\n", [], "line 2 has 1 columns, but the header has 2"),
    "an open quote": ("a.csv", b'host,event\na,"b\n', [], "is not CSV"),
    "a column twice": ("a.csv", b"host,host\na,b\n", [], "names a column twice"),
    "two columns that may be the host": (
        "a.csv", b"Host,host\na,b\n", [], "'Host' and 'host' may both hold the host; say which with --map host=Host",
    ),
    "two fields that may be the host": ("a.jsonl", b'{"pod_name":"a","PodName":"b"}\n', [], "with --map host=pod_name"),
    "two columns that may be the id": (
        "a.csv", b"SpanID,span_id,ParentID\n1,2,3\n", [], "'SpanID' and 'span_id' may both hold the id",
    ),
    "an object for a host": ("a.jsonl", b'{"host":{"name":"a"}}\n', [], "line 1: the host is a JSON object, not a name"),
    "an object for destinations": (
        "a.jsonl", b'{"host":"a","kind":"send","message":"m","to":{"b":1}}\n', [], "a JSON object is not a list of names",
    ),
    "arrays for causes": ("a.jsonl", b'{"id":1,"after":[[2]]}\n', [], "line 1: the name in the list is a JSON array"),
    "an array for a message": (
        "a.jsonl", b'{"host":"a","kind":"send","message":["m"]}\n', [], "line 1: the message is a JSON array, not a name",
    ),
    "half a line of JSON": ("a.jsonl", b'{"host":"a",\n', [], "line 1 is not a JSON object"),
    "no such column": ("a.csv", b"host,event\na,b\n", ["--map", "kind=sort"], "has no column 'sort' for kind"),
    "no host": ("a.jsonl", b'{"event":"x"}\n', [], "names no host"),
    "an unknown kind": ("a.jsonl", b'{"host":"a","kind":"dance"}\n', [], "line 1: the kind 'dance' is none of"),
    "a send of nothing": ("a.jsonl", b'{"host":"a","kind":"send"}\n', [], "a send or a delivery must name its message"),
    "a key twice": ("a.jsonl", b'{"host":"a","host":"b"}\n', [], "line 1 is not a JSON object: it has the key 'host' twice"),
    "a key twice, with spaces, inside": (
        "a.jsonl", b'{"host":"a"}\n{"host": "b", "clock": {"b" : 1, "b" : 2}}\n', [], "line 2 is not a JSON object: it has",
    ),
    "a host twice in a clock": ("a.txt", b'e\na {"a":1, "a":2}\n', [], "line 1: the clock is not a JSON object from hosts"),
    "a line that is no JSON": ("a.jsonl", b'{"host":"a"}\n{\n', [], "line 2 is not a JSON object"),
    "a cycle of messages": (
        "a.jsonl",
        b'{"host":"a","kind":"deliver","message":"y"}\n{"host":"a","kind":"send","message":"x"}\n'
        b'{"host":"b","kind":"deliver","message":"x"}\n{"host":"b","kind":"send","message":"y"}\n',
        [], "contradicts itself in a cycle: a learned of b at",
    ),
    "a circle of spans": (
        "a.json", spans(("p", "1", "2"), ("q", "2", "1")), [], "contradicts itself in a circle: t:1 (",
    ),
    "a circle of events": (
        "a.jsonl", b'{"id":"x","after":"z"}\n{"id":"y","after":["x"]}\n{"id":"z","after":"y"}\n', [],
        "a.jsonl line 2) follows x (",
    ),
    "an event that follows itself": ("a.jsonl", b'{"id":"x","after":"x"}\n', [], "line 1) follows x ("),
    "what follows, but not what it is": (
        "a.csv", b"host,x,y\na,1,2\n", ["--after", "y"], "so --id must say what they are called",
    ),
    "JSON nested deep": (
        "a.jsonl", b'{"host":"a"}\n{"host":' + b"[" * 99_999 + b"]" * 99_999 + b"}\n", [],
        "line 2 is not a JSON object: it is nested too deep",
    ),
    "spans nested deep": (
        "a.json", b'{"resourceSpans":' + b"[" * 99_999 + b"]" * 99_999 + b"}\n", [],
        "line 1 does not hold spans",
    ),
    "a clock nested deep": (
        "a.txt", b'e\na {"a":' + b"[" * 9_999 + b"]" * 9_999 + b"}\n", ["--format", "shiviz"], "line 1: the clock is not",
    ),
    "an array that is cut off": ("a.json", b'[{"host":"a"},', ["--format", "jsonl"], "is not an array of JSON objects"),
    "CSV without a host": ("a.csv", b"a,b\n1,2\n", [], "has no column for the host, only a, b"),
    "a mapping that matches nothing": (
        "a.jsonl", b'{"host":"a","x":1}\n', ["--map", "clock=vclock"], "has 'vclock', which --map says holds the clock",
    ),
    "a nested mapping that matches nothing": (
        "a.jsonl", b'{"host":"a","x":{"y":1}}\n', ["--map", "clock=x.vc"], "has 'x.vc', which --map says holds the clock",
    ),
    "a null byte": ("a.jsonl", b'{"host":"a"}\n{"host":"b"}\x00\n', [], "line 2 is not a JSON object"),
    "a null byte in a name": ("a.jsonl", b'{"host":"a\\u0000"}\n', [], "holds control characters"),
    "half of a gzip": ("a.jsonl.gz", gzip.compress(b'{"host":"a"}\n' * 999)[:40], [], "cannot be unpacked"),
    "a gzip with something behind it": (
        "a.jsonl.gz", gzip.compress(b'{"host":"a"}\n') + b"more", [], "a.jsonl.gz cannot be unpacked: Not a gzipped file",
    ),
    "a gzip with a hole": (
        "a.jsonl.gz", gzip.compress(b'{"host":"a"}\n' * 999)[:20] + b"\0" * 40, [], "a.jsonl.gz cannot be unpacked",
    ),
    "a bzip2 with a hole": ("a.jsonl.bz2", b"BZh9" + b"\xff" * 99, [], "a.jsonl.bz2 cannot be unpacked"),
    "a zstd with a hole": ("a.jsonl.zst", b"\x28\xb5\x2f\xfd" + b"\xff" * 99, [], "a.jsonl.zst cannot be unpacked"),
    "mixed executions": ("a.txt", shiviz(("a", {"a": 1})) * 2, [], "--delimiter separates several executions"),
    "a delimiter of many lines": (
        "a.txt", b"=\n=\n" + shiviz(("a", {"a": 1})), ["--delimiter", "=\\n="], "a delimiter is one line",
    ),
    "an unknown format": ("a.txt", b"x\n", ["--format", "xml"], "--format must be auto or one of shiviz"),
    "an unknown parser": ("a.txt", b"x\n", ["--parser", "mine"], "there is no parser 'mine'; choose one of two-lines"),
    "a regex for CSV": ("a.csv", b"host,b\na,b\n", ["--format", "csv", "--regex", "x"], "--regex is for shiviz, but"),
    "a mapping for spans": ("a.json", spans(("p", "1", "")), ["--map", "host=x"], "--map is for jsonl and csv, but"),
    "a strange mapping": ("a.csv", b"host,b\na,b\n", ["--map", "b"], "--map takes FIELD=COLUMN"),
}  # fmt: skip


@pytest.mark.parametrize("what", BAD)
def test_bad_input_is_refused_in_one_sentence_and_nothing_is_written(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, what: str
) -> None:
    name, data, arguments, sentence = BAD[what]
    (tmp_path / name).write_bytes(data)
    here_instead_of_spark(monkeypatch)
    began = time.monotonic()

    result = CliRunner().invoke(app, ["import", str(tmp_path / name), "--out", str(tmp_path / "run"), *arguments])

    assert isinstance(result.exception, BadInput), result.exception
    assert sentence in str(result.exception)
    assert "\n" not in str(result.exception)
    assert [path.name for path in tmp_path.iterdir()] == [name]
    assert time.monotonic() - began < PATIENCE_S


def test_no_control_character_of_a_file_reaches_the_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "log.csv").write_bytes("a\x1b[31m,b\u202e\n1,2\n".encode())
    monkeypatch.setattr(sys, "argv", ["quire", "import", str(tmp_path / "log.csv"), "--out", str(tmp_path / "run")])

    assert main._run() == main.EXIT_BAD_INPUT

    said = capsys.readouterr().err
    assert said.startswith("quire: ")
    assert "only a\\x1b[31m, b\\u202e" in said
    assert legible(said.rstrip("\n")) == said.rstrip("\n")


def here_instead_of_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    @contextmanager
    def session(master: str) -> Iterator[None]:
        yield None

    monkeypatch.setattr("quire.pipeline.session.session", session)
    monkeypatch.setattr("quire.pipeline.importing.importer.run_on", lambda _spark, job: run_here(job))


def test_a_search_for_every_letter_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """RE2 is linear for one search; an expression that asks for the end of the file at every letter is stopped by the clock."""
    monkeypatch.setattr(shiviz_format, "SECONDS_MAX", 0.2)
    layout = shiviz_format.Layout(r"(?<event>a)(?<host>[\s\S]*z)?(?<clock>)", None)
    data = b"a" * 3_000_000 + b"\n"

    with pytest.raises(BadInput, match="takes more than"):
        for _ in shiviz_format.scan(layout, data, 0, len(data), []):
            pass


def test_a_line_without_end_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(chunks, "LINE_MAX", 1 << 16)
    (tmp_path / "a.jsonl").write_bytes(b'{"host":"' + b"a" * (1 << 18))

    with pytest.raises(BadInput, match="has a line of more than 0 MiB; is it a log"):
        import_with(HERE, [tmp_path / "a.jsonl"], tmp_path / "run", ImportRequest(format="jsonl", chunk_bytes=1 << 15))


def test_files_of_two_formats_or_none_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("host,event\na,b\n")
    (tmp_path / "b.jsonl").write_text('{"host":"a"}\n')

    with pytest.raises(BadInput, match="import one format at a time"):
        import_with(HERE, [tmp_path / "a.csv", tmp_path / "b.jsonl"], tmp_path / "run", ImportRequest())
    with pytest.raises(BadInput, match="No such file"):
        import_with(HERE, [tmp_path / "c.csv"], tmp_path / "run", ImportRequest())


def test_what_is_there_is_not_replaced_unless_it_is_a_run_and_asked_for(tmp_path: Path) -> None:
    log = tmp_path / "a.jsonl"
    log.write_text('{"host":"a"}\n')
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "letter.txt").touch()
    import_with(HERE, [log], tmp_path / "run", ImportRequest())

    with pytest.raises(BadInput, match="exists already"):
        import_with(HERE, [log], tmp_path / "run", ImportRequest())
    with pytest.raises(BadInput, match="is not a run directory, so it will not be replaced"):
        import_with(HERE, [log], tmp_path / "mine", ImportRequest(), force=True)
    import_with(HERE, [log], tmp_path / "run", ImportRequest(), force=True)


@pytest.mark.parametrize("master", [[], ["--master", "local[2]"]])
def test_the_command_imports_audits_and_exports(command: CliRunner, tmp_path: Path, master: list[str]) -> None:
    log, run, out = tmp_path / "a.txt", tmp_path / "run", tmp_path / "out.log"
    log.write_bytes(shiviz(("a", {"a": 1}), ("b", {"a": 1, "b": 1, "z": 9})))

    imported = command.invoke(app, ["import", str(log), "--out", str(run), "--json", *master])
    audited = command.invoke(app, ["audit", str(run), "--json", *master])
    exported = command.invoke(app, ["export", str(run), "--out", str(out), "--format", "shiviz", *master])

    said = json.loads(imported.stdout)
    assert said["defects"][0]["kind"] == "unknown host"
    assert said["executions"][0]["hosts"] == ["a", "b"]
    assert audited.exit_code == 0, audited.exception
    assert {name for name, check in json.loads(audited.stdout)["checks"].items() if check["verdict"] == "undecided"} == {
        "agreement"
    }
    assert "2 events of 2 hosts" in exported.stdout
    assert out.read_text() == 'event\na {"a":1}\nevent\nb {"a":1,"b":1}\n'
