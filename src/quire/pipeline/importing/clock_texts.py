"""Fast path for vector clocks: a compiled loop reads JSON bytes into host codes and counts.

Unusual clocks (a host name with escapes, a count with a sign, a repeated entry) are left to `values.parse_clock`, which also
reports what is wrong with a clock.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from quire.pipeline.compiled import compiled
from quire.pipeline.importing.json_bytes import NAMES_MAX, SLOTS, number_name, skip_space
from quire.pipeline.importing.records import as_lists, is_name

_QUOTE, _BACKSLASH, _COMMA, _COLON, _OPEN, _CLOSE, _ZERO = 34, 92, 44, 58, 123, 125, 48
_COUNT_DIGITS = 15
"""Any number with this many digits is below 2**53."""


class Clocks(NamedTuple):
    """The entries of several clocks, concatenated."""

    names: list[str]
    host: np.ndarray
    """The code of each event's own host; -1 if it is not a valid name."""
    lengths: np.ndarray
    """The number of entries of each clock; -1 if it must be read by the slow path."""
    codes: np.ndarray
    """The host code of each entry."""
    counts: np.ndarray

    def columns(self) -> dict[str, Any]:
        """The clocks as columns of records."""
        lengths = np.maximum(self.lengths, 0)
        return {"clock_hosts": as_lists(lengths, self.codes), "clock_counts": as_lists(lengths, self.counts)}


def read_clocks(data: np.ndarray, clock: np.ndarray, host: np.ndarray | None = None) -> Clocks:
    """Read the clocks and, if given, the hosts of events from their byte ranges (two columns: begin and end)."""
    host = np.empty((0, 2), np.int64) if host is None else host
    room = int((clock[:, 1] - clock[:, 0]).sum()) // 4 + 1
    codes, counts = np.empty(room, np.int32), np.empty(room, np.int64)
    own, lengths = np.full(len(clock), -1, np.int32), np.empty(len(clock), np.int32)
    names = np.empty((NAMES_MAX, 2), np.int64)
    entries, known = _read(data, host, clock, own, lengths, codes, counts, names)
    texts = [_decode(data[begin:end]) for begin, end in names[:known].tolist()]
    bad = np.array([not is_name(text) for text in texts], np.bool_)
    clocks = Clocks(texts, own, lengths, codes[:entries], counts[:entries])
    return _without(clocks, bad) if bad.any() else clocks


def _decode(name: np.ndarray) -> str:
    try:
        return name.tobytes().decode()
    except UnicodeDecodeError:
        return ""  # Not a valid name.


def _without(clocks: Clocks, bad: np.ndarray) -> Clocks:
    """Mark clocks and hosts with invalid names, so that the slow path reads them."""
    row = np.repeat(np.arange(len(clocks.lengths)), np.maximum(clocks.lengths, 0))
    odd = clocks.lengths < 0
    odd[row[bad[clocks.codes]]] = True
    kept = ~odd[row]
    host = np.where((clocks.host >= 0) & bad[clocks.host], -1, clocks.host)
    return Clocks(clocks.names, host, np.where(odd, -1, clocks.lengths), clocks.codes[kept], clocks.counts[kept])


@compiled
def _read(
    data: np.ndarray, host: np.ndarray, clock: np.ndarray, own: np.ndarray, lengths: np.ndarray, codes: np.ndarray,
    counts: np.ndarray, names: np.ndarray,
) -> tuple[int, int]:  # fmt: skip
    """Read the clocks into the arrays, and return how many entries and names there are."""
    slots = np.full(SLOTS, -1, np.int32)
    last = np.full(NAMES_MAX, -1, np.int64)
    known, entries = 0, 0
    for row in range(len(clock)):
        if len(host) > 0:
            code = number_name(data, host[row, 0], host[row, 1], slots, names, known)
            known = min(known + (code == known), NAMES_MAX)
            own[row] = code if code < NAMES_MAX else -1
        lengths[row] = -1
        at, end = clock[row, 0], clock[row, 1]
        if at >= end or data[at] != _OPEN:
            continue
        begun = entries
        at = skip_space(data, at + 1, end)
        whole = at + 1 == end and data[at] == _CLOSE
        while not whole and at < end and data[at] == _QUOTE:
            at += 1
            begin = at
            while at < end and data[at] != _QUOTE and data[at] != _BACKSLASH and data[at] >= 32:
                at += 1
            if at >= end or data[at] != _QUOTE:
                break
            code = number_name(data, begin, at, slots, names, known)
            known = min(known + (code == known), NAMES_MAX)
            at = skip_space(data, at + 1, end)
            if code == NAMES_MAX or last[code] == row or at >= end or data[at] != _COLON:
                break
            last[code] = row
            at = skip_space(data, at + 1, end)
            begin, count = at, 0
            while at < end and 48 <= data[at] <= 57 and at - begin <= _COUNT_DIGITS:
                count = count * 10 + int(data[at]) - _ZERO
                at += 1
            if at == begin or at - begin > _COUNT_DIGITS or (data[begin] == _ZERO and at - begin > 1):
                break
            if count > 0:
                codes[entries], counts[entries] = code, count
                entries += 1
            at = skip_space(data, at, end)
            if at < end and data[at] == _COMMA:
                at = skip_space(data, at + 1, end)
            else:
                whole = at + 1 == end and data[at] == _CLOSE
                break
        if whole:
            lengths[row] = entries - begun
        else:
            entries = begun
    return entries, known
