"""Checks message orders of a live run with the audit's kernels, and translates between process numbers, indices and names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from quire.model.orders import Guarantee, implied_by
from quire.pipeline.auditing.followed_findings import Wrong
from quire.pipeline.auditing.following import COLUMNS, Follower
from quire.trace.kinds import DELIVER, SEND, VIEW
from quire.trace.parts.description import RunIdentity
from quire.trace.records import ADDRESS, COUNT, FIRST, KIND, LAMPORT, ORIGIN
from quire.trace.views import VIEW_BITS, ViewEvent
from quire.watch.followed import Judged
from quire.watch.updates import ProcessUpdate

_BREACHES = (
    "which names another sender",
    "which was sent again",
    "which it had delivered before",
    "which was not for it",
    "which nobody sent, or which was delivered before",
)


class FollowedOrders:
    def __init__(self, identity: RunIdentity, judged: Sequence[Guarantee], names: Mapping[int, str]) -> None:
        self._judged = judged
        self._views = identity.views
        total = Guarantee.TOTAL in judged and Guarantee.TOTAL in implied_by(identity.promises)
        self._follower = Follower(views=identity.views, total=total)
        self._names = names
        self._indices: dict[int, int] = {}
        self._addresses: dict[tuple[int, ...], int] = {}
        self._in_view: dict[int, tuple[int, str]] = {}

    def add(self, process: int) -> None:
        if process not in self._indices:
            self._indices[process] = self._follower.add_process()

    def gone(self, process: int) -> None:
        self._follower.gone(self._indices[process])

    def awaited(self, process: int) -> None:
        self._follower.awaited(self._indices[process])

    def take(self, heard: ProcessUpdate, began: int) -> None:
        me = self._indices[heard.process]
        view, life = self._in_view.get(heard.process, (-1, ""))
        rows = []
        for record in heard.records.tolist():
            kind = record[KIND]
            if kind == VIEW and heard.names.addresses[record[ADDRESS]].op == ViewEvent.INSTALL:
                incarnation = heard.names.addresses[record[ADDRESS]].txn or ""
                if view >= 0 and life == incarnation:
                    self._follower.survived(me, view)
                view, life = record[FIRST], incarnation
                rows.append((VIEW, -1, 0, 1, record[LAMPORT], -1, view))
            elif kind in (SEND, DELIVER) and record[LAMPORT] >= began and record[ORIGIN] in self._indices:
                dests = self._address(heard.names.addresses[record[ADDRESS]].dests) if kind == SEND else -1
                in_view = view if self._views else -1
                rows.append(
                    (kind, self._indices[record[ORIGIN]], record[FIRST], record[COUNT], record[LAMPORT], dests, in_view)
                )
        self._in_view[heard.process] = view, life
        self._follower.take(me, np.array(rows, np.int64).reshape(-1, COLUMNS), heard.reached)

    def judge(self, judged: Judged) -> None:
        while self._follower.advance():
            pass
        found = self._follower.found
        judged.why = judged.why or self._follower.why
        judged.messages, judged.deliveries = found.messages, found.deliveries
        for name in self._judged:
            tally = getattr(found, name.value, None)
            if tally is not None and tally.first is not None:
                judged.violated[name] = tally.count, self._explain(name, tally.first)

    def oldest_waiting(self) -> int | None:
        return self._follower.oldest_waiting()

    def _address(self, dests: tuple[int, ...] | None) -> int:
        if dests is None:
            return -1
        known = tuple(sorted(self._indices[each] for each in dests if each in self._indices))
        if known not in self._addresses:
            self._addresses[known] = self._follower.address(known)
        return self._addresses[known]

    def _explain(self, guarantee: Guarantee, wrong: Wrong) -> str:
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
    """Compile or load the kernels in advance, by judging a minimal run."""
    follower = Follower(views=False, total=True)
    one, other = follower.add_process(), follower.add_process()
    everybody = follower.address((one, other))
    follower.take(one, np.array([(SEND, one, 0, 1, 1, everybody, -1), (DELIVER, one, 0, 1, 2, -1, -1)], np.int64), 2)
    follower.take(other, np.array([(DELIVER, one, 0, 1, 2, -1, -1)], np.int64), 2)
    follower.advance()
