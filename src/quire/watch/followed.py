"""Feeds the records of running processes, as they arrive, to the audit's live checks.

Processes are first heard from at different times, some from their start and some later. So judging begins at a logical time
that all of them have reached: messages sent before it are not judged, and every message sent after it is seen everywhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import msgspec

from quire.model.orders import Guarantee
from quire.trace.kinds import VIEW
from quire.trace.parts.description import RunIdentity
from quire.trace.records import ADDRESS, KIND, LAMPORT, TIME_NS
from quire.trace.views import ViewEvent
from quire.watch.left_behind import LeftBehind
from quire.watch.updates import ProcessUpdate

_TIMES_MAX = 4096


class Judged(msgspec.Struct, kw_only=True):
    """The findings so far."""

    why: str = ""
    """Why judging has stopped; empty while it goes on."""
    messages: int = 0
    deliveries: int = 0
    beyond: str = ""
    """What of it could not be judged, as a sentence; empty if everything was."""
    violated: dict[Guarantee, tuple[int, str]] = {}
    """The violated guarantees: how often, and the first violation as a sentence."""


class Strand(Protocol):
    """Checks some of the promised guarantees while the run goes on."""

    def add(self, process: int) -> None: ...
    def take(self, heard: ProcessUpdate, began: int) -> None:
        """Add a process's next records. `began`: the logical time from which on everything is judged."""

    def gone(self, process: int) -> None:
        """Do not wait for the process any more."""

    def awaited(self, process: int) -> None:
        """Wait for the process again."""

    def judge(self, judged: Judged) -> None:
        """Judge as far as possible, and add the findings to `judged`."""

    def oldest_waiting(self) -> int | None:
        """The logical time of the oldest event that is not judged yet."""


class Followed:
    """The live checks of one run. `strands`: the checks; `lives_once`: whether a restarted process counts as a new one."""

    def __init__(self, strands: tuple[Strand, ...], *, lives_once: bool) -> None:
        self._strands = strands
        self._lives_once = lives_once
        self._waiting: list[ProcessUpdate] | None = []
        """Records that arrived before it is known where judging begins."""
        self._began = 0
        self._incarnations: dict[int, int] = {}
        self._gone: set[int] = set()
        self._left_behind = LeftBehind()
        self._times: list[tuple[int, int]] = []
        """Pairs of logical and wall-clock time, from which the lag of judging is computed."""

    def must_begin_anew(self, heard: ProcessUpdate) -> bool:
        """Whether some of this process's events were missed, because it was not waited for, or not known yet."""
        if self._waiting is not None:
            return False
        known = self._incarnations.get(heard.process)
        if known == heard.incarnation:
            return heard.process in self._gone
        return known is None or self._lives_once or _resumes(heard)

    def gone(self, process: int) -> None:
        self._gone.add(process)
        if process in self._incarnations:
            for strand in self._strands:
                strand.gone(process)

    def take(self, heard: ProcessUpdate, present: frozenset[int] | None) -> None:
        """Add a process's next records. `present`: the processes heard from at present, None if not known yet. Judging begins
        when each of them was heard from."""
        if self._waiting is None:
            self._take(heard)
            return
        self._waiting.append(heard)
        if present is not None and present <= {each.process for each in self._waiting}:
            waiting, self._waiting = self._waiting, None
            first: dict[int, ProcessUpdate] = {}
            for each in waiting:
                first.setdefault(each.process, each)
            for process in first:
                for strand in self._strands:
                    strand.add(process)
            late = [each for each in first.values() if not each.from_the_start]
            self._began = max(
                (int(each.records[0, LAMPORT]) if len(each.records) else each.reached for each in late), default=0
            )
            for each in waiting:
                self._take(each)

    def judge(self) -> Judged:
        judged = Judged(why="" if self._waiting is None else "waiting for all members to be heard")
        for strand in self._strands:
            strand.judge(judged)
        return judged

    def lag_s(self) -> float:
        """The time between the oldest event that is not judged and the last one heard."""
        waiting = [oldest for strand in self._strands if (oldest := strand.oldest_waiting()) is not None]
        if not waiting or not self._times:
            return 0.0
        then = next((time_ns for lamport, time_ns in reversed(self._times) if lamport <= min(waiting)), self._times[0][1])
        return max(0.0, (max(time_ns for _, time_ns in self._times[-64:]) - then) / 1e9)

    def _take(self, heard: ProcessUpdate) -> None:
        self._gone.discard(heard.process)
        self._incarnations[heard.process] = heard.incarnation
        if len(heard.records):
            self._times.append((int(heard.records[-1, LAMPORT]), int(heard.records[-1, TIME_NS])))
            del self._times[:-_TIMES_MAX]
        counted = self._left_behind.counted(heard)
        if counted is None:
            return
        let_go, again = self._left_behind.learn(counted)
        for strand in self._strands:
            strand.take(counted, self._began)
            for process in let_go:
                strand.gone(process)
            for process in again:
                strand.awaited(process)


def _resumes(heard: ProcessUpdate) -> bool:
    """Whether the process was restarted from its journal: it may then repeat deliveries that the journal had not recorded."""
    views = heard.records[heard.records[:, KIND] == VIEW]
    return any(heard.names.addresses[number].op == ViewEvent.RESUME for number in views[:, ADDRESS].tolist())


def judged_of(identity: RunIdentity) -> tuple[Guarantee, ...]:
    """The guarantees that are checked while a run goes on: for stores and objects, what they promise; otherwise all orders."""
    if Guarantee.SERIALISABLE in identity.promises:
        return (Guarantee.SERIALISABLE,)
    if Guarantee.SIGNIFICANT in identity.promises:
        return (Guarantee.INTEGRITY, Guarantee.AGREEMENT, Guarantee.SIGNIFICANT)
    return (Guarantee.INTEGRITY, Guarantee.AGREEMENT, Guarantee.FIFO, Guarantee.CAUSAL, Guarantee.TOTAL)


def follow(identity: RunIdentity, names: Mapping[int, str]) -> Followed:
    """The live checks for this run. The kernels come with the pipeline, which need not be installed."""
    from quire.watch.followed_orders import FollowedOrders
    from quire.watch.followed_services import FollowedServices

    strands = list[Strand]()
    judged = judged_of(identity)
    if Guarantee.INTEGRITY in judged:
        strands.append(FollowedOrders(identity, judged, names))
    if judged[-1] in (Guarantee.SERIALISABLE, Guarantee.SIGNIFICANT):
        strands.append(FollowedServices(identity, judged[-1]))
    return Followed(tuple(strands), lives_once=isinstance(strands[-1], FollowedServices))
