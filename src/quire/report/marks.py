"""The marks of the diagram: events of a log, with consecutive messages combined into one mark with a count.

A live member sends and delivers thousands of messages in a row, between which nothing else happens to it. Drawn one by one
they would fill the diagram with a single line; drawn as one mark they leave room for what the diagram is about: who sent
what to whom, and what everybody delivered in which order.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from quire.pipeline.columns import Flags, Integers, kinds, numbers
from quire.trace.kinds import DELIVER, PACKET, RECEIVE, SEND

TOGETHER_MIN = 4
"""The fewest consecutive messages that become one mark; fewer are as easily read one by one."""
NAMES = ("group", "object", "op", "txn")
"""Columns of names; messages that differ in one of them are not drawn together."""

_OF_MESSAGES = (SEND, DELIVER, RECEIVE)


class Marks(msgspec.Struct, frozen=True):
    """One row per mark, with the values of its first event, and what the mark's other events add."""

    rows: pa.Table
    kind: npt.NDArray[np.int8]
    count: Integers
    last_pos: Integers
    """The position of the last event of each mark."""
    until_ns: Integers
    """The time of the last event of each mark."""
    payload_bytes: Integers
    """The payload bytes of all its messages together."""
    cut: Flags
    """Whether the mark may extend beyond what was read."""
    offsets_ns: list[list[int] | None]
    """The times of a mark's events relative to its first; None if all happened at the same time."""

    def __len__(self) -> int:
        return len(self.rows)

    def take(self, chosen: Integers) -> Marks:
        return Marks(
            self.rows.take(chosen),
            self.kind[chosen],
            self.count[chosen],
            self.last_pos[chosen],
            self.until_ns[chosen],
            self.payload_bytes[chosen],
            self.cut[chosen],
            [self.offsets_ns[index] for index in chosen.tolist()],
        )


def to_marks(rows: pa.Table, log_lengths: dict[int, int], alone: Collection[tuple[int, int]] = ()) -> Marks:
    """The marks of some consecutive rows of every log, given process by process. Packets are no marks, and separate none.

    `log_lengths` says how long each process's whole log is, and `alone` names events, by process and position, that must
    not disappear in a mark with others.
    """
    ends = _ends(rows)
    rows = rows.filter(pa.array(kinds(rows["kind"]) != PACKET))
    kind = kinds(rows["kind"])
    if not len(rows):
        none: Integers = np.empty(0, np.int64)
        return Marks(rows, kind, none, none, none, none, none.astype(np.bool_), [])
    first = np.flatnonzero(_begins(rows, kind, alone))
    count = np.diff(first, append=len(rows))
    last = first + count - 1
    time = numbers(rows, "time_ns")[0]
    return Marks(
        rows.take(first),
        kind[first],
        count,
        numbers(rows, "pos")[0][last],
        time[last],
        np.add.reduceat(numbers(rows, "payload_bytes")[0], first),
        (count > 1) & _at_an_edge(numbers(rows, "process")[0][first], ends, log_lengths),
        [_offsets(time[begin : end + 1]) for begin, end in zip(first.tolist(), last.tolist(), strict=True)],
    )


def _begins(rows: pa.Table, kind: npt.NDArray[np.int8], alone: Collection[tuple[int, int]]) -> Flags:
    """For each event whether a mark begins with it."""
    process, pos, origin, seq = (numbers(rows, name)[0] for name in ("process", "pos", "origin", "seq"))
    separate = np.ones(len(rows), np.bool_)
    separate[1:] = ~np.isin(kind[1:], _OF_MESSAGES) | (seq[1:] != seq[:-1] + 1)
    recipients = pc.list_value_length(rows["dests"].combine_chunks()).fill_null(-1).to_numpy(zero_copy_only=False)
    for values in (process, kind, origin, recipients, *(_codes(rows, name) for name in NAMES)):
        separate[1:] |= values[1:] != values[:-1]
    if alone:
        one = np.any([(process == member) & (pos == number) for member, number in alone], axis=0)
        separate |= one
        separate[1:] |= one[:-1]
    # Many messages at one instant are a batch made by the protocol; no other messages are combined with it.
    instant = separate | (np.diff(numbers(rows, "time_ns")[0], prepend=-1) != 0)
    run = _length_of_each(instant) >= TOGETHER_MIN
    separate[1:] |= instant[1:] & (run[1:] | run[:-1])
    return np.asarray(separate | (_length_of_each(separate) < TOGETHER_MIN))


def _length_of_each(begins: Flags) -> Integers:
    """For each event, the length of the section around it, from one beginning to the next."""
    lengths = np.diff(np.flatnonzero(begins), append=len(begins))
    return np.repeat(lengths, lengths)


def _codes(rows: pa.Table, name: str) -> Integers:
    column: Any = rows[name].combine_chunks()
    codes: Integers = column.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
    return codes


def _ends(rows: pa.Table) -> dict[int, tuple[int, int]]:
    """For each process the positions of the first and the last of these rows."""
    process, pos = (numbers(rows, name)[0] for name in ("process", "pos"))
    firsts, lasts = np.flatnonzero(np.diff(process, prepend=-1)), np.flatnonzero(np.diff(process, append=-1))
    return {int(process[one]): (int(pos[one]), int(pos[other])) for one, other in zip(firsts, lasts, strict=True)}


def _at_an_edge(process: Integers, ends: dict[int, tuple[int, int]], log_lengths: dict[int, int]) -> Flags:
    """Which marks are the first of a process whose log begins earlier, or the last of one whose log continues."""
    earlier = np.array([ends[each][0] > 0 for each in process.tolist()])
    later = np.array([ends[each][1] + 1 < log_lengths[each] for each in process.tolist()])
    opens, closes = np.diff(process, prepend=-1) != 0, np.diff(process, append=-1) != 0
    return np.asarray((opens & earlier) | (closes & later))


def _offsets(time: Integers) -> list[int] | None:
    return None if time[0] == time[-1] else (time - time[0]).tolist()
