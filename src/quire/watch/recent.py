"""The last events of a process's trace, for the diagram, and the latency of the last messages.

A range of consecutive messages is one event. For a busy process, the last few hundred events span some milliseconds, and that
is what the diagram then shows.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from operator import itemgetter

import msgspec
import numpy as np

from quire.trace.kinds import DELIVER, PACKET, SEND, VIEW
from quire.trace.log import Names
from quire.trace.records import ADDRESS, COUNT, FIRST, KIND, LAMPORT, ORIGIN, SIZE, TIME_NS
from quire.trace.tables import Integers
from quire.trace.views import VIEW_BITS, ViewEvent, parse_operation_word

MARKS_MAX = 160
"""The most events of one process that are kept for the diagram."""
_SENDS_MAX = 512
_MEASURED_MAX = 200
"""How many deliveries of each look are measured."""
_OFFSETS_MAX = 256


class Mark(msgspec.Struct, frozen=True):
    """An event as it is drawn."""

    kind: int
    origin: int
    seq: int
    count: int
    pos: int
    time_ns: int
    lamport: int
    size: int
    incident: tuple[str, int, tuple[int, ...], str] | None = None
    """What happened, in which view, which other processes are concerned, and the incarnation."""


class Sends:
    """When each process sent its last messages; and, if views restart the numbering, the application's numbers of them."""

    def __init__(self) -> None:
        self._sent: dict[int, deque[tuple[int, int, int]]] = {}
        """By origin, ranges of its messages, as the first and the number after the last, and when they were sent."""
        self._offsets: dict[tuple[int, int], int] = {}
        self._learned: dict[int, tuple[int, str | None]] = {}
        """By origin, the view and the word that were learned last; it is nearly always the same."""

    def sent(self, origin: int, first: int, count: int, time_ns: int) -> None:
        self._sent.setdefault(origin, deque(maxlen=_SENDS_MAX)).append((first, first + count, time_ns))

    def when(self, origin: int, seq: int) -> int | None:
        """When this message was sent, if that is known."""
        sent = self._sent.get(origin)
        if not sent or seq < sent[0][0]:
            return None
        _, end, time_ns = sent[bisect_right(sent, seq, key=itemgetter(0)) - 1]
        return time_ns if seq < end else None

    def may_come(self, origin: int, seq: int) -> bool:
        """Whether the sending of this message may become known later."""
        sent = self._sent.get(origin)
        return not sent or seq >= sent[-1][1]

    def learn_offset(self, origin: int, seq: int, word: str | None) -> None:
        """Learn the offset from a trace's word, which says which operation of a session the message carries."""
        view = seq >> VIEW_BITS
        if self._learned.get(origin) == (view, word):
            return
        self._learned[origin] = view, word
        operation = None if word is None else parse_operation_word(word)
        if operation is not None:
            if len(self._offsets) >= _OFFSETS_MAX:
                del self._offsets[next(iter(self._offsets))]
            self._offsets[origin, view] = operation.number - 1

    def number(self, origin: int, seq: int) -> int:
        """The application's number for the message."""
        offset = self._offsets.get((origin, seq >> VIEW_BITS))
        return seq & ((1 << VIEW_BITS) - 1) if offset is None else seq + offset


