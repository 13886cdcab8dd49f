"""One watched process: its last known status and its recent history, in bounded memory."""

from __future__ import annotations

from quire.live.observing.status import HeldBack, Status
from quire.trace.kinds import DELIVER, SEND
from quire.trace.parts.description import PartDescription
from quire.trace.records import COUNT, KIND
from quire.trace.tables import as_records
from quire.trace.tail import Excerpt
from quire.watch.recent import Recent, Sends
from quire.watch.series import Series

MEASURES = ("delivered", "sent", "latency", "unread", "unsettled")


class WatchedProcess:
    """A watched process. `key` identifies it; `name` is its own name."""

    def __init__(self, key: str) -> None:
        self.key = key
        self.name = key
        self.status: Status | None = None
        self.missing = "it has not been reached yet"
        """Why it cannot be observed at present; empty if it can."""
        self.pace_s = 0.0
        """How often it is looked at, if it has nothing to tell."""
        self.tried = False
        """Whether there was an attempt to reach it, successful or not."""
        self.described: PartDescription | None = None
        """What its trace says of it."""
        self.view: int | None = None
        """The last view that it has installed, by its trace."""
        self.recent = Recent()
        self.series = {measure: Series() for measure in MEASURES}
        self.lasting: tuple[HeldBack, ...] = ()
        """What is held back now and already was at the previous look; anything may be held back for a moment."""
        self._counted: tuple[float, int, int] | None = None
        self._recorded = {SEND: 0, DELIVER: 0}
        """How many messages its trace has as sent and delivered."""

    @property
    def process(self) -> int | None:
        """Its number in traces."""
        return None if self.described is None else self.described.process

    def stands(self, at_s: float, status: Status) -> None:
        """It reported its status."""
        before = () if self.status is None or self.missing else self.status.waiting
        held = {(each.origin, each.first) for each in before}
        self.lasting = tuple(each for each in status.waiting if (each.origin, each.first) in held)
        self.status, self.name, self.missing = status, status.me, ""
        self._count(at_s, sum(status.delivered.values()), status.sent)
        inbox = status.queues.get("inbox")
        self.series["unread"].add(at_s, 0 if inbox is None else inbox.messages)
        self.series["unsettled"].add(at_s, status.unsettled)

    def is_recorded(self, at_s: float) -> None:
        """It reports no status, and its trace was read up to now."""
        self._count(at_s, self._recorded[DELIVER], self._recorded[SEND])

    def _count(self, at_s: float, delivered: int, sent: int) -> None:
        if self._counted is not None and at_s > self._counted[0]:
            before_s, before_delivered, before_sent = self._counted
            self.series["delivered"].add(at_s, max(0, delivered - before_delivered) / (at_s - before_s))
            self.series["sent"].add(at_s, max(0, sent - before_sent) / (at_s - before_s))
        self._counted = at_s, delivered, sent
        if (latency_s := self.recent.latency_s()) is not None:
            self.series["latency"].add(at_s, latency_s)

    def is_missing(self, why: str) -> bool:
        """It cannot be observed; returns whether that is new."""
        news = not self.missing and self.status is not None
        self.tried = True
        self.missing = why
        return news

    def begin_trace(self, description: PartDescription) -> None:
        self.described = description
        self.name, self.missing = description.name or str(description.process), ""

    def traced(self, excerpt: Excerpt, sends: Sends) -> None:
        self.tried = True
        if excerpt.records:
            records = as_records(excerpt.records)
            for kind in self._recorded:
                self._recorded[kind] += int(records[records[:, KIND] == kind, COUNT].sum())
            self.recent.take(records, excerpt.rows, excerpt.meaning(), sends)
