"""Checks of transactions and object calls on a live run: what was kept of it is judged again with every piece that comes.

There is no bound on how long a transaction or a call must be remembered because a later one may contradict it. So about
EVENTS_MAX events are kept, and each check says which older ones cannot matter any more (`followed_transactions`,
`followed_calls`). To avoid false alarms, events that refer to a message that is not known are left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from quire.model.orders import Guarantee
from quire.pipeline.auditing.checks.significant import parse_conflicts
from quire.pipeline.auditing.followed_calls import FollowedCalls
from quire.pipeline.auditing.followed_events import Logs, Worded
from quire.pipeline.auditing.followed_transactions import FollowedTransactions
from quire.pipeline.auditing.transactions import parse_versions
from quire.trace.kinds import DELIVER, SEND

EVENTS_MAX = 20_000


class Check(Protocol):
    """Judges what is kept of a run, and decides what that is."""

    beyond: str
    """What could not be judged, as a sentence; empty if everything was."""

    def judge(self, logs: Logs, *, whole: bool) -> tuple[int, str]:
        """The number of violations, and the first one as a sentence. `whole`: whether all events are known since the beginning,
        except for those that were forgotten."""

    def forget(self, logs: Logs, before: int) -> list[list[Worded]]:
        """What is kept of these events: all since the logical time `before`, and older ones that may matter later."""


class WindowFollower:
    """Keeps the verdict of one check up to date while a run goes on. Processes are identified by their numbers."""

    def __init__(self, check: Check, processes: int) -> None:
        self.messages = self.deliveries = 0
        self.count = 0
        """The largest number of violations found at a time so far."""
        self.because = ""
        """The first violation that was found, as a sentence."""
        self._check = check
        self._kept: list[list[Worded]] = [[] for _ in range(processes)]
        self._pending: list[list[Worded]] = [[] for _ in range(processes)]
        self._reached = [0] * processes
        self._live: set[int] = set()
        self._whole = True
        """Whether all events since the beginning are known, or were."""
        self._room = EVENTS_MAX
        """How many events there may be until some are forgotten."""
        self._heard: set[int] = set()
        """The processes heard from since the last judgement."""

    @property
    def beyond(self) -> str:
        """What could not be judged, as a sentence; empty if everything was."""
        return self._check.beyond

    def take(self, process: int, events: Sequence[Worded], reached: int, *, whole: bool = True) -> None:
        """Add a process's next events; its later ones will have logical times greater than `reached`. `whole`: whether no event
        of the process is missing before these."""
        self._whole &= whole
        self._pending[process] += events
        last = events[-1].lamport if events else 0
        self._reached[process] = max(self._reached[process], reached, last)
        self._live.add(process)
        self._heard.add(process)

    def gone(self, process: int) -> None:
        """A process is gone: do not wait for it, and assume that its last sends may be unknown."""
        self._live.discard(process)
        self._whole = False

    def oldest_waiting(self) -> int | None:
        return min((events[0].lamport for events in self._pending if events), default=None)

    def advance(self) -> bool:
        """Judge up to the logical time that all processes have reached, once each of them was heard from again; return whether
        there was anything new."""
        if not self._live or not self._live <= self._heard:
            return False
        self._heard.clear()
        until, further = min(self._reached[process] for process in self._live), False
        while self._take_until(until):
            further = True
            found, because = self._check.judge(self._kept, whole=self._whole)
            self.count = max(self.count, found)
            self.because = self.because or because
            self._forget()
        return further

    def _take_until(self, until: int) -> bool:
        """Take the next events up to this logical time, few enough to be judged with those that were taken before them."""
        times = sorted(event.lamport for pending in self._pending for event in pending if event.lamport <= until)
        if len(times) > EVENTS_MAX // 4:
            until = times[EVENTS_MAX // 4]
        for kept, pending in zip(self._kept, self._pending, strict=True):
            ready = next((at for at, event in enumerate(pending) if event.lamport > until), len(pending))
            self.messages += sum(event.kind == SEND for event in pending[:ready])
            self.deliveries += sum(event.kind == DELIVER for event in pending[:ready])
            kept += pending[:ready]
            del pending[:ready]
        return bool(times)

    def _forget(self) -> None:
        size = sum(map(len, self._kept))
        if size <= self._room:
            return
        times = sorted(event.lamport for kept in self._kept for event in kept)
        self._kept = self._check.forget(self._kept, times[-(EVENTS_MAX // 2)])
        self._room = max(EVENTS_MAX, sum(map(len, self._kept)) + EVENTS_MAX // 4)


def follow_words(promised: Guarantee, settings: Mapping[str, object], processes: int) -> WindowFollower:
    """A follower for a guarantee about transactions, or about calls of objects."""
    if promised is Guarantee.SERIALISABLE:
        return WindowFollower(FollowedTransactions(parse_versions(settings.get("versions"))), processes)
    return WindowFollower(FollowedCalls(parse_conflicts(settings) or {}, processes), processes)