class Recent:
    """The last events and latencies of one process."""

    def __init__(self) -> None:
        self.marks: deque[Mark] = deque(maxlen=MARKS_MAX)
        self.latencies_ns: dict[int, deque[int]] = {}
        """By origin, the latencies of its last messages to this process."""
        self.delivered_at_ns = 0
        """The time of the last delivery."""
        self.installs: deque[tuple[int, tuple[int, ...], int, int]] = deque(maxlen=64)
        """Installed views: number, members, time, and the time of the last delivery before it."""
        self.happened: deque[tuple[ViewEvent, int, int]] = deque(maxlen=64)
        """Other events of the process: what, in which view, and when."""
        self.pauses_ns: dict[int, int] = {}
        """By view, how long nothing was delivered around its beginning."""
        self._unmeasured: deque[tuple[int, int, int]] = deque(maxlen=_MEASURED_MAX)
        """Deliveries that are known before the sending is, because the sender is heard from later: origin, number, and time."""

    def take(self, records: Integers, rows: int, names: Names, sends: Sends) -> None:
        """Add consecutive records; `rows` is the number of rows before them."""
        skipped = max(0, len(records) - _SENDS_MAX)
        if (records[:skipped, KIND] == VIEW).any():
            skipped = 0
        self._skip(records[:skipped], names, sends)
        self._measure_later_ones(sends)
        pos, measured = rows + int(records[:skipped, COUNT].sum()), 0
        records = records[skipped:]
        if skipped:
            self.marks.clear()  # They would seem to be followed by what is left.
        drawn = np.flatnonzero(records[:, KIND] != PACKET)
        tail = int(drawn[-MARKS_MAX]) if len(drawn) > MARKS_MAX else 0
        for index, record in enumerate(records.tolist()):
            kind = record[KIND]
            if kind == SEND:
                sends.learn_offset(record[ORIGIN], record[FIRST], names.addresses[record[ADDRESS]].txn)
                sends.sent(record[ORIGIN], record[FIRST], record[COUNT], record[TIME_NS])
            elif kind == DELIVER:
                if measured < _MEASURED_MAX:
                    measured += 1
                    self._measure(record[ORIGIN], record[FIRST], record[TIME_NS], sends)
                self._delivered(record[TIME_NS])
            incident = self._happened(record, names) if kind == VIEW else None
            if kind != PACKET and index >= tail:
                self.marks.append(
                    Mark(
                        kind, record[ORIGIN], record[FIRST], record[COUNT], pos, record[TIME_NS], record[LAMPORT],
                        record[SIZE] * record[COUNT], incident,
                    )
                )  # fmt: skip
            pos += record[COUNT]

    def _skip(self, records: Integers, names: Names, sends: Sends) -> None:
        """Learn from records of which later ones leave no more than their ends."""
        sent, delivered = (np.flatnonzero(records[:, KIND] == kind) for kind in (SEND, DELIVER))
        if len(sent):
            last = records[sent[-1]].tolist()
            sends.learn_offset(last[ORIGIN], last[FIRST], names.addresses[last[ADDRESS]].txn)
        for at in delivered[[0, -1]] if len(delivered) else ():
            self._delivered(int(records[at, TIME_NS]))

    def _measure(self, origin: int, seq: int, time_ns: int, sends: Sends) -> None:
        sent_ns = sends.when(origin, seq)
        if sent_ns is None and sends.may_come(origin, seq):
            self._unmeasured.append((origin, seq, time_ns))
        elif sent_ns is not None and time_ns >= sent_ns:
            self.latencies_ns.setdefault(origin, deque(maxlen=256)).append(time_ns - sent_ns)

    def _measure_later_ones(self, sends: Sends) -> None:
        for _ in range(len(self._unmeasured)):
            self._measure(*self._unmeasured.popleft(), sends)

    def _delivered(self, time_ns: int) -> None:
        if self.installs:
            number, _, _, before = self.installs[-1]
            if number not in self.pauses_ns and before:
                self.pauses_ns[number] = time_ns - before
                while len(self.pauses_ns) > 64:
                    del self.pauses_ns[next(iter(self.pauses_ns))]
        self.delivered_at_ns = time_ns

    def _happened(self, record: list[int], names: Names) -> tuple[str, int, tuple[int, ...], str] | None:
        address = names.addresses[record[ADDRESS]]
        if address.op not in set(ViewEvent):
            return None
        if address.op == ViewEvent.INSTALL:
            self.installs.append((record[FIRST], address.dests or (), record[TIME_NS], self.delivered_at_ns))
        else:
            self.happened.append((ViewEvent(address.op), record[FIRST], record[TIME_NS]))
        return str(address.op), record[FIRST], address.dests or (), address.txn or ""

    def latency_s(self) -> float | None:
        """The median latency of the last messages."""
        every = sorted(each for latencies in self.latencies_ns.values() for each in latencies)
        return every[len(every) // 2] / 1e9 if every else None
