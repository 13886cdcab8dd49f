"""Who was in which view when: every process's *stays*.

A stay is the time of one process, in one incarnation, in one view. It ends when the process goes on to the next view, or
stops being a member; or it lasts to the end of the trace. A process that is restarted with a journal begins another stay in
the view in which it was, with the state that the journal gave back: the first so many of the messages that it had delivered
there. What it had delivered beyond these is *forgotten*, and may be delivered again.

Views are few, so their rows are followed one by one; of all other events there are only arrays.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum

import msgspec
import numpy as np

from quire.model.errors import BadInput
from quire.pipeline.labels import Labelled
from quire.trace.kinds import DELIVER, VIEW
from quire.trace.views import Happening

COLUMNS = ("group", "object", "op", "txn")

FOLLOWED = (Happening.INSTALL, Happening.RESUME, Happening.EXCLUDED, Happening.LEFT, Happening.CRASH)
"""What begins or ends a stay."""


class Ending(Enum):
    WENT_ON = "went on"
    """To the view of the next number, in the same incarnation."""
    JUMPED = "jumped"
    """To a view of another number in the same incarnation, which nobody may."""
    LASTED = "lasted"
    """To the end of the trace, at a process that is not known to have crashed."""
    EXCLUDED = "excluded"
    LEFT = "left"
    CRASHED = "crashed"


class Stay(msgspec.Struct):
    process: int
    number: int
    """Of the view."""
    members: str
    """Of the view, as the process installed it; of a stay that goes on after a restart, as before."""
    incarnation: str
    first: int
    """The index of the event with which it begins."""
    end: int
    """The index after its last event."""
    line: int
    """Stays in which the state was handed on have the same line; who comes back with a state from others begins another."""
    ending: Ending = Ending.LASTED
    prior: int = -1
    """Of a stay after a restart: the stay in whose view it goes on, and how many messages delivered there are kept."""
    kept: int = 0


class ViewHistory(msgspec.Struct):
    stays: list[Stay]
    """By process, in the order of time."""
    stay: np.ndarray
    """For each event the stay in which it happened; -1: in none."""
    forgotten: np.ndarray
    """For each event whether it is a delivery that a restart undid."""
    held: list[np.ndarray]
    """For each stay the deliveries that it has, by their events, in order: its own, and before them those that it kept."""

    def bound(self) -> np.ndarray:
        """For each stay whether the process there has to have what was delivered in the view: it went on to the next one, or
        is in the group's last view to the end."""
        last = max((stay.number for stay in self.stays), default=-1)
        ends = [stay.ending is Ending.LASTED and stay.number == last for stay in self.stays]
        return np.array([stay.ending is Ending.WENT_ON for stay in self.stays], np.bool_) | np.array(ends, np.bool_)

    def following(self, index: int) -> Stay:
        """The stay to which this one went on."""
        return self.stays[index + 1]

    def numbers(self) -> np.ndarray:
        """For each stay the number of its view, and last, for -1, that of being in none."""
        return np.array([*(stay.number for stay in self.stays), -1], np.int64)


def has_views(words: Sequence[str]) -> bool:
    """Whether these words of the column `op` may tell of numbered views."""
    return Happening.INSTALL.value in words


def find_views(rows: Labelled, correct: np.ndarray) -> ViewHistory:
    """Follow all processes through the views. Raises BadInput if the views are of several groups, have a negative number, or a
    restart does not say how much was kept."""
    codes = [code for code, word in enumerate(rows.words["op"]) if word in {each.value for each in FOLLOWED}]
    changes = np.flatnonzero((rows.kind == VIEW) & np.isin(rows.codes["op"], codes))
    _check(rows, changes)
    history = ViewHistory([], np.full(len(rows.kind), -1, np.int32), np.zeros(len(rows.kind), np.bool_), [])
    if not has_views(rows.words["op"]):
        return history
    process = rows.processes()
    for own in np.split(changes, np.flatnonzero(np.diff(process[changes])) + 1):
        if len(own):
            _follow(history, rows, own.tolist(), int(process[own[0]]), correct)
    return history


def _check(rows: Labelled, changes: np.ndarray) -> None:
    named = np.unique(rows.codes["group"][changes])
    if len(named) > 1:
        one, other = (rows.words["group"][code] if code >= 0 else "one without a name" for code in named[:2].tolist())
        raise BadInput(f"the trace has views of several groups, {one} and {other}, which cannot be audited together")
    for index in changes[rows.seq[changes] < 0][:1].tolist():
        raise BadInput(
            f"process {rows.process(index)} has a view of the number {rows.seq[index]} at position {rows.pos(index)}"
        )


def _follow(history: ViewHistory, rows: Labelled, changes: list[int], process: int, correct: np.ndarray) -> None:
    """Add the stays of one process."""
    stays, current, own = history.stays, None, len(history.stays)
    for index in changes:
        what, incarnation = rows.word("op", index), rows.word("txn", index)
        if what == Happening.INSTALL:
            goes_on = current is not None and current.incarnation == incarnation
            ending, line = Ending.CRASHED, len(stays)
            if current is not None and goes_on:
                ending = Ending.WENT_ON if int(rows.seq[index]) == current.number + 1 else Ending.JUMPED
                line = current.line
            _end(history, rows, current, index, ending)
            current = Stay(process, int(rows.seq[index]), rows.word("object", index), incarnation, index, index, line)
            stays.append(current)
        elif what == Happening.RESUME:
            _end(history, rows, current, index, Ending.CRASHED)
            current = _resume(history, rows, index, own)
            stays.append(current)
        else:
            _end(history, rows, current, index, Ending.CRASHED if what == Happening.CRASH else Ending(what))
            current = None
    last = Ending.LASTED if correct[process] else Ending.CRASHED
    _end(history, rows, current, int(rows.start[process + 1]), last)


def _end(history: ViewHistory, rows: Labelled, stay: Stay | None, end: int, ending: Ending) -> None:
    """Close the last stay, if there is one, and collect its deliveries."""
    if stay is None:
        return
    stay.end, stay.ending = end, ending
    history.stay[stay.first : end] = len(history.stays) - 1
    delivered = stay.first + np.flatnonzero(rows.kind[stay.first : end] == DELIVER)
    kept = history.held[stay.prior][: stay.kept] if stay.prior >= 0 else delivered[:0]
    history.held.append(np.concatenate((kept, delivered)))


def _resume(history: ViewHistory, rows: Labelled, index: int, own: int) -> Stay:
    """The stay that begins with a restart, in the view that the journal knows: the process's last stay there."""
    process, number, kept = rows.process(index), int(rows.seq[index]), rows.word("object", index)
    if not kept.isascii() or not kept.isdigit():
        raise BadInput(
            f"process {process} resumes view {number} at position {rows.pos(index)} without saying how many messages it kept"
        )
    stay = Stay(process, number, "", rows.word("txn", index), index, index, len(history.stays), kept=int(kept))
    before = [at for at in range(own, len(history.stays)) if history.stays[at].number == number]
    if before:
        stay.prior = before[-1]
        prior = history.stays[stay.prior]
        stay.members, stay.line = prior.members, prior.line
        for undone in (history.held[stay.prior][stay.kept :], *history.held[stay.prior + 1 :]):
            history.forgotten[undone] = True
    return stay
