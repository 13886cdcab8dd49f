"""Vector clocks as bytes of JSON, read by a compiled loop into numbers of hosts and counts.

What is not written as nearly all clocks are (a host that needs escapes, a count with a sign, an entry twice) is left to
`values.parse_clock`, which also says what is wrong with a clock.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from quire.pipeline.compiled import compiled
from quire.pipeline.importing.json_bytes import NAMES_MAX, SLOTS, number_name, skip_space
from quire.pipeline.importing.records import as_lists, is_name

_QUOTE, _BACKSLASH, _COMMA, _COLON, _OPEN, _CLOSE, _ZERO = 34, 92, 44, 58, 123, 125, 48
_COUNT_DIGITS = 15
"""So many are less than 2**53 whatever they are."""


class Clocks(NamedTuple):
    """Clocks one after the other."""

    names: list[str]
    host: np.ndarray
    """The number of the name of each event's own host; -1 where it is none."""
    lengths: np.ndarray
    """Of the entries of each clock; -1 where it must be read otherwise."""
    codes: np.ndarray
    """The number of the name of each entry."""
    counts: np.ndarray

    def columns(self) -> dict[str, Any]:
        """As records have them."""
        lengths = np.maximum(self.lengths, 0)
        return {"clock_hosts": as_lists(lengths, self.codes), "clock_counts": as_lists(lengths, self.counts)}


def read_clocks(data: np.ndarray, clock: np.ndarray, host: np.ndarray | None = None) -> Clocks:
    """The clocks of events, and their hosts, if these are wanted: where in the data they begin and end, two columns each."""
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
        return ""  # Which is no name.


def _without(clocks: Clocks, bad: np.ndarray) -> Clocks:
    """Clocks and hosts with a name that is none are left to others."""
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
    """How many entries and names there are."""
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
