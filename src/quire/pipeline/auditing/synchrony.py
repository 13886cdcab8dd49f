"""Checks virtual synchrony and uniform delivery.

Virtual synchrony: members that move on together from a view have delivered the same messages in it. Uniform delivery: members
that move on from a view have every message that anyone delivered in it.

Each stay has a set of messages. Among stays that are compared, those that lack a message are found by counting: a stay lacks
some if it has fewer messages than the union of all.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import NamedTuple

import msgspec
import numpy as np

from quire.model.messages import MessageId
from quire.pipeline.auditing.view_history import Ending, Stay, ViewHistory
from quire.pipeline.compiled import compiled
from quire.pipeline.labels import Labelled
from quire.trace.kinds import DELIVER, KINDS, SEND
from quire.trace.views import parse_members

UNSENT, OUTSIDE = -2, -1
"""The view of a message whose send is not recorded; and of an event outside any view."""


class Wrong(Enum):
    """The kinds of violations, the simplest first."""

    DIFFERENT = "different"
    """Two processes installed views with the same number and different members."""
    JUMPED = "jumped"
    """A process skipped a view, or went back to an earlier one."""
    ELSEWHERE = "elsewhere"
    """A message was delivered in another view than the one it was sent in."""
    LACKED = "lacked"
    """A process moved on to the next view without a message that another had delivered, or lacks it at the end."""


class Seen(msgspec.Struct, frozen=True):
    """An event of the counterexample. If it is about no message, `what` says what it is."""

    member: int
    pos: int
    kind: str
    message: MessageId | None
    what: str = ""


class ViewFault(msgspec.Struct, frozen=True, kw_only=True):
    """One violation, in the view with this number."""

    wrong: Wrong
    number: int
    seen: tuple[Seen, ...]
    """Two installs; or a send and a delivery; or a delivery, and the end of the stay at the process that lacks it."""
    sent_in: int = OUTSIDE
    delivered_in: int = OUTSIDE
    ending: Ending = Ending.WENT_ON
    """How the stay ended of the process that delivered the message which another lacks."""
    goes_on: bool = True
    """Whether the process that lacks it moved on to the next view; otherwise it stayed to the end."""


class ViewsFound(msgspec.Struct, frozen=True):
    count: int = 0
    first: ViewFault | None = None


def judge_synchrony(rows: Labelled, history: ViewHistory, ids: np.ndarray, size: int) -> ViewsFound:
    """Check that processes which move from one view to the same next one delivered the same messages in it, and that every
    message is delivered in the view it was sent in."""
    if not history.stays:
        return ViewsFound()
    faults = [_different(rows, history), _jumped(rows, history), _elsewhere(rows, history, ids, size)]
    together: dict[tuple[int, str], list[int]] = {}
    for index, stay in enumerate(history.stays):
        if stay.ending is Ending.WENT_ON:
            together.setdefault((stay.number, history.following(index).members), []).append(index)
    faults.append(_lacked(rows, history, ids, size, [together[key] for key in sorted(together)]))
    return ViewsFound(sum(found.count for found in faults), next((found.first for found in faults if found.first), None))


def judge_uniform(rows: Labelled, history: ViewHistory, ids: np.ndarray, size: int) -> ViewsFound:
    """Check that processes bound to a view have every message that anyone delivered in it, whatever became of the deliverer."""
    same: dict[int, list[int]] = {}
    for index, stay in enumerate(history.stays):
        same.setdefault(stay.number, []).append(index)
    return _lacked(rows, history, ids, size, [same[number] for number in sorted(same)])


def _different(rows: Labelled, history: ViewHistory) -> ViewsFound:
    first: dict[int, Stay] = {}
    wrong = [
        (first[stay.number], stay)
        for stay in history.stays
        if stay.members and stay.prior < 0 and first.setdefault(stay.number, stay).members != stay.members
    ]
    if not wrong:
        return ViewsFound()
    seen = tuple(_installed(rows, stay) for stay in wrong[0])
    return ViewsFound(len(wrong), ViewFault(wrong=Wrong.DIFFERENT, number=wrong[0][0].number, seen=seen))


def _jumped(rows: Labelled, history: ViewHistory) -> ViewsFound:
    wrong = [index for index, stay in enumerate(history.stays) if stay.ending is Ending.JUMPED]
    if not wrong:
        return ViewsFound()
    stay, following = history.stays[wrong[0]], history.following(wrong[0])
    seen = (_installed(rows, stay), _installed(rows, following))
    return ViewsFound(len(wrong), ViewFault(wrong=Wrong.JUMPED, number=following.number, seen=seen))


def sent_numbers(rows: Labelled, history: ViewHistory, ids: np.ndarray, size: int) -> np.ndarray:
    """For each message, the number of the view in which it was sent, or UNSENT or OUTSIDE."""
    sent = np.full(size, UNSENT, np.int64)
    sends = np.flatnonzero((rows.kind == SEND) & (rows.origin == rows.processes()))[::-1]
    sent[ids[sends]] = history.numbers()[history.stay[sends]]
    return sent


def _elsewhere(rows: Labelled, history: ViewHistory, ids: np.ndarray, size: int) -> ViewsFound:
    sent = sent_numbers(rows, history, ids, size)
    delivered = np.flatnonzero(rows.kind == DELIVER)
    there, here = sent[ids[delivered]], history.numbers()[history.stay[delivered]]
    wrong = np.flatnonzero((there != UNSENT) & ((there != here) | (here == OUTSIDE)))
    if not len(wrong):
        return ViewsFound()
    at, number = int(delivered[wrong[0]]), int(here[wrong[0]])
    send = int(np.flatnonzero((rows.kind == SEND) & (ids == ids[at]) & (rows.origin == rows.processes()))[0])
    seen = (_message(rows, send), _message(rows, at))
    fault = ViewFault(wrong=Wrong.ELSEWHERE, number=number, seen=seen, sent_in=int(there[wrong[0]]), delivered_in=number)
    return ViewsFound(len(wrong), fault)


class Counts(NamedTuple):
    """The number of distinct messages in each sequence, and in the union of each set of sequences."""

    own: np.ndarray
    union: np.ndarray


@compiled
def count_different(ids: np.ndarray, bounds: np.ndarray, sets: np.ndarray, size: int) -> Counts:
    """Count the distinct messages of each sequence and of each set of sequences. `sets` holds the set of each sequence, from 0
    on; the sequences of a set are contiguous."""
    own = np.zeros(len(sets), np.int64)
    union = np.zeros(len(sets), np.int64)
    last, last_set = np.full(size, -1, np.int64), np.full(size, -1, np.int64)
    for sequence in range(len(sets)):
        for index in range(bounds[sequence], bounds[sequence + 1]):
            message = ids[index]
            if last[message] != sequence:
                last[message] = sequence
                own[sequence] += 1
            if last_set[message] != sets[sequence]:
                last_set[message] = sets[sequence]
                union[sets[sequence]] += 1
    return Counts(own, union)


def _lacked(
    rows: Labelled, history: ViewHistory, ids: np.ndarray, size: int, together: Sequence[Sequence[int]]
) -> ViewsFound:  # fmt: skip
    """In each of these sets of stays, find those that are bound and lack a message of another."""
    stays = np.array([index for own in together for index in own], np.int64)
    sets = np.repeat(np.arange(len(together)), [len(own) for own in together]).astype(np.int64)
    held = [ids[history.held[index]] for index in stays.tolist()]
    bounds = np.concatenate(([0], np.cumsum([len(own) for own in held]))).astype(np.int64)
    counted = count_different(np.concatenate([np.empty(0, ids.dtype), *held]), bounds, sets, size)
    lacking = np.where(history.bound()[stays], counted.union[sets] - counted.own, 0)
    if not lacking.any():
        return ViewsFound()
    at = int(np.flatnonzero(lacking)[0])
    return ViewsFound(int(lacking.sum()), _lack(rows, history, ids, int(stays[at]), together[int(sets[at])]))


def _lack(rows: Labelled, history: ViewHistory, ids: np.ndarray, lacking: int, others: Sequence[int]) -> ViewFault:
    """The violation for a stay that lacks messages: the first one it lacks of the first other stay."""
    own = ids[history.held[lacking]]
    missing = {other: history.held[other][~np.isin(ids[history.held[other]], own)] for other in others}
    other = next(other for other in others if len(missing[other]))
    delivery = int(missing[other][0])
    stay, goes_on = history.stays[lacking], history.stays[lacking].ending is Ending.WENT_ON
    end = _installed(rows, history.following(lacking) if goes_on else stay)
    return ViewFault(
        wrong=Wrong.LACKED, number=stay.number, seen=(_message(rows, delivery), end), ending=history.stays[other].ending,
        goes_on=goes_on,
    )  # fmt: skip


def _installed(rows: Labelled, stay: Stay) -> Seen:
    return Seen(stay.process, rows.pos(stay.first), "view", None, f"view {stay.number} of {_members(stay.members)}")


def _members(word: str) -> str:
    """The members for display, with the incarnation of those that came back, as in `members 0, 1 and 2.4`."""
    try:
        names = [
            str(process) if incarnation == 1 else f"{process}.{incarnation}" for process, incarnation in parse_members(word)
        ]
    except ValueError:
        return word
    return f"members {', '.join(names[:-1])} and {names[-1]}" if len(names) > 1 else f"member {''.join(names)}"


def _message(rows: Labelled, index: int) -> Seen:
    message = MessageId(int(rows.origin[index]), int(rows.seq[index]))
    return Seen(rows.process(index), rows.pos(index), KINDS[int(rows.kind[index])], message)
