"""ShiViz logs: text in which a regular expression finds events, each with a host and a vector clock in JSON.

The expression has named groups `event`, `host` and `clock`; others are allowed, and `date` or `timestamp` is taken for the
time where it is a number or ISO 8601. Matches are sought from the end of the one before. RE2 does the matching: no
expression can make it go back and try again, so none can hang, but it has no look-around and no back-references.

Chunks are scanned side by side. A scan that starts at a line agrees with the scan of the whole file from the first match
on that does not begin inside the match before the chunk; where that is not the chunk's first, the chunk is scanned again.

Format: https://github.com/DistributedClocks/shiviz/wiki
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import re2

from quire.model.errors import BadInput
from quire.pipeline.importing.chunks import RECORD_MAX, decode_text, read_chunk
from quire.pipeline.importing.formats.contract import Format, Found, Likeness, Log, Piece, starts_like_json
from quire.pipeline.importing.records import check_name
from quire.pipeline.importing.request import ImportRequest
from quire.pipeline.importing.values import parse_clock, parse_time
from quire.trace.kinds import LOCAL

PARSERS = {
    "two-lines": r"(?<event>.*)\n(?<host>\S*) (?<clock>\{.*\})",
    "clock-first": r"(?<host>\S*) (?<clock>\{.*\})\n(?<event>.*)",
    "one-line": r"^(?<host>\S+) (?<clock>\{[^}]*\}) (?<event>.*)$",
    "timed": r"(?<timestamp>\d+) (?<event>.*)\n(?<host>\w+) (?<clock>\{.*\})",
    "akka": r"\[\w+\] \[(?<date>[^ ]+ [^ ]+)\] [^ ]+ \[akka://[^/]*/user/(?<host>\w+)\] (?<clock>\{.*\}) (?<event>.*)",
}
"""The layouts that are met most: ShiViz's own, that of the GoVector and JVector loggers, on one line, TSViz's, and Akka's."""

SECONDS_MAX = 60.0
"""For a chunk; it takes one or two. RE2 searches in linear time, but a search for each letter of a chunk would not end."""

_GROUPS = ("event", "host", "clock")


class Layout:
    """A regular expression for events, and one for what separates executions, if there are several."""

    def __init__(self, regex: str, delimiter: str | None) -> None:
        self.event = _compile(regex, "--regex")
        self.groups = {name.decode(): index for name, index in self.event.groupindex.items()}
        for name in _GROUPS:
            if name not in self.groups:
                raise BadInput(f"--regex needs a group (?<{name}>…), so that it says where an event's {name} is")
        self.delimiter = None if delimiter is None else _compile(delimiter, "--delimiter")
        labels = {} if self.delimiter is None else {name.decode(): index for name, index in self.delimiter.groupindex.items()}
        self.label = labels.get("trace")


def _compile(regex: str, option: str) -> Any:
    options = re2.Options()
    options.log_errors = False
    try:
        compiled = re2.compile(b"(?m)" + regex.encode(), options)
    except re2.error as error:
        why = error.args[0].decode() if isinstance(error.args[0], bytes) else str(error)
        raise BadInput(f"{option} is not a regular expression of RE2 (no look-around, no back-references): {why}") from error
    if compiled.search(b"") is not None:
        raise BadInput(f"{option} matches the empty text, so it would match everywhere")
    return compiled


class Match(msgspec.Struct, frozen=True):
    """A match: where it begins and ends, and its groups."""

    start: int
    end: int
    groups: dict[str, bytes]


def delimiters(layout: Layout, data: bytes, own: int) -> list[tuple[int, int, str]]:
    """Where executions are separated, and the label of the one that follows."""
    if layout.delimiter is None:
        return []
    found = []
    for match in layout.delimiter.finditer(data):
        start, end = match.span()
        if start >= own:
            break
        if b"\n" in data[start:end].strip(b"\n"):
            raise BadInput("--delimiter matches more than a line; a delimiter is one line")
        label = (match.group(layout.label) or b"") if layout.label is not None else b""
        found.append((start, end, label.decode(errors="replace")))
    return found


