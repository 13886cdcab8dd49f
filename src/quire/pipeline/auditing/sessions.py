"""Checks that every operation of a session is executed once, however often it was sent.

An operation that is sent again is a new message. Deliveries whose state was then lost, because the process was excluded or
forgot them in a crash, do not count. A violation is a member that delivers an operation twice in one state, or two messages of
one operation that both became part of the group's history.
"""

from __future__ import annotations

import msgspec
import numpy as np

from quire.model.messages import MessageId
from quire.pipeline.auditing.view_history import ViewHistory
from quire.pipeline.labels import Labelled
from quire.trace.kinds import DELIVER, SEND
from quire.trace.views import parse_operation_word


class Executed(msgspec.Struct, frozen=True):
    """A delivery of an operation."""

    member: int
    pos: int
    message: MessageId


class OnceFound(msgspec.Struct, frozen=True, kw_only=True):
    sessions: int = 0
    """How many sessions are named."""
    count: int = 0
    session: str = ""
    number: int = 0
    twice: tuple[Executed, ...] = ()
    """Two deliveries of the first operation that was executed twice."""


def judge_once(rows: Labelled, history: ViewHistory, ids: np.ndarray, size: int) -> OnceFound:
    """Count the operations that were executed twice."""
    words = [parse_operation_word(word) for word in rows.words["txn"]]
    names = sorted({word.session for word in words if word is not None})
    session_of = np.array([-1 if word is None else names.index(word.session) for word in words] + [-1], np.int64)
    offset_of = np.array([0 if word is None else word.number for word in words] + [0], np.int64)
    session, number = np.full(size, -1, np.int64), np.zeros(size, np.int64)
    own_send = (rows.kind == SEND) & (rows.origin == rows.processes())
    for chosen in (rows.kind == DELIVER, own_send):
        # In reverse, so that the first of several wins; and sends last, so that the sender's record wins over deliveries.
        at = np.flatnonzero(chosen & (session_of[rows.codes["txn"]] >= 0))[::-1]
        session[ids[at]] = session_of[rows.codes["txn"][at]]
        number[ids[at]] = rows.seq[at] + offset_of[rows.codes["txn"][at]]
    if not (session >= 0).any():
        return OnceFound()
    found = OnceFound(sessions=len(np.unique(session[session >= 0])))
    delivered = np.flatnonzero((rows.kind == DELIVER) & ~history.forgotten)
    delivered = delivered[session[ids[delivered]] >= 0]
    operation = _operations(session, number)[ids[delivered]]
    kept = np.flatnonzero(_kept(history)[history.stay[delivered]])
    kept = kept[np.unique(ids[delivered[kept]], return_index=True)[1]]
    pairs = _pairs(operation[kept], np.zeros(len(kept), np.int64), delivered[kept])
    pairs |= _pairs(operation, _states(rows, history, delivered), delivered)
    if not pairs:
        return found
    one, other = pairs[min(pairs)]
    message = ids[one]
    return msgspec.structs.replace(
        found, count=len(pairs), session=names[int(session[message])], number=int(number[message]),
        twice=(_executed(rows, one), _executed(rows, other)),
    )  # fmt: skip


def _operations(session: np.ndarray, number: np.ndarray) -> np.ndarray:
    """For each message, a number for its operation, ordered by session."""
    carrying = session >= 0
    low, high = int(number[carrying].min()), int(number[carrying].max())
    # Normally there are few sessions, with operations numbered from 1 on; otherwise the slower way below is used.
    if (int(session.max()) + 1) * (high - low + 1) < 2**62:
        return np.asarray(session * (high - low + 1) + (number - low))
    return np.asarray(np.unique(np.stack((session, number)), axis=1, return_inverse=True)[1]).reshape(-1)


def _states(rows: Labelled, history: ViewHistory, delivered: np.ndarray) -> np.ndarray:
    """The state in which each of these deliveries was made, as a number; outside views each process has one state."""
    lines = np.array([*(stay.line for stay in history.stays), 0], np.int64)
    outside = len(history.stays) + rows.processes()[delivered]
    return np.asarray(np.where(history.stay[delivered] >= 0, lines[history.stay[delivered]], outside))


def _kept(history: ViewHistory) -> np.ndarray:
    """For each stay, whether its deliveries are part of the group's history; the last entry is for stay -1."""
    return np.append(history.bound(), True)


def _pairs(operation: np.ndarray, state: np.ndarray, event: np.ndarray) -> dict[int, tuple[int, int]]:
    """For every operation that occurs twice in one state, the first two events."""
    several = _occurs_again(operation, state)
    operation, state, event = operation[several], state[several], event[several]
    order = np.lexsort((event, state, operation))
    operation, state, event = operation[order], state[order], event[order]
    again = np.flatnonzero((operation[1:] == operation[:-1]) & (state[1:] == state[:-1]))[::-1]
    return {int(operation[at]): (int(event[at]), int(event[at + 1])) for at in again}


def _occurs_again(operation: np.ndarray, state: np.ndarray) -> np.ndarray:
    """Where operations are that may occur several times in one state: normally none, which is found out with little memory."""
    states = int(state.max(initial=0)) + 1
    if (int(operation.max(initial=0)) + 1) * states >= 2**62:
        return np.arange(len(operation))
    key = operation * states
    key += state
    ordered = np.sort(key)
    twice = ordered[1:][ordered[1:] == ordered[:-1]]
    return np.flatnonzero(np.isin(key, twice)) if len(twice) else np.empty(0, np.int64)


def _executed(rows: Labelled, index: int) -> Executed:
    return Executed(rows.process(index), rows.pos(index), MessageId(int(rows.origin[index]), int(rows.seq[index])))
