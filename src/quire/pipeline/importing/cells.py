"""Fast path for CSV and JSON lines: finds the cells in a file's bytes with compiled loops, without creating objects.

Only the syntax that nearly all files use is handled here. A row with anything else is marked `odd` and left to the complete
readers; if not even the rows can be separated, everything is left to them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from quire.pipeline.compiled import compiled, piece
from quire.pipeline.importing.json_bytes import NAMES_MAX, SLOTS, number_name, skip_space

NUMBER, TEXT, CLOCK, NULL = 0, 1, 2, 3
"""The types of a cell. A clock is an object whose values are whole numbers."""

SHAPES_MAX = 64
KEYS_MAX = 64

_QUOTE, _BACKSLASH, _COMMA, _COLON, _OPEN, _CLOSE, _MINUS, _ZERO, _NEWLINE, _RETURN = 34, 92, 44, 58, 123, 125, 45, 48, 10, 13
_FIELD_MAX = 100_000
"""The field size limit of the complete CSV reader, which reports fields beyond it."""


class CsvRows(NamedTuple):
    """CSV records: where each begins and ends, how many lines precede it, whether it is odd, and its cells, with the number of
    doubled quotes in each."""

    row: np.ndarray
    lines: np.ndarray
    odd: np.ndarray
    cells: np.ndarray
    doubled: np.ndarray


class JsonRows(NamedTuple):
    """Non-empty JSON lines: where each begins and ends, how many lines precede it, its shape (-1 if it is odd), and where its
    cells begin; the type of each cell; and for each shape the names of its cells, as byte ranges."""

    row: np.ndarray
    lines: np.ndarray
    shape: np.ndarray
    first: np.ndarray
    cells: np.ndarray
    holds: np.ndarray
    shapes: list[np.ndarray]


def csv_rows(data: np.ndarray, separator: str, columns: int) -> CsvRows | None:
    """The records; None if quotes or line ends do not follow RFC 4180."""
    most = np.count_nonzero(data == _NEWLINE) + 1
    row, lines, odd = np.empty((most, 2), np.int64), np.empty(most, np.int64), np.zeros(most, np.bool_)
    cells, doubled = np.zeros((most, columns, 2), np.int64), np.zeros((most, columns), np.int32)
    rows = _split_csv(data, ord(separator), columns, row, lines, odd, cells, doubled)
    return None if rows < 0 else CsvRows(row[:rows], lines[:rows], odd[:rows], cells[:rows], doubled[:rows])


def json_rows(data: np.ndarray) -> JsonRows:
    most = np.count_nonzero(data == _NEWLINE) + 1
    room = np.count_nonzero(data == _COLON) + 1
    row, lines, first = np.empty((most, 2), np.int64), np.empty(most, np.int64), np.empty(most, np.int64)
    shape, cells, holds = np.empty(most, np.int32), np.empty((room, 2), np.int64), np.empty(room, np.int8)
    names, shapes = np.empty((NAMES_MAX, 2), np.int64), np.empty((SHAPES_MAX, KEYS_MAX), np.int32)
    sizes = np.zeros(SHAPES_MAX, np.int64)
    rows, found, known = _split_json(data, row, lines, shape, first, cells, holds, names, shapes, sizes)
    keys = [names[shapes[number, : sizes[number]]] for number in range(known)]
    return JsonRows(row[:rows], lines[:rows], shape[:rows], first[:rows], cells[:found], holds[:found], keys)


@compiled
def record_starts(data: np.ndarray, own: int, inside: bool) -> tuple[int, int]:
    """Where the first CSV record begins, and where the first one after `own` bytes begins; the end of the data if none does.
    `inside`: whether the data begins inside quotes."""
    first = len(data) if inside else 0
    if own == 0 and not inside:
        return 0, 0
    for at in range(len(data)):
        if data[at] == _QUOTE:
            inside = not inside
        elif data[at] == _NEWLINE and not inside:
            first = min(first, at + 1)
            if at + 1 >= own:
                return first, at + 1
    return first, len(data)


@compiled
def _split_csv(
    data: np.ndarray, separator: int, columns: int, row: np.ndarray, lines: np.ndarray, odd: np.ndarray, cells: np.ndarray,
    doubled: np.ndarray,
) -> int:  # fmt: skip
    """Split the data into records and return how many there are; -1 if they cannot be separated here."""
    at, end, passed, rows = 0, len(data), 0, 0
    while at < end:
        if data[at] == _NEWLINE or (data[at] == _RETURN and at + 1 < end and data[at + 1] == _NEWLINE):
            at += 1 + (data[at] == _RETURN)
            passed += 1
            continue
        row[rows, 0], lines[rows] = at, passed
        cell, quotes = 0, 0
        while True:
            begin = at
            if at < end and data[at] == _QUOTE:
                begin, quotes = at + 1, 0
                at += 1
                while True:
                    while at < end and data[at] != _QUOTE:
                        if data[at] == _NEWLINE:
                            passed += 1
                        elif data[at] == 0 or (data[at] == _RETURN and (at + 1 == end or data[at + 1] != _NEWLINE)):
                            return -1
                        at += 1
                    if at == end:
                        return -1
                    if at + 1 < end and data[at + 1] == _QUOTE:
                        quotes += 1
                        at += 2
                        continue
                    break
                last = at
                at += 1
            else:
                quotes = 0
                while at < end and data[at] != separator and data[at] != _NEWLINE and data[at] != _RETURN:
                    if data[at] == _QUOTE or data[at] == 0:
                        return -1
                    at += 1
                last = at
            if last - begin > _FIELD_MAX:
                return -1
            if cell < columns:
                cells[rows, cell, 0], cells[rows, cell, 1], doubled[rows, cell] = begin, last, quotes
            cell += 1
            if at < end and data[at] == separator:
                at += 1
                continue
            break
        row[rows, 1] = at
        if at < end:
            if data[at] == _RETURN and at + 1 < end and data[at + 1] == _NEWLINE:
                at += 1
            if data[at] != _NEWLINE:
                return -1
            at += 1
            passed += 1
        odd[rows] = cell != columns
        rows += 1
    return rows


@piece
def _text_end(data: np.ndarray, at: int, end: int) -> int:
    """Where the text that begins here ends, before its quote; -1 if it contains escapes or invalid characters."""
    while at < end and data[at] != _QUOTE:
        if data[at] == _BACKSLASH or data[at] < 32:
            return -1
        at += 1
    return at if at < end else -1


@piece
def _number_end(data: np.ndarray, at: int, end: int) -> int:
    """Where the whole number that begins here ends; -1 if there is none, or it has a fraction, or too many digits."""
    begin = at + int(data[at] == _MINUS)
    last = begin
    while last < end and 48 <= data[last] <= 57:
        last += 1
    if last == begin or last - begin > 18 or (data[begin] == _ZERO and (last - begin > 1 or begin > at)):
        return -1
    if last < end and (data[last] == 46 or data[last] == 69 or data[last] == 101):
        return -1
    return last


@piece
def _clock_end(data: np.ndarray, at: int, end: int) -> int:
    """Where the clock that begins here ends; -1 if it is not a clock."""
    at = skip_space(data, at + 1, end)
    if at < end and data[at] == _CLOSE:
        return at + 1
    while at < end and data[at] == _QUOTE:
        at = _text_end(data, at + 1, end)
        if at < 0:
            return -1
        at = skip_space(data, at + 1, end)
        if at >= end or data[at] != _COLON:
            return -1
        at = skip_space(data, at + 1, end)
        if at >= end:
            return -1
        at = _number_end(data, at, end)
        if at < 0:
            return -1
        at = skip_space(data, at, end)
        if at < end and data[at] == _CLOSE:
            return at + 1
        if at >= end or data[at] != _COMMA:
            return -1
        at = skip_space(data, at + 1, end)
    return -1


@piece
def _cell(data: np.ndarray, at: int, end: int) -> tuple[int, int, int, int]:
    """The cell that begins here: its type (-1 if it is odd), where it begins and ends, and where the rest begins."""
    if data[at] == _QUOTE:
        last = _text_end(data, at + 1, end)
        return (TEXT, at + 1, last, last + 1) if last >= 0 else (-1, 0, 0, 0)
    if data[at] == _OPEN:
        last = _clock_end(data, at, end)
        return (CLOCK, at, last, last) if last >= 0 else (-1, 0, 0, 0)
    if end - at >= 4 and data[at] == 110 and data[at + 1] == 117 and data[at + 2] == 108 and data[at + 3] == 108:
        return NULL, at, at, at + 4
    last = _number_end(data, at, end)
    return (NUMBER, at, last, last) if last >= 0 else (-1, 0, 0, 0)


@compiled
def _split_json(
    data: np.ndarray, row: np.ndarray, lines: np.ndarray, shape: np.ndarray, first: np.ndarray, cells: np.ndarray,
    holds: np.ndarray, names: np.ndarray, shapes: np.ndarray, sizes: np.ndarray,
) -> tuple[int, int, int]:  # fmt: skip
    """How many rows, cells and shapes there are."""
    slots, keys = np.full(SLOTS, -1, np.int32), np.empty(KEYS_MAX, np.int32)
    begin, passed, rows, found, known, names_known, latest = 0, 0, 0, 0, 0, 0, 0
    while begin < len(data):
        end = begin
        while end < len(data) and data[end] != _NEWLINE:
            end += 1
        at = skip_space(data, begin, end)
        if at == end:
            begin, passed = end + 1, passed + 1
            continue
        row[rows, 0], row[rows, 1], lines[rows], first[rows], shape[rows] = begin, end, passed, found, -1
        count, whole = 0, False
        if data[at] == _OPEN:
            at = skip_space(data, at + 1, end)
            while at < end and data[at] == _QUOTE and count < KEYS_MAX:
                key_end = _text_end(data, at + 1, end)
                if key_end < 0:
                    break
                key = number_name(data, at + 1, key_end, slots, names, names_known)
                names_known = min(names_known + (key == names_known), NAMES_MAX)
                if key == NAMES_MAX:
                    break
                at = skip_space(data, key_end + 1, end)
                if at >= end or data[at] != _COLON:
                    break
                at = skip_space(data, at + 1, end)
                if at >= end:
                    break
                kind, cell_begin, cell_end, after = _cell(data, at, end)
                if kind < 0:
                    break
                keys[count], cells[found + count, 0], cells[found + count, 1] = key, cell_begin, cell_end
                holds[found + count] = kind
                count += 1
                at = skip_space(data, after, end)
                if at < end and data[at] == _COMMA:
                    at = skip_space(data, at + 1, end)
                    continue
                whole = at < end and data[at] == _CLOSE and skip_space(data, at + 1, end) == end
                break
        if whole:
            # Nearly always the shape of the previous row.
            for step in range(known):
                candidate = (latest + step) % known
                if sizes[candidate] == count:
                    same = 0
                    while same < count and shapes[candidate, same] == keys[same]:
                        same += 1
                    if same == count:
                        shape[rows] = latest = candidate
                        break
            if shape[rows] < 0 and known < SHAPES_MAX:
                shapes[known, :count] = keys[:count]
                sizes[known] = count
                shape[rows] = latest = known
                known += 1
            if shape[rows] >= 0:
                found += count
        rows += 1
        begin, passed = end + 1, passed + 1
    return rows, found, known