def scan(layout: Layout, data: bytes, first: int, own: int, whole: bool, ends: list[int]) -> Iterator[Match]:
    """The matches that begin between `first` and `own`; none goes over an end in `ends`. `whole`: the file ends with `data`."""
    deadline = time.monotonic() + SECONDS_MAX
    stops = [*ends, len(data)]
    at = first
    for stop in stops:
        while at < min(stop, own):
            match = layout.event.search(data, at, stop)
            if match is None or match.start() >= own:
                break
            start, end = match.span()
            if (end == len(data) and not whole) or end - start > RECORD_MAX:
                raise BadInput(f"--regex matches more than {RECORD_MAX >> 20} MiB at once, so it does not find single events")
            if time.monotonic() > deadline:
                raise BadInput(f"--regex takes more than {SECONDS_MAX:.0f} s for {len(data) >> 20} MiB; write it more strictly")
            # A group that took no part is at (-1, -1), which is nothing.
            yield Match(start, end, {name: data[slice(*match.span(index))] for name, index in layout.groups.items()})
            at = max(end, start + 1)
        at = max(at, stop)


def as_record(found: Match, where: str) -> tuple[str, dict[str, Any]]:
    """The host and the record of a match."""
    texts = {}
    for name, value in found.groups.items():
        try:
            texts[name] = value.decode()
        except UnicodeDecodeError as error:
            raise BadInput(f"{where} holds bytes that are not UTF-8") from error
    host = check_name(texts["host"], "host", where)
    clock = parse_clock(texts["clock"], where)
    record = {"kind": LOCAL, "text": texts["event"].strip(), "clock_hosts": list(clock), "clock_counts": list(clock.values())}
    record["time_ns"] = parse_time(texts.get("date") or texts.get("timestamp"))
    return host, record


def guess(head: bytes) -> str:
    """The layout that finds the most events in the beginning of a file."""
    head = head[: head.rfind(b"\n") + 1] or head
    found = {name: sum(1 for _ in _compile(regex, "--regex").finditer(head)) for name, regex in PARSERS.items()}
    return max(found, key=lambda name: (found[name], name == "two-lines"))


class ShivizSettings(msgspec.Struct, frozen=True):
    regex: str
    delimiter: str | None


class Shiviz(Format[ShivizSettings]):
    settings = ShivizSettings
    delimited = True

    def recognise(self, log: Log) -> Likeness:
        if starts_like_json(log):
            return Likeness.NONE
        match = Layout(PARSERS[guess(log.head)], None).event.search(log.head)
        return Likeness.NONE if match is None else Likeness.LIKELY

    def settle(self, logs: Sequence[Log], request: ImportRequest) -> ShivizSettings:
        if request.parser is not None and request.parser not in PARSERS:
            raise BadInput(f"there is no parser {request.parser!r}; choose one of {', '.join(PARSERS)}")
        regex = request.regex or PARSERS[request.parser or guess(logs[0].head)]
        Layout(regex, request.delimiter)  # Says what is wrong with them.
        return ShivizSettings(regex, request.delimiter)

    def read(self, piece: Piece, settings: ShivizSettings, found: Found) -> None:
        layout = Layout(settings.regex, settings.delimiter)
        data, own, start = read_chunk(piece.chunk, RECORD_MAX)
        decode_text(data[:own], piece.name, piece.first_line)
        whole = start + len(data) >= Path(piece.chunk.path).stat().st_size
        borders = delimiters(layout, data, len(data))
        inside = [border for border in borders if border[0] < own]
        found.executions = ["", *(label for *_, label in inside)]
        begin = 0 if piece.first is None else piece.first - start
        found.first, found.resume = start + own, start + max(begin, own)
        line, counted = piece.first_line, 0
        passed = 0
        for match in scan(layout, data, begin, own, whole, [at for at, *_ in borders]):
            while passed < len(inside) and inside[passed][0] <= match.start:
                passed += 1
            if passed and match.start < inside[passed - 1][1]:
                continue  # A delimiter is not an event, even if it looks like one.
            line += data.count(b"\n", counted, match.start)
            counted = match.start
            host, record = as_record(match, f"{piece.name} line {line}")
            found.add(passed, host, line, record)
            found.first = min(found.first, start + match.start)
            found.resume = max(found.resume, start + match.end)


FORMAT = Shiviz()
