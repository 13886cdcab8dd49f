"""Checks message orders of a live run with the audit's kernels, and translates between process numbers, indices and names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from quire.model.orders import Guarantee, implied_by
from quire.pipeline.auditing.followed_findings import Wrong
from quire.pipeline.auditing.following import Follower
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
        me, records = self._indices[heard.process], heard.records
        kind, origin = records[:, KIND], records[:, ORIGIN]
        in_view, installed = self._views_of(me, heard)
        sender, dests = np.full(len(records), -1), np.full(len(records), -1)
        for number, index in self._indices.items():
            sender[origin == number] = index
        sends = kind == SEND
        for number in np.unique(records[sends, ADDRESS]).tolist():
            dests[sends & (records[:, ADDRESS] == number)] = self._address(heard.names.addresses[number].dests)
        views = in_view if self._views else np.full(len(records), -1)
        rows = np.column_stack((kind, sender, records[:, [FIRST, COUNT, LAMPORT]], dests, views))
        for at in installed:
            rows[at, 1:] = -1, 0, 1, records[at, LAMPORT], -1, in_view[at]
        counts = (sends | (kind == DELIVER)) & (records[:, LAMPORT] >= began) & (sender >= 0)
        counts[installed] = True
        self._follower.take(me, rows[counts], heard.reached)

    def _views_of(self, me: int, heard: ProcessUpdate) -> tuple[np.ndarray, list[int]]:
        """The view that the process was in at each of its records, and the records that install one."""
        view, life = self._in_view.get(heard.process, (-1, ""))
        in_view, installed = np.full(len(heard.records), view), list[int]()
        for at in np.flatnonzero(heard.records[:, KIND] == VIEW).tolist():
            address = heard.names.addresses[heard.records[at, ADDRESS]]
            if address.op == ViewEvent.INSTALL:
                incarnation = address.txn or ""
                if view >= 0 and life == incarnation:
                    self._follower.survived(me, view)
                view, life = int(heard.records[at, FIRST]), incarnation
                in_view[at:] = view
                installed.append(at)
        self._in_view[heard.process] = view, life
        return in_view, installed

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
