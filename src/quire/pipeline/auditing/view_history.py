"""Reconstructs who was in which view when, as *stays*.

A stay is the time that one process, in one incarnation, spends in one view. It ends when the process moves on to the next view
or stops being a member; or it lasts to the end of the trace. A process that is restarted from a journal begins another stay in
the same view, with the state that the journal restores: the first n messages that it had delivered there. Any later ones are
*forgotten*, and may be delivered again.

Views are few, so their rows are followed one by one in Python; all other events are handled as arrays.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum

import msgspec
import numpy as np

from quire.model.errors import BadInput
from quire.pipeline.labels import Labelled
from quire.trace.kinds import DELIVER, VIEW
from quire.trace.views import ViewEvent

COLUMNS = ("group", "object", "op", "txn")

FOLLOWED = (ViewEvent.INSTALL, ViewEvent.RESUME, ViewEvent.EXCLUDED, ViewEvent.LEFT, ViewEvent.CRASH)
"""The events that begin or end a stay."""


class Ending(Enum):
    WENT_ON = "went on"
    """The process moved on to the view with the next number, in the same incarnation."""
    JUMPED = "jumped"
    """The process moved to a view with another number in the same incarnation, which is not allowed."""
    LASTED = "lasted"
    """The stay lasted to the end of the trace, at a process that is not known to have crashed."""
    EXCLUDED = "excluded"
    LEFT = "left"
    CRASHED = "crashed"


class Stay(msgspec.Struct):
    process: int
    number: int
    """The number of the view."""
    members: str
    """The members of the view, as the process installed it; after a restart, those of the stay that is resumed."""
    incarnation: str
    first: int
    """The index of its first event."""
    end: int
    """The index after its last event."""
    line: int
    """Stays through which a process kept its state share a line; one that comes back with others' state begins a new line."""
    ending: Ending = Ending.LASTED
    prior: int = -1
    """For a stay after a restart: the stay that it resumes, and how many of the messages delivered there it kept."""
    kept: int = 0


class ViewHistory(msgspec.Struct):
    stays: list[Stay]
    """Sorted by process, then by time."""
    stay: np.ndarray
    """For each event, the stay in which it happened; -1 if none."""
    forgotten: np.ndarray
    """For each event, whether it is a delivery that a restart undid."""
    held: list[np.ndarray]
    """For each stay, the events of its deliveries, in order: first those that it kept after a restart, then its own."""

    def bound(self) -> np.ndarray:
        """For each stay, whether the process is bound to the view, and must have what was delivered in it: it moved on to the
        next view, or stayed in the group's last view to the end."""
        last = max((stay.number for stay in self.stays), default=-1)
        ends = [stay.ending is Ending.LASTED and stay.number == last for stay in self.stays]
        return np.array([stay.ending is Ending.WENT_ON for stay in self.stays], np.bool_) | np.array(ends, np.bool_)

    def following(self, index: int) -> Stay:
        """The process's next stay, for one that moved on."""
        return self.stays[index + 1]

    def numbers(self) -> np.ndarray:
        """For each stay, the number of its view; the last entry, for stay -1, is -1."""
        return np.array([*(stay.number for stay in self.stays), -1], np.int64)


def has_views(words: Sequence[str]) -> bool:
    """Whether numbered views may be among events with these values of the column `op`."""
    return ViewEvent.INSTALL.value in words


def find_views(rows: Labelled, correct: np.ndarray) -> ViewHistory:
    """Follow all processes through the views. Raises BadInput if the views are those of several groups, if one has a negative
    number, or if a restart does not record how many messages were kept."""
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
        if what == ViewEvent.INSTALL:
            goes_on = current is not None and current.incarnation == incarnation
            ending, line = Ending.CRASHED, len(stays)
            if current is not None and goes_on:
                ending = Ending.WENT_ON if int(rows.seq[index]) == current.number + 1 else Ending.JUMPED
                line = current.line
            _end(history, rows, current, index, ending)
            current = Stay(process, int(rows.seq[index]), rows.word("object", index), incarnation, index, index, line)
            stays.append(current)
        elif what == ViewEvent.RESUME:
            _end(history, rows, current, index, Ending.CRASHED)
            current = _resume(history, rows, index, own)
            stays.append(current)
        else:
            _end(history, rows, current, index, Ending.CRASHED if what == ViewEvent.CRASH else Ending(what))
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
    """The stay that begins with a restart: it resumes the process's last stay in the view that the journal names."""
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
