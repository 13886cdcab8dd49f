"""Records of processes, as they are heard, for the followers of the audit.

Processes are heard one after the other, some from their start and some from later on. So judging begins with a logical time
that all have come to: what was sent before it is not judged, and whatever is sent from then on is seen everywhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import msgspec

from quire.model.orders import Guarantee
from quire.trace.kinds import VIEW
from quire.trace.parts.description import RunIdentity
from quire.trace.records import ADDRESS, KIND, LAMPORT, TIME_NS
from quire.trace.views import Happening
from quire.watch.heard import Heard
from quire.watch.left_behind import LeftBehind

_TIMES_MAX = 4096


class Judged(msgspec.Struct, kw_only=True):
    """What can be said by now."""

    why: str = ""
    """Why nothing more can be said."""
    messages: int = 0
    deliveries: int = 0
    violated: dict[Guarantee, tuple[int, str]] = {}
    """What does not hold: how often, and the first time in words."""


class Strand(Protocol):
    """Follows some of what is promised."""

    def add(self, process: int) -> None: ...
    def take(self, heard: Heard, began: int) -> None:
        """`began`: from which logical time on everything is judged."""

    def gone(self, process: int) -> None:
        """It is not waited for."""

    def awaited(self, process: int) -> None:
        """It is waited for again."""

    def judge(self, judged: Judged) -> None:
        """Judge as far as that is possible, and say what was found."""

    def oldest_waiting(self) -> int | None:
        """The logical time of the first that is heard and not judged."""


class Followed:
    """`strands`: who follows what. `lives_once`: whether a process that is started again is another one to them."""

    def __init__(self, strands: tuple[Strand, ...], *, lives_once: bool) -> None:
        self._strands = strands
        self._lives_once = lives_once
        self._waiting: list[Heard] | None = []
        """What was heard before it is known where to begin."""
        self._began = 0
        self._incarnations: dict[int, int] = {}
        self._gone: set[int] = set()
        self._left_behind = LeftBehind()
        self._times: list[tuple[int, int]] = []
        """When what had which logical time happened, to say how far judging lags."""

    def must_begin_anew(self, heard: Heard) -> bool:
        """Whether some of what this process did was passed over: it was not waited for any more, or not known yet."""
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

    def take(self, heard: Heard, present: frozenset[int] | None) -> None:
        """`present`: those who are heard now; None: that is not known yet. Judging begins when each of them was heard."""
        if self._waiting is None:
            self._take(heard)
            return
        self._waiting.append(heard)
        if present is not None and present <= {each.process for each in self._waiting}:
            waiting, self._waiting = self._waiting, None
            first: dict[int, Heard] = {}
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
        """How long before the last that was heard the first happened that is not judged."""
        waiting = [oldest for strand in self._strands if (oldest := strand.oldest_waiting()) is not None]
        if not waiting or not self._times:
            return 0.0
        then = next((time_ns for lamport, time_ns in reversed(self._times) if lamport <= min(waiting)), self._times[0][1])
        return max(0.0, (max(time_ns for _, time_ns in self._times[-64:]) - then) / 1e9)

    def _take(self, heard: Heard) -> None:
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


def _resumes(heard: Heard) -> bool:
    """Whether the process goes on with what its journal gave back: it may deliver again what it had not written down."""
    views = heard.records[heard.records[:, KIND] == VIEW]
    return any(heard.names.addresses[number].op == Happening.RESUME for number in views[:, ADDRESS].tolist())


def judged_of(identity: RunIdentity) -> tuple[Guarantee, ...]:
    """What is judged of a run while it goes on: of stores and objects, what they promise; else all orders."""
    if Guarantee.SERIALISABLE in identity.promises:
        return (Guarantee.SERIALISABLE,)
    if Guarantee.SIGNIFICANT in identity.promises:
        return (Guarantee.INTEGRITY, Guarantee.AGREEMENT, Guarantee.SIGNIFICANT)
    return (Guarantee.INTEGRITY, Guarantee.AGREEMENT, Guarantee.FIFO, Guarantee.CAUSAL, Guarantee.TOTAL)


def follow(identity: RunIdentity, names: Mapping[int, str]) -> Followed:
    """Follows everything that is judged of this run. The kernels come with the pipeline, which need not be installed."""
    from quire.watch.followed_orders import FollowedOrders
    from quire.watch.followed_words import FollowedWords

    strands = list[Strand]()
    judged = judged_of(identity)
    if Guarantee.INTEGRITY in judged:
        strands.append(FollowedOrders(identity, judged, names))
    if judged[-1] in (Guarantee.SERIALISABLE, Guarantee.SIGNIFICANT):
        strands.append(FollowedWords(identity, judged[-1]))
    return Followed(tuple(strands), lives_once=isinstance(strands[-1], FollowedWords))
