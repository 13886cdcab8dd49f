"""Calls of objects as arrays: finds the role of each event in its instance, and requests that begin in a wrong order."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

import msgspec
import numpy as np

from quire.model.messages import MessageId
from quire.pipeline.auditing.conflicts import begin_in_order, opposite_orders
from quire.pipeline.auditing.cycles import grouped
from quire.pipeline.auditing.group_history import first_deliveries_of
from quire.pipeline.auditing.significance import (
    OTHER,
    RECEIVE,
    SEND_REQUEST,
    SEND_RESPONSE,
    START,
    build,
    path,
    sequence,
    too_early,
)
from quire.pipeline.auditing.total import identify, labels
from quire.pipeline.labels import Labelled
from quire.pipeline.merge import merge_by_lamport, rebuild
from quire.pipeline.numbering import count_sends
from quire.trace.kinds import DELIVER, SEND

COLUMNS = ("group", "object", "op", "txn")

UNSENT = np.iinfo(np.int64).max
"""Stands for the logical time of a send that is not recorded."""

Conflicts = dict[str, dict[str, list[str]]]
"""For each object and operation, the operations that conflict with it; an operation that is not listed conflicts with all."""


class Began(msgspec.Struct, frozen=True):
    """A delivery of a request to an object, or of a response to an instance (then `where` is that instance)."""

    member: int
    pos: int
    message: MessageId
    where: str
    op: str
    request: bool

    def place(self) -> tuple[bool, int, int]:
        """Its sort key: requests before responses, then by member and position in its log."""
        return not self.request, self.member, self.pos


class Early(NamedTuple):
    """How many deliveries come before one that significantly precedes them; the first of them, the one that it should have
    followed, and messages each of which precedes the next, from the latter to the former."""

    deliveries: int = 0
    seen: tuple[Began, ...] = ()
    chain: tuple[MessageId, ...] = ()


class Disagreeing(msgspec.Struct, frozen=True):
    """Two destinations that begin two requests in different orders: the first at the one, the second there, and the same two at
    the other."""

    seen: tuple[Began, Began, Began, Began]

    def pair(self) -> tuple[str, int, str, int]:
        one, _, other, _ = self.seen
        return one.where, one.member, other.where, other.member


class Calls:
    """Sends and deliveries as arrays with one entry per event."""

    def __init__(self, rows: Labelled, declared: Conflicts, correct: np.ndarray, times: np.ndarray, own: np.ndarray) -> None:
        """`times` are the logical times of all events, or nothing; `own` those events that are to be judged."""
        self.rows = rows
        self.index = index = np.flatnonzero(rows.kind <= DELIVER)
        """The index of each of them among all events."""
        self.start = np.searchsorted(index, rows.start).astype(np.int64)
        self.process = np.repeat(np.arange(len(rows.start) - 1), np.diff(self.start))
        chosen = slice(None) if len(index) == len(rows.kind) else index  # Normally all, and nothing has to be copied.
        self.kind, self.origin, self.seq = rows.kind[chosen], rows.origin[chosen], rows.seq[chosen]
        self.group, self.object, self.op, self.txn = (rows.codes[name][chosen].astype(np.int64) for name in COLUMNS)
        message, self.messages = identify(self.origin, self.seq)
        self.message = message.astype(np.int64)
        self.what = self._events()
        self.times = times[chosen] if len(times) else times
        self.own = own[chosen]
        self.judged = correct[self.process]
        self.instance, self.instances = _instances(self.txn, self.process, len(rows.words["txn"]))
        begins = self.what == START
        self.replica, self.replicas = _dense(self.object, self.process, begins)
        objects = np.zeros(self.replicas, np.int64)
        objects[self.replica[begins]] = self.object[begins]
        kind_of, self.conflicts = _matrices(declared, rows.words["object"], rows.words["op"])
        self.kind_of_replica = kind_of[objects]

    def _events(self) -> np.ndarray:
        """The role of each event in its instance: one of the constants of `significance`."""
        what = np.full(len(self.kind), OTHER, np.int8)
        sends = (self.kind == SEND) & (self.origin == self.process)
        what[sends] = np.where(self.object[sends] >= 0, SEND_REQUEST, SEND_RESPONSE)
        first = first_deliveries_of(self.start, self.kind == DELIVER, self.message, self.messages)
        what[first] = np.where(self.object[first] >= 0, START, RECEIVE)
        return what

    def unnamed(self) -> tuple[int, int]:
        """How many of the own events do not name their instance, and how many not their operation."""
        return int((self.own & (self.txn < 0)).sum()), int((self.own & (self.op < 0)).sum())

    def sent_at(self) -> np.ndarray:
        """For each message the logical time of its first send, or UNSENT."""
        sends = np.flatnonzero((self.what == SEND_REQUEST) | (self.what == SEND_RESPONSE))[::-1]
        sent = np.full(self.messages, UNSENT, np.int64)
        sent[self.message[sends]] = self.times[sends]
        return sent

    def arrange(self, first: np.ndarray) -> str:
        """Find an order that puts causes first: that of logical times if they are correct, else one rebuilt from the logs.
        `first`: the number of the first message that each process sends. Returns why there is no such order, if so."""
        from_zero = self.seq - first[self.origin]
        sent = count_sends(self.start, self.kind, self.origin, from_zero)
        if self.are_times_right:
            self.turn = merge_by_lamport(self.start, self.times)
            return ""
        self.turn, exists, stuck = rebuild(self.start, self.kind, self.origin, from_zero, sent)
        if exists:
            return ""
        origin, number = stuck[stuck[:, 0] >= 0][0, :2].tolist()
        return f"the logs contradict each other: a delivery of {origin}:{number} happened before it was sent"

    def arrange_by_time(self) -> None:
        self.turn = merge_by_lamport(self.start, self.times)

    @cached_property
    def are_times_right(self) -> bool:
        """Whether logical times ascend at every process, and every delivery comes after its send."""
        if not len(self.times):
            return not len(self.index)
        begins = np.zeros(len(self.times) + 1, np.bool_)
        begins[self.start] = True
        delivered = self.kind == DELIVER
        sent = self.sent_at()[self.message[delivered]]
        ascend = (self.times[1:] > self.times[:-1]) | begins[1:-1]
        return bool(ascend.all() and ((sent == UNSENT) | (sent < self.times[delivered])).all())

    def are_requests(self) -> np.ndarray:
        """Which messages are requests, as their sends say."""
        requests = np.zeros(self.messages, np.bool_)
        requests[self.message[self.what == SEND_REQUEST]] = True
        return requests

    def find_early(self) -> Early:
        """Judge requests by the replica where they begin, and responses by the instance that receives them."""
        received, begun = self.what == RECEIVE, int((self.what == START).sum())
        answers = int((self.what == SEND_RESPONSE).sum())
        nodes = len(self.index) + answers + begun * self.conflicts.shape[1]
        node_of, before, label = build(
            sequence(self.start, self.turn), self.what, self.message, self.instance, self.replica, self.op,
            self.conflicts, self.kind_of_replica, self.instances,
            # As narrow as they can be, because they are the largest of all.
            *(np.full(shape, -1, np.int32 if nodes < 2**31 else np.int64) for shape in (self.messages, (nodes, 2), nodes)),
        )  # fmt: skip
        all_conflict = np.full(self.instances, -1, np.int64)
        found = Early()
        answers_received = received & ~self.are_requests()[self.message]
        for (events, bounds), kinds in (
            (self._begun, self.kind_of_replica),
            (self._by(self.instance, answers_received, self.instances), all_conflict),
        ):
            message = self.message[events]
            count, one, other = too_early(
                bounds, message, self.op[events], kinds, self.conflicts, node_of, before, self.own[events], events
            )
            if count and not found.deliveries:
                way = path(int(node_of[message[other]]), int(node_of[message[one]]), before, label)
                found = Early(
                    0, (self._began(int(events[one])), self._began(int(events[other]))),
                    tuple(labels(self.origin, self.seq, self.message, way)),
                )  # fmt: skip
            found = found._replace(deliveries=found.deliveries + int(count))
        return found

    def requests(self) -> np.ndarray:
        """For each event the request that its message belongs to, by the number of its first message."""
        return _whole_requests(self.group, self.origin, self.message, self.messages)

    def find_disagreeing(self) -> list[Disagreeing]:
        """Compare the order of requests at the replicas where they begin, for requests with several destinations."""
        events, bounds = self._begun
        request = self.requests()[events]
        # A replica begins a request once; ignore further messages of the same request there.
        first = first_deliveries_of(bounds, np.ones(len(events), np.bool_), request, self.messages)
        events, request = events[first], request[first]
        counts = np.bincount(request, minlength=self.messages)
        shared = counts[request] > 1
        events, small = events[shared], (np.cumsum(counts > 0) - 1)[request[shared]]
        bounds = np.searchsorted(self.replica[events], np.arange(self.replicas + 1))
        ranks = self._sending_order(self.requests()[events])
        if ranks is not None and begin_in_order(bounds, ranks, self.op[events], self.kind_of_replica, self.conflicts):
            return []
        found = opposite_orders(
            bounds, small, self.op[events], self.kind_of_replica, self.conflicts, int((counts > 0).sum()), self.own[events]
        )
        return [
            Disagreeing(tuple(self._began(int(events[entry])) for entry in each.entries))  # type: ignore[arg-type]
            for each in found
        ]

    def _sending_order(self, messages: np.ndarray) -> np.ndarray | None:
        """Ranks of messages in an order in which they were sent, no two of them equal; None if logical times do not tell."""
        if not len(self.times) or not self.are_times_right:
            return None
        origin = np.zeros(self.messages, np.int64)
        origin[self.message] = self.origin
        sent, members = self.sent_at()[messages], len(self.start) - 1
        if len(sent) and not 0 <= int(sent.min()) <= int(sent.max()) < UNSENT // members:
            return None
        ranks: np.ndarray = sent * members + origin[messages]
        return ranks

    @cached_property
    def _begun(self) -> tuple[np.ndarray, np.ndarray]:
        """The beginnings of requests, by the replica where they begin."""
        return self._by(self.replica, self.what == START, self.replicas)

    def _by(self, key: np.ndarray, chosen: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
        """The chosen events of correct members, sorted by key and then by time; and the index at which each key begins."""
        events = np.flatnonzero(chosen & self.judged)
        begin, order = grouped(key[events], count)
        return events[order], begin

    def _began(self, event: int) -> Began:
        at, request = int(self.index[event]), bool(self.what[event] == START)
        return Began(
            member=self.rows.process(at),
            pos=self.rows.pos(at),
            message=MessageId(int(self.origin[event]), int(self.seq[event])),
            where=self.rows.word("object" if request else "txn", at),
            op=self.rows.word("op", at),
            request=request,
        )


def _instances(txn: np.ndarray, process: np.ndarray, names: int) -> tuple[np.ndarray, int]:
    """A number for each instance; and how many numbers there may be."""
    home = np.full(names + 1, -1, np.int64)
    home[txn] = process  # Of those without a name it does not matter: then nothing is judged.
    if (home[txn] == process).all():
        return txn, names
    return _dense(txn, process, np.ones(len(txn), np.bool_))


def _dense(one: np.ndarray, other: np.ndarray, chosen: np.ndarray) -> tuple[np.ndarray, int]:
    """Dense codes for the chosen pairs of values, in the pairs' order; and how many codes there are."""
    numbers = np.full(len(one), -1, np.int64)
    keys = one[chosen] * (int(other.max(initial=0)) + 1) + other[chosen]
    if keys.min(initial=0) >= 0 and keys.max(initial=0) < len(one):
        there = np.bincount(keys) > 0
        numbers[chosen] = (np.cumsum(there) - 1)[keys]
        return numbers, int(there.sum())
    names, found = np.unique(keys, return_inverse=True)
    numbers[chosen] = found.reshape(-1)
    return numbers, len(names)


