"""ShiViz logs: text in which a regular expression finds events, each with a host and a vector clock in JSON.

The expression has named groups `event`, `host` and `clock`; others are allowed, and `date` or `timestamp` is used as the time
if it is a number or ISO 8601. Each search starts at the end of the previous match. RE2 does the matching: it does not
backtrack, so no expression can make it hang, but it has no look-around and no back-references.

Chunks are scanned in parallel. A scan that starts at a line agrees with the scan of the whole file from the first match that
does not begin inside the last match of the previous chunk; if that is not the chunk's first match, the chunk is scanned again.

Format: https://github.com/DistributedClocks/shiviz/wiki
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow.compute as pc
import re2

from quire.model.errors import BadInput
from quire.pipeline.importing.chunks import RECORD_MAX, decode_text, read_chunk
from quire.pipeline.importing.clock_texts import read_clocks
from quire.pipeline.importing.formats.contract import Format, Found, Likeness, Log, Piece, starts_like_json, starts_like_objects
from quire.pipeline.importing.layouts import CLOCK, COLUMNS, END, EVENT, HOST, PARSERS, START, TIME, compiled_search
from quire.pipeline.importing.records import Block, as_batch, as_block, check_name, replace_rows
from quire.pipeline.importing.request import ImportRequest
from quire.pipeline.importing.texts import cut_texts, read_times
from quire.pipeline.importing.values import parse_clock, parse_time
from quire.trace.kinds import LOCAL

SECONDS_MAX = 60.0
"""The time limit for a chunk, which normally takes one or two seconds. One RE2 search is linear, but a search from every byte
of a chunk would not end."""

_GROUPS = ("host", "clock", "event")
_TIMES = ("date", "timestamp")
_NEWLINE = ord("\n")


class Layout:
    """The regular expression for events and, if there are several executions, the one for their delimiter."""

    def __init__(self, regex: str, delimiter: str | None) -> None:
        self.regex = regex
        self.event = _compile(regex, "--regex")
        groups = {name.decode(): index for name, index in self.event.groupindex.items()}
        for name in _GROUPS:
            if name not in groups:
                raise BadInput(f"--regex needs a group (?<{name}>…), so that it says where an event's {name} is")
        self.groups = [groups[name] for name in _GROUPS]
        self.times = [groups[name] for name in _TIMES if name in groups]
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


def delimiters(layout: Layout, data: bytes, own: int) -> list[tuple[int, int, str]]:
    """The positions of delimiters between executions, each with the label of the execution that follows."""
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


def scan(layout: Layout, data: bytes, first: int, own: int, ends: list[int]) -> Iterator[list[int]]:
    """The matches that begin between `first` and `own`, in the row format of `layouts`; none extends beyond an end in
    `ends`."""
    deadline = time.monotonic() + SECONDS_MAX
    stops = [*ends, len(data)]
    at = first
    for stop in stops:
        while at < min(stop, own):
            match = layout.event.search(data, at, stop)
            if match is None or match.start() >= own:
                break
            start, end = match.span()
            if time.monotonic() > deadline:
                raise BadInput(f"--regex takes more than {SECONDS_MAX:.0f} s for {len(data) >> 20} MiB; write it more strictly")
            # A group that did not take part in the match has the span (-1, -1).
            time_span = next((span for span in map(match.span, layout.times) if span[0] < span[1]), (0, 0))
            yield [start, end, *(edge for index in layout.groups for edge in match.span(index)), *time_span]
            at = max(end, start + 1)
        at = max(at, stop)


def find_matches(layout: Layout, data: bytes, first: int, own: int, ends: list[int]) -> np.ndarray:
    """Like `scan`, as one array; by a compiled loop, without an object per match, if the layout is a built-in one."""
    search = None if ends else compiled_search(layout.regex)
    if search is None:
        return np.array(list(scan(layout, data, first, own, ends)), np.int64).reshape(-1, COLUMNS)
    found = np.empty(((len(data) - first) // 5 + 1, COLUMNS), np.int64)
    kept: np.ndarray = found[: search(np.frombuffer(data, np.uint8), first, own, found)]
    return kept


def as_record(found: Sequence[int], data: bytes, where: str) -> tuple[str, dict[str, Any]]:
    """The host and the record of a match."""
    texts = {}
    for column in (EVENT, HOST, CLOCK, TIME):
        try:
            texts[column] = data[slice(*found[column : column + 2])].decode()
        except UnicodeDecodeError as error:
            raise BadInput(f"{where} holds bytes that are not UTF-8") from error
    host = check_name(texts[HOST], "host", where)
    clock = parse_clock(texts[CLOCK], where)
    record = {"kind": LOCAL, "text": texts[EVENT].strip(), "clock_hosts": list(clock), "clock_counts": list(clock.values())}
    record["time_ns"] = parse_time(texts[TIME])
    return host, record


def guess(head: bytes) -> str:
    """The built-in layout that finds the most events at the beginning of a file."""
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
        if starts_like_json(log) or starts_like_objects(log):
            return Likeness.NONE
        match = Layout(PARSERS[guess(log.head)], None).event.search(log.head)
        return Likeness.NONE if match is None else Likeness.LIKELY

    def settle(self, logs: Sequence[Log], request: ImportRequest) -> ShivizSettings:
        if request.parser is not None and request.parser not in PARSERS:
            raise BadInput(f"there is no parser {request.parser!r}; choose one of {', '.join(PARSERS)}")
        regex = request.regex or PARSERS[request.parser or guess(logs[0].head)]
        Layout(regex, request.delimiter)  # Raises BadInput if they are invalid.
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
        matches = find_matches(layout, data, begin, own, [at for at, *_ in borders])
        too_long = _too_long(matches, None if whole else len(data))
        matches = matches[: too_long[0]] if len(too_long) else matches
        passed = np.searchsorted([at for at, *_ in inside], matches[:, START], "right")
        # A delimiter is not an event, even if it looks like one.
        is_event = matches[:, START] >= np.array([0, *(end for _, end, _ in inside)])[passed]
        matches, passed = matches[is_event], passed[is_event].astype(np.int32)
        newlines = np.flatnonzero(np.frombuffer(data, np.uint8) == _NEWLINE)
        lines = piece.first_line + np.searchsorted(newlines, matches[:, START])
        if len(matches):
            found.clocked = True
            found.first, found.resume = start + int(matches[0, START]), max(found.resume, start + int(matches[-1, END]))
            found.add_block(_records(matches, data, own, passed, lines, piece.name))
        if len(too_long):
            raise BadInput(f"--regex matches more than {RECORD_MAX >> 20} MiB at once, so it does not find single events")


def _too_long(matches: np.ndarray, cut: int | None) -> np.ndarray:
    """Which matches are longer than an event may be, or extend to where the data was cut."""
    long = matches[:, END] - matches[:, START] > RECORD_MAX
    return np.flatnonzero(long if cut is None else long | (matches[:, END] == cut))


def _records(
    matches: np.ndarray, data: bytes, own: int, execution: np.ndarray, lines: np.ndarray, name: str
) -> Block:  # fmt: skip
    """The records of matches: in columns, except unusual ones, which are converted one by one."""
    letters = np.frombuffer(data, np.uint8)
    clocks = read_clocks(letters, matches[:, CLOCK : CLOCK + 2], matches[:, HOST : HOST + 2])
    # Bytes beyond the piece have not been checked for valid UTF-8.
    odd = (clocks.host < 0) | (clocks.lengths < 0) | (matches[:, END] > own)
    times = cut_texts(letters, matches[:, TIME : TIME + 2])
    columns = {
        "execution": execution, "line": lines, "kind": np.full(len(lines), LOCAL, np.int8),
        "text": pc.utf8_trim_whitespace(cut_texts(letters, matches[:, EVENT : EVENT + 2], ~odd)),
        "time_ns": read_times(times), **clocks.columns(),
    }  # fmt: skip
    block = Block(clocks.names, clocks.host, as_batch(len(lines), columns))
    rows = np.flatnonzero(odd).tolist()
    if not rows:
        return block
    records = [as_record(matches[row].tolist(), data, f"{name} line {lines[row]}") for row in rows]
    for row, (_, record) in zip(rows, records, strict=True):
        record.update(execution=int(execution[row]), line=int(lines[row]))
    return replace_rows(block, rows, as_block(*zip(*records, strict=True)))


FORMAT = Shiviz()
