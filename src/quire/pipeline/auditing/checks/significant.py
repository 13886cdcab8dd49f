"""Significant order: conflicting requests begin in the order of significant precedence, and in the same order everywhere.

Of two conflicting requests at an object of a member, the one that significantly precedes the other begins first. An instance
that made calls receives the answers in that order. Two conflicting requests that share two destinations begin in the same
order at both. One task reads the whole trace, because significant precedence may pass through any members and any time span.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
import numpy as np

from quire.model.errors import BadInput
from quire.model.messages import MessageId
from quire.model.orders import Guarantee
from quire.pipeline.auditing.check import AuditCheck, Need, Question, TaskKind
from quire.pipeline.auditing.conflicts import opposite_orders
from quire.pipeline.auditing.explanations import Explanation, Log
from quire.pipeline.auditing.group_history import first_deliveries_of
from quire.pipeline.auditing.results import Results
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
from quire.pipeline.auditing.verdicts import LoggedEvent, Witness
from quire.pipeline.labels import Labelled, read_labelled
from quire.pipeline.layout import RowGroup, World, correct_members
from quire.pipeline.merge import rebuild
from quire.pipeline.numbering import count_sends
from quire.trace.kinds import DELIVER, SEND

COLUMNS = ("group", "object", "op", "txn")

Conflicts = dict[str, dict[str, list[str]]]
"""For each object and operation, the operations that conflict with it; an operation that is not listed conflicts with all."""


class SignificantTask(msgspec.Struct, tag="significant"):
    world: World
    groups: tuple[RowGroup, ...]
    conflicts: Conflicts | None


class Began(msgspec.Struct, frozen=True):
    """A delivery of a request to an object, or of a response to an instance (then `where` is that instance)."""

    member: int
    pos: int
    message: MessageId
    where: str
    op: str
    request: bool


class SignificantResult(msgspec.Struct, kw_only=True):
    declared: bool = True
    """Whether the run says which operations conflict. If not, nothing was judged."""
    why: str = ""
    """Why nothing could be judged; if it is set, the fields below are not."""
    early: int = 0
    """How many requests and responses were delivered before a conflicting one that significantly precedes them."""
    opposite: int = 0
    """How many pairs of destinations begin two conflicting requests in different orders."""
    seen: tuple[Began, ...] = ()
    """A delivery that was too early and the one it should have followed; or two at one destination and the same at another."""
    chain: tuple[MessageId, ...] = ()
    """How the second delivery's message significantly precedes the first's: messages, each of which precedes the next."""

    @property
    def violations(self) -> int:
        return self.early + self.opposite


def parse_conflicts(settings: Mapping[str, object]) -> Conflicts | None:
    """The conflicts that a run's settings declare; None if they declare none."""
    if "conflicts" not in settings:
        return None
    try:
        return msgspec.convert(settings["conflicts"], Conflicts)
    except msgspec.ValidationError as error:
        raise BadInput(
            f"settings.conflicts in run.json must list operations for each operation of each object: {error}"
        ) from error


def judge_significant(task: SignificantTask) -> SignificantResult:
    """Read the whole trace, with the text columns, and judge it."""
    if task.conflicts is None:
        return SignificantResult(declared=False)
    return judge_calls(read_labelled(task.world, task.groups, COLUMNS), task.conflicts, correct_members(task.world))


def judge_calls(rows: Labelled, declared: Conflicts, correct: np.ndarray, first: np.ndarray | None = None) -> SignificantResult:
    """The part of `judge_significant` that needs no files. Only the deliveries of correct members are judged. `first`: the
    number of the first message that each process sends, if not 0."""
    calls = _Calls(rows, declared, correct, np.zeros(len(correct), np.int64) if first is None else first)
    result = SignificantResult(why=calls.why())
    if not result.why:
        calls.judge_precedence(result)
        calls.judge_agreement(result)
    return result


