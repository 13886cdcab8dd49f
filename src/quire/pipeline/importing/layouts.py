"""Compiled searches for the built-in layouts of ShiViz logs: the same matches as RE2 finds, without an object per match.

A layout consists of one or two lines. On the line with the clock, the first space before a brace ends the host; the clock ends
with the last brace of the line, unless the text follows it on the same line. As with an expression, a search continues where
the previous match ended, and what does not match is skipped.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from quire.pipeline.compiled import compiled, piece

PARSERS = {
    "two-lines": r"(?<event>.*)\n(?<host>\S*) (?<clock>\{.*\})",
    "clock-first": r"(?<host>\S*) (?<clock>\{.*\})\r?\n(?<event>.*)",
    "one-line": r"^(?<host>\S+) (?<clock>\{[^}]*\}) (?<event>.*)$",
    "timed": r"(?<timestamp>\d+) (?<event>.*)\n(?<host>\w+) (?<clock>\{.*\})",
    "akka": r"\[\w+\] \[(?<date>[^ ]+ [^ ]+)\] [^ ]+ \[akka://[^/]*/user/(?<host>\w+)\] (?<clock>\{.*\}) (?<event>.*)",
}
"""The most common layouts: ShiViz's own, that of the GoVector and JVector loggers, a one-line layout, TSViz's, and Akka's."""

START, END, HOST, CLOCK, EVENT, TIME = 0, 1, 2, 4, 6, 8
"""The columns of a match: its begin and end, and two columns for each group, the begin and end of its bytes."""
COLUMNS = 10

_NEWLINE, _RETURN, _SPACE, _OPEN, _CLOSE = 10, 13, 32, 123, 125


def compiled_search(regex: str) -> Any:
    """The compiled search for an expression, if it is a built-in one: see `two_lines`."""
    return _SEARCHES.get(regex)


@piece
def _line_end(data: np.ndarray, at: int, stop: int) -> int:
    while at < stop and data[at] != _NEWLINE:
        at += 1
    return at


@piece
def _word_end(data: np.ndarray, at: int, stop: int) -> int:
    r"""The end of `\S*`."""
    while at < stop and data[at] != _SPACE and not (9 <= data[at] <= 13 and data[at] != 11):
        at += 1
    return at


@piece
def _letters_end(data: np.ndarray, at: int, stop: int) -> int:
    r"""The end of `\w*`."""
    while at < stop and (
        48 <= data[at] <= 57 or 65 <= data[at] <= 90 or 97 <= data[at] <= 122 or data[at] == 95
    ):  # fmt: skip
        at += 1
    return at


@piece
def _digits_end(data: np.ndarray, at: int, stop: int) -> int:
    while at < stop and 48 <= data[at] <= 57:
        at += 1
    return at


@piece
def _clock_end(data: np.ndarray, at: int, stop: int) -> int:
    r"""The end of ` \{.*\}` that begins here; -1 if none does."""
    if at + 2 >= stop or data[at] != _SPACE or data[at + 1] != _OPEN:
        return -1
    end = _line_end(data, at, stop)
    while end > at + 2:
        if data[end - 1] == _CLOSE:
            return end
        end -= 1
    return -1


@piece
def _keep(found: np.ndarray, row: int, match: tuple[int, int], host: tuple[int, int], clock: tuple[int, int]) -> None:
    found[row, START], found[row, END] = match
    found[row, HOST], found[row, HOST + 1] = host
    found[row, CLOCK], found[row, CLOCK + 1] = clock


@piece
def _keep_event(found: np.ndarray, row: int, event: tuple[int, int], time: tuple[int, int]) -> None:
    found[row, EVENT], found[row, EVENT + 1] = event
    found[row, TIME], found[row, TIME + 1] = time


@compiled
def two_lines(data: np.ndarray, first: int, own: int, found: np.ndarray) -> int:
    """Find the matches that begin from `first` to before `own`, and return how many there are. `found` must have room for one
    match per five bytes."""
    at, row, stop = first, 0, len(data)
    while at < own:
        end = _line_end(data, at, stop)
        if end == stop:
            break
        host_end = _word_end(data, end + 1, stop)
        clock_end = _clock_end(data, host_end, stop)
        if clock_end < 0:
            at = end + 1
            continue
        _keep(found, row, (at, clock_end), (end + 1, host_end), (host_end + 1, clock_end))
        _keep_event(found, row, (at, end), (0, 0))
        at = clock_end
        row += 1
    return row


@compiled
def clock_first(data: np.ndarray, first: int, own: int, found: np.ndarray) -> int:
    """As `two_lines`."""
    at, row, stop = first, 0, len(data)
    while at < own:
        end = _line_end(data, at, stop)
        if end == stop:
            break
        last = end - int(end > at and data[end - 1] == _RETURN)
        if last > at and data[last - 1] == _CLOSE:
            space = at
            while space < last - 2 and not (data[space] == _SPACE and data[space + 1] == _OPEN):
                space += 1
            if space < last - 2:
                begin = space
                while begin > at and _word_end(data, begin - 1, begin) == begin:
                    begin -= 1
                if begin >= own:
                    break
                text_end = _line_end(data, end + 1, stop)
                _keep(found, row, (begin, text_end), (begin, space), (space + 1, last))
                _keep_event(found, row, (end + 1, text_end), (0, 0))
                at = text_end
                row += 1
                continue
        at = end + 1
    return row


@compiled
def one_line(data: np.ndarray, first: int, own: int, found: np.ndarray) -> int:
    """As `two_lines`."""
    at, row, stop, close = first, 0, len(data), -1
    while at < own:
        if at == 0 or data[at - 1] == _NEWLINE:
            space = _word_end(data, at, stop)
            if space > at and space + 1 < stop and data[space] == _SPACE and data[space + 1] == _OPEN:
                if close < space:
                    # Cached for the following lines, which may all search for the same one.
                    close = space
                    while close < stop and data[close] != _CLOSE:
                        close += 1
                if close + 1 < stop and data[close + 1] == _SPACE:
                    text_end = _line_end(data, close, stop)
                    _keep(found, row, (at, text_end), (at, space), (space + 1, close + 1))
                    _keep_event(found, row, (close + 2, text_end), (0, 0))
                    at = text_end
                    row += 1
                    continue
        at = _line_end(data, at, stop) + 1
    return row


@compiled
def timed(data: np.ndarray, first: int, own: int, found: np.ndarray) -> int:
    """As `two_lines`."""
    at, row, stop = first, 0, len(data)
    while at < own:
        end = _line_end(data, at, stop)
        if end == stop:
            break
        begin = at
        digits = _digits_end(data, begin, end)
        while begin < end and not (digits > begin and digits < end and data[digits] == _SPACE):
            begin = max(digits, begin + 1)
            digits = _digits_end(data, begin, end)
        host_end = _letters_end(data, end + 1, stop)
        clock_end = _clock_end(data, host_end, stop)
        if begin == end or host_end == end + 1 or clock_end < 0:
            at = end + 1
            continue
        if begin >= own:
            break
        _keep(found, row, (begin, clock_end), (end + 1, host_end), (host_end + 1, clock_end))
        _keep_event(found, row, (digits + 1, end), (begin, digits))
        at = clock_end
        row += 1
    return row


_SEARCHES = {
    PARSERS["two-lines"]: two_lines,
    PARSERS["clock-first"]: clock_first,
    PARSERS["one-line"]: one_line,
    PARSERS["timed"]: timed,
}
