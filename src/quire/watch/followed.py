"""Records of processes, as they are heard, for the follower of the audit, which knows processes by indices and no names.

Processes are heard one after the other, some from their start and some from later on. So judging begins with a logical time
that all have come to: what was sent before it is not judged, and whatever is sent from then on is seen everywhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from quire.model.orders import Guarantee, implied_by
from quire.trace.kinds import DELIVER, SEND, VIEW
from quire.trace.log import Names
from quire.trace.parts.description import RunIdentity
from quire.trace.records import ADDRESS, COUNT, FIRST, KIND, LAMPORT, ORIGIN, TIME_NS
from quire.trace.tables import Integers
from quire.trace.views import VIEW_BITS, Happening

if TYPE_CHECKING:
    from quire.pipeline.auditing.followed_findings import Found, Wrong

_TIMES_MAX = 4096
_BREACHES = (
    "which names another sender",
    "which was sent again",
    "which it had delivered before",
    "which was not for it",
    "which nobody sent, or which was delivered before",
)


class Heard(NamedTuple):
    """What a process did next."""

    process: int
    incarnation: int
    records: Integers
    names: Names
    reached: int
    """Everything later has a greater logical time."""
    from_the_start: bool


class Followed:
    def __init__(self, identity: RunIdentity, names: Mapping[int, str]) -> None:
        # The kernels come with the pipeline, which need not be installed.
        from quire.pipeline.auditing.following import Follower

        self._views = identity.views
        self._follower = Follower(views=identity.views, total=Guarantee.TOTAL in implied_by(identity.promises))
        self._names = names
        self._waiting: list[Heard] | None = []
        """What was heard before it is known where to begin."""
        self._began = 0
        self._indices: dict[int, int] = {}
        self._incarnations: dict[int, int] = {}
        self._gone: set[int] = set()
        self._addresses: dict[tuple[int, ...], int] = {}
        self._in_view: dict[int, tuple[int, str]] = {}
        self._times: list[tuple[int, int]] = []
        """When what had which logical time happened, to say how far judging lags."""

    @property
    def why(self) -> str:
        return self._follower.why or ("" if self._waiting is None else "waiting for all members to be heard")

    def was_gone(self, heard: Heard) -> bool:
        """Whether this process was not waited for any more, and is the same as before all the same."""
        return heard.process in self._gone and self._incarnations.get(heard.process) == heard.incarnation

    def gone(self, process: int) -> None:
        self._gone.add(process)
        if process in self._indices:
            self._follower.gone(self._indices[process])

    def take(self, heard: Heard, present: frozenset[int] | None) -> None:
        """`present`: those who are heard now; None: that is not known yet. Judging begins when each of them was heard."""
        if self._waiting is None:
            self._take(heard)
            return
        self._waiting.append(heard)
        if present is not None and present <= {each.process for each in self._waiting}:
            waiting, self._waiting = self._waiting, None
            for each in waiting:
                self._index(each.process)
            late = [each for each in waiting if not each.from_the_start and each.process not in self._incarnations]
            self._began = max(
                (int(each.records[0, LAMPORT]) if len(each.records) else each.reached for each in late), default=0
            )
            for each in waiting:
                self._take(each)

    def judge(self) -> Found:
        while self._follower.advance():
            pass
        return self._follower.found

    def lag_s(self) -> float:
        """How long before the last that was heard the first happened that is not judged."""
        waiting = self._follower.oldest_waiting()
        if waiting is None or not self._times:
            return 0.0
        then = next((time_ns for lamport, time_ns in reversed(self._times) if lamport <= waiting), self._times[0][1])
        return max(0.0, (max(time_ns for _, time_ns in self._times[-64:]) - then) / 1e9)

    def _index(self, process: int) -> int:
        if process not in self._indices:
            self._indices[process] = self._follower.add_process()
        return self._indices[process]

    def _take(self, heard: Heard) -> None:
        from quire.pipeline.auditing.following import COLUMNS

        me = self._index(heard.process)
        self._gone.discard(heard.process)
        self._incarnations[heard.process] = heard.incarnation
        view, life = self._in_view.get(heard.process, (-1, ""))
        rows = []
        for record in heard.records.tolist():
            kind = record[KIND]
            if kind == VIEW and heard.names.addresses[record[ADDRESS]].op == Happening.INSTALL:
                incarnation = heard.names.addresses[record[ADDRESS]].txn or ""
                if view >= 0 and life == incarnation:
                    self._follower.survived(me, view)
                view, life = record[FIRST], incarnation
                rows.append((VIEW, -1, 0, 1, record[LAMPORT], -1, view))
            elif kind in (SEND, DELIVER) and record[LAMPORT] >= self._began and record[ORIGIN] in self._indices:
                dests = self._address(heard.names.addresses[record[ADDRESS]].dests) if kind == SEND else -1
                in_view = view if self._views else -1
                rows.append(
                    (kind, self._indices[record[ORIGIN]], record[FIRST], record[COUNT], record[LAMPORT], dests, in_view)
                )
        self._in_view[heard.process] = view, life
        if len(heard.records):
            self._times.append((int(heard.records[-1, LAMPORT]), int(heard.records[-1, TIME_NS])))
            del self._times[:-_TIMES_MAX]
        self._follower.take(me, np.array(rows, np.int64).reshape(-1, COLUMNS), heard.reached)

    def _address(self, dests: tuple[int, ...] | None) -> int:
        if dests is None:
            return -1
        known = tuple(sorted(self._indices[each] for each in dests if each in self._indices))
        if known not in self._addresses:
            self._addresses[known] = self._follower.address(known)
        return self._addresses[known]

    def explain(self, guarantee: Guarantee, wrong: Wrong) -> str:
        this = self._message(wrong.origin, wrong.seq)
        who = self._name(wrong.process)
        if guarantee is Guarantee.TOTAL and wrong.missing is not None:
            return f"{who} delivered {self._message(*wrong.missing)} before {this}, and {self._name(wrong.other)} after it"
        if guarantee is Guarantee.AGREEMENT:
            return f"{who} went on without {this}, which {self._name(wrong.other)} has"
        if wrong.missing is not None:
            return f"{who} delivered {this} before {self._message(*wrong.missing)}, which had to come first"
        return f"{who} delivered {this}, {_BREACHES[wrong.kind]}"

    def _name(self, index: int) -> str:
        number = next((number for number, each in self._indices.items() if each == index), index)
        return self._names.get(number, str(number))

    def _message(self, origin: int, seq: int) -> str:
        if not self._views:
            return f"{self._name(origin)}:{seq}"
        return f"{self._name(origin)}:{seq & ((1 << VIEW_BITS) - 1)} of view {seq >> VIEW_BITS}"


def prepare() -> None:
    """Have the kernels compiled, or loaded, by judging the smallest run that there is."""
    from quire.pipeline.auditing.following import Follower

    follower = Follower(views=False, total=True)
    one, other = follower.add_process(), follower.add_process()
    everybody = follower.address((one, other))
    follower.take(one, np.array([(SEND, one, 0, 1, 1, everybody, -1), (DELIVER, one, 0, 1, 2, -1, -1)], np.int64), 2)
    follower.take(other, np.array([(DELIVER, one, 0, 1, 2, -1, -1)], np.int64), 2)
    follower.advance()
