"""Checks the guarantees of transactions and of object calls on a live run, from the text columns of its records."""

from __future__ import annotations

from quire.model.orders import Guarantee
from quire.pipeline.auditing.followed_events import Worded
from quire.pipeline.auditing.followed_window import follow_words
from quire.trace.kinds import PACKET
from quire.trace.parts.description import RunIdentity
from quire.trace.records import ADDRESS, COUNT, FIRST, KIND, LAMPORT, ORIGIN
from quire.watch.followed import Judged
from quire.watch.updates import ProcessUpdate


class FollowedServices:
    def __init__(self, identity: RunIdentity, judged: Guarantee) -> None:
        self._judged = judged
        self._processes = identity.members
        self._window = follow_words(judged, identity.settings, identity.members)

    def add(self, process: int) -> None:
        """Nothing to do: all processes are known from the beginning."""

    def take(self, heard: ProcessUpdate, began: int) -> None:
        events = []
        for record in heard.records.tolist():
            if record[KIND] != PACKET and record[LAMPORT] >= began and record[ORIGIN] < self._processes:
                address = heard.names.addresses[record[ADDRESS]]
                words = address.group, address.object, address.op, address.txn
                for step in range(record[COUNT]):
                    number = record[FIRST] + step
                    events.append(Worded(record[KIND], record[ORIGIN], number, record[LAMPORT] + step, words))
        self._window.take(heard.process, events, heard.reached, whole=not began)

    def gone(self, process: int) -> None:
        self._window.gone(process)

    def awaited(self, process: int) -> None:
        """Nothing to do: it is waited for again as soon as it is heard from."""

    def judge(self, judged: Judged) -> None:
        self._window.advance()
        judged.messages, judged.deliveries = self._window.messages, self._window.deliveries
        judged.beyond = self._window.beyond
        if self._window.count:
            judged.violated[self._judged] = self._window.count, self._window.because

    def oldest_waiting(self) -> int | None:
        return self._window.oldest_waiting()