def _whole_requests(group: np.ndarray, origin: np.ndarray, message: np.ndarray, size: int) -> np.ndarray:
    """For each event, the request that its message is part of, named by the first message with the same group."""
    own = np.arange(size)
    grouped = group >= 0
    key = group[grouped] * (int(origin.max(initial=0)) + 1) + origin[grouped]
    _, first, which = np.unique(key, return_index=True, return_inverse=True)
    own[message[grouped]] = message[grouped][first][which.reshape(-1)]
    whole: np.ndarray = own[message]
    return whole


def _matrices(declared: Conflicts, objects: Sequence[str], operations: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    """For each object the number of its kind, and for each kind the conflict matrix of the operations. Objects that declare the
    same conflicts are of one kind."""
    kinds: dict[str, int] = {}
    found: list[np.ndarray] = []
    kind_of = np.zeros(max(1, len(objects)), np.int64)
    as_written: dict[str, str] = {}
    for at, name in enumerate(objects):
        lists = declared.get(name, {})
        written = repr(lists)
        if written not in as_written:  # Objects are many, and few of them differ.
            as_written[written] = repr(sorted((op, sorted(against)) for op, against in lists.items()))
        key = as_written[written]
        if key not in kinds:
            kinds[key] = len(found)
            matrix = np.ones((len(operations), len(operations)), np.bool_)
            for i, one in enumerate(operations):
                for j, other in enumerate(operations):
                    if one in lists and other in lists:
                        matrix[i, j] = other in lists[one] or one in lists[other]
            found.append(matrix)
        kind_of[at] = kinds[key]
    nothing = np.ones((1, len(operations), len(operations)), np.bool_)
    return kind_of, np.stack(found) if found else nothing