class _Calls:
    """Sends and deliveries as arrays with one entry per event."""

    def __init__(self, rows: Labelled, declared: Conflicts, correct: np.ndarray, first: np.ndarray) -> None:
        self.rows = rows
        self.first = first
        self.index = index = np.flatnonzero(rows.kind <= DELIVER)
        """The index of each of them among all events."""
        self.start = np.searchsorted(index, rows.start).astype(np.int64)
        self.process = rows.processes()[index]
        self.kind, self.origin, self.seq = rows.kind[index], rows.origin[index], rows.seq[index]
        self.group, self.object, self.op, self.txn = (rows.codes[name][index].astype(np.int64) for name in COLUMNS)
        message, self.messages = identify(self.origin, self.seq)
        self.message = message.astype(np.int64)
        self.what = self._events()
        self.judged = correct[self.process]
        self.instance, self.instances = _dense(self.process, self.txn, np.ones(len(index), np.bool_))
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

    def why(self) -> str:
        """Why nothing can be judged; empty if it can."""
        if missing := int((self.txn < 0).sum()):
            return f"{missing} sends and deliveries do not name their instance in txn"
        if missing := int((self.op < 0).sum()):
            return f"{missing} sends and deliveries do not name their operation in op"
        from_zero = self.seq - self.first[self.origin]
        sent = count_sends(self.start, self.kind, self.origin, from_zero)
        self.turn, exists, *stuck = rebuild(self.start, self.kind, self.origin, from_zero, sent)
        if not exists:
            return f"the logs contradict each other: a delivery of {stuck[0]}:{stuck[1]} happened before it was sent"
        return ""

    def judge_precedence(self, result: SignificantResult) -> None:
        """Judge requests by the replica where they begin, and responses by the instance that receives them."""
        begins, received = self.what == START, self.what == RECEIVE
        nodes = 2 * len(self.index) + int(begins.sum()) * (self.conflicts.shape[1] + 1)
        node_of, before, label = build(
            sequence(self.start, self.turn), self.what, self.message, self.instance, self.replica, self.op,
            self.conflicts, self.kind_of_replica, self.messages, self.instances, nodes,
        )  # fmt: skip
        requests = np.zeros(self.messages, np.bool_)
        requests[self.message[self.what == SEND_REQUEST]] = True
        all_conflict = np.full(self.instances, -1, np.int64)
        for chosen, key, kinds in (
            (begins, self.replica, self.kind_of_replica),
            (received & ~requests[self.message], self.instance, all_conflict),
        ):
            events, bounds = self._by(key, chosen, len(kinds))
            message = self.message[events]
            count, one, other = too_early(bounds, message, self.op[events], kinds, self.conflicts, node_of, before)
            if count and not result.early:
                result.seen = (self._began(int(events[one])), self._began(int(events[other])))
                way = path(int(node_of[message[other]]), int(node_of[message[one]]), before, label)
                result.chain = tuple(labels(self.origin, self.seq, self.message, way))
            result.early += int(count)

    def judge_agreement(self, result: SignificantResult) -> None:
        """Compare the order of requests at the replicas where they begin, for requests with several destinations."""
        request = _whole_requests(self.group, self.origin, self.message, self.messages)
        events, _ = self._by(self.replica, self.what == START, self.replicas)
        # A replica begins a request once; ignore further messages of the same request there.
        _, first = np.unique(self.replica[events] * self.messages + request[events], return_index=True)
        events = events[np.sort(first)]
        names, small = np.unique(request[events], return_inverse=True)
        small = small.reshape(-1).astype(np.int64)
        shared = np.bincount(small, minlength=len(names))[small] > 1
        events, small = events[shared], small[shared]
        bounds = np.searchsorted(self.replica[events], np.arange(self.replicas + 1))
        found = opposite_orders(bounds, small, self.op[events], self.kind_of_replica, self.conflicts, len(names))
        result.opposite = found.pairs
        if found.pairs and not result.early:
            chosen = [
                events[(small == each) & (self.replica[events] == at)][0]
                for at in (found.one, found.other)
                for each in (found.first, found.second)
            ]
            result.seen = tuple(self._began(int(event)) for event in chosen)

    def _by(self, key: np.ndarray, chosen: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
        """The chosen events of correct members, sorted by key and then by time; and the index at which each key begins."""
        events = np.flatnonzero(chosen & self.judged)
        events = events[np.argsort(key[events], kind="stable")]
        return events, np.searchsorted(key[events], np.arange(count + 1))

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


def _dense(one: np.ndarray, other: np.ndarray, chosen: np.ndarray) -> tuple[np.ndarray, int]:
    """Dense codes for the chosen pairs of values, in the pairs' order; and how many codes there are."""
    numbers = np.full(len(one), -1, np.int64)
    names, found = np.unique(one[chosen] * (int(other.max(initial=0)) + 1) + other[chosen], return_inverse=True)
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


def _matrices(declared: Conflicts, objects: list[str], operations: list[str]) -> tuple[np.ndarray, np.ndarray]:
    """For each object the number of its kind, and for each kind the conflict matrix of the operations. Objects that declare the
    same conflicts are of one kind."""
    kinds: dict[str, int] = {}
    found: list[np.ndarray] = []
    kind_of = np.zeros(max(1, len(objects)), np.int64)
    for at, name in enumerate(objects):
        lists = declared.get(name, {})
        key = repr(sorted((op, sorted(against)) for op, against in lists.items()))
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


def _explain(results: Results, _: Log) -> Explanation:
    """The two deliveries in the wrong order, and why their order matters. Needs no lookups: the task's result has it all."""
    found = results.of(SignificantResult)
    names = tuple(dict.fromkeys(each.message for each in found.seen))
    witness = Witness(
        messages=tuple(map(str, names)),
        members=tuple(dict.fromkeys(each.member for each in found.seen)),
        positions=tuple(LoggedEvent(each.member, "deliver", str(each.message), each.pos, each.message) for each in found.seen),
        chain=tuple(map(str, found.chain)),
        names=names,
    )
    return Explanation(witness, because(found))


def because(found: SignificantResult) -> str:
    """The first violation as a sentence; called only if there is one."""
    first, second = found.seen[:2]
    if not found.early:
        third, fourth = found.seen[2:]
        return (
            f"{_at(first)} began {_what(first)} before {_what(second)}, "
            f"but {_at(third)} began {_what(fourth)} before {_what(third)}"
        )
    path = ", then ".join(map(str, found.chain))
    if first.request:
        return f"{_at(first)} began {_what(first)} before {_what(second)}, which significantly precedes it: {path}"
    return (
        f"instance {first.where} at member {first.member} received {first.message} "
        f"before {second.message}, which significantly precedes it: {path}"
    )


def _at(began: Began) -> str:
    return f"{began.where} at member {began.member}"


def _what(began: Began) -> str:
    return f"{began.message} ({began.op})"


def _make(question: Question) -> SignificantTask:
    layout = question.layout
    return SignificantTask(layout.world, layout.groups, parse_conflicts(question.info.settings))


CONFLICTS = Need(
    lambda results: not results.of(SignificantResult).declared,
    "run.json does not list conflicting operations in settings.conflicts",
)

SIGNIFICANT = AuditCheck(
    guarantee=Guarantee.SIGNIFICANT,
    holds="conflicting requests began in their significant order, and everywhere alike",
    needs=(CONFLICTS,),
    tasks=(TaskKind(SignificantTask, SignificantResult, judge_significant, _make),),
    count=lambda results: results.of(SignificantResult).violations,
    undecided=lambda results: results.of(SignificantResult).why,
    explain=_explain,
)
