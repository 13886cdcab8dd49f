"""Checks total order: whether one order of the messages explains the delivery sequences of all members.

The sequences are merged: a message is taken when it is next at every member that delivers it. If all messages are taken, one
order explains every member, so no two members disagree and there is no cycle. If the merge gets stuck, it is also run backwards
from the ends. The messages that neither pass reaches contain all cycles, in their strongly connected components; and only
messages of one component can be delivered in different orders by two members.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import NamedTuple

import msgspec
import numpy as np

from quire.model.messages import MessageId
from quire.pipeline.auditing.cycles import strongly_connected
from quire.pipeline.compiled import compiled
from quire.pipeline.labels import Labelled
from quire.pipeline.slices import Events
from quire.trace.kinds import DELIVER

_SEARCH_STEPS_MAX = 2_000_000_000
"""The effort limit of the search for the cycle with the fewest members, which starts from every message of a component."""
UNRANKED = np.empty(0, np.int32)


class InOrder(msgspec.Struct, frozen=True):
    """A member delivered one message before another."""

    member: int
    before: MessageId
    after: MessageId


class Disagreement(msgspec.Struct, frozen=True):
    """Member `one` delivered `before` before `after`; member `other` delivered it after."""

    one: int
    other: int
    before: MessageId
    after: MessageId

    def steps(self) -> tuple[InOrder, ...]:
        """The disagreement as a cycle of two steps."""
        return InOrder(self.one, self.before, self.after), InOrder(self.other, self.after, self.before)


class TotalResult(msgspec.Struct, kw_only=True):
    pairs: int = 0
    """How many pairs of members disagree."""
    cycles: int = 0
    """The number of strongly connected components with several messages, in the union of the members' orders."""
    disagreement: Disagreement | None = None
    """The disagreement of the first two members that disagree."""
    cycle: tuple[InOrder, ...] = ()
    """A cycle: each step begins with the message that ends the previous step, and the first with the one that ends the last."""


class Disagreements(NamedTuple):
    """How many pairs of members disagree; and for the first pair, two messages, as numbers, in the order in which member `one`
    delivers them."""

    pairs: int = 0
    one: int = -1
    other: int = -1
    before: int = -1
    after: int = -1


def judge_deliveries(events: Events) -> TotalResult:
    """Merge all deliveries of these events."""
    delivered = events.kind == DELIVER
    counts = [np.count_nonzero(delivered[low:high]) for low, high in pairwise(events.start)]
    start = np.concatenate(([0], np.cumsum(counts))).astype(np.int64)
    origin, seq = events.origin[delivered], events.seq[delivered]
    every, size = identify(origin, seq)
    ids, start = first_deliveries(every, start, size)
    return judge_sequences(
        ids,
        start,
        size,
        lambda names: labels(origin, seq, every, names),
        lambda ids, start, size, _: disagreements(ids, start, size),
    )


def judge_sequences(
    ids: np.ndarray, start: np.ndarray, size: int,
    label: Callable[[np.ndarray], list[MessageId]],
    disagree: Callable[[np.ndarray, np.ndarray, int, np.ndarray], Disagreements],
) -> TotalResult:  # fmt: skip
    """Merge sequences of distinct messages, numbered below `size`; that of member p is at `start[p]` to `start[p + 1]`.

    `label` maps message numbers to names. `disagree` is called on the messages that are in cycles: it gets sequences as here,
    renumbered, and for each entry its index in `ids`.
    """
    head, tail = start[:-1].copy(), start[1:].copy()
    if take(ids, head, tail, size, 1, UNRANKED) == len(ids):
        return TotalResult()
    take(ids, head, tail, size, -1, UNRANKED)

    kept = np.concatenate([np.arange(low, high) for low, high in zip(head, tail, strict=True)])
    names, ids = np.unique(ids[kept], return_inverse=True)
    start = np.concatenate(([0], np.cumsum(tail - head))).astype(np.int64)
    component = components(ids, start, len(names))
    keep = component[ids] >= 0
    start = np.concatenate(([0], np.cumsum(keep)))[start].astype(np.int64)
    used, ids = np.unique(ids[keep], return_inverse=True)
    names, component = names[used], component[used]
    found = disagree(ids, start, len(names), kept[keep])
    name = label(names)
    result = TotalResult(pairs=int(found.pairs), cycles=len(np.unique(component)))
    if found.pairs:
        result.disagreement = Disagreement(int(found.one), int(found.other), name[found.before], name[found.after])
        result.cycle = result.disagreement.steps()
    else:
        steps = shortest_cycle(ids, start, component, _SEARCH_STEPS_MAX)
        result.cycle = tuple(InOrder(int(member), name[int(a)], name[int(b)]) for member, a, b in steps)
    return result


def identify(origin: np.ndarray, seq: np.ndarray) -> tuple[np.ndarray, int]:
    """A dense number for every message, computed directly if sequence numbers are dense, as they are in a piece of a sound
    trace."""
    if not len(seq):
        return np.empty(0, np.int64), 0
    low, span, height = int(seq.min()), int(seq.max()) - int(seq.min()) + 1, int(origin.max()) + 1
    if origin.min() >= 0 and span * height <= 4 * len(seq) + 1_000_000:
        return ((seq - low) * height + origin).astype(np.int32 if span * height < 2**31 else np.int64), span * height
    if int(origin.min()) * span > -(2**62) and height * span < 2**62:
        names, ids = np.unique(origin * np.int64(span) + (seq - low), return_inverse=True)
        return ids.astype(np.int64), len(names)
    pairs = np.stack([origin.astype(np.int64), seq], axis=1)
    names, ids = np.unique(pairs, axis=0, return_inverse=True)
    return ids.reshape(-1).astype(np.int64), len(names)


def message_ids(rows: Labelled) -> tuple[np.ndarray, int]:
    """For every send and delivery, the dense number of its message (0 for other events); and an upper bound of the numbers."""
    is_message = rows.kind <= DELIVER
    numbers, size = identify(rows.origin[is_message], rows.seq[is_message])
    ids = np.zeros(len(rows.kind), numbers.dtype)
    ids[is_message] = numbers
    return ids, size


def labels(origin: np.ndarray, seq: np.ndarray, ids: np.ndarray, names: np.ndarray) -> list[MessageId]:
    """The messages with these numbers."""
    order = np.argsort(ids, kind="stable")
    at = order[np.searchsorted(ids[order], names)]
    return [MessageId(int(o), int(s)) for o, s in zip(origin[at], seq[at], strict=True)]


def labels_of(rows: Labelled, ids: np.ndarray, names: np.ndarray) -> list[MessageId]:
    """Like `labels`, for numbers from `message_ids`."""
    is_message = rows.kind <= DELIVER
    return labels(rows.origin[is_message], rows.seq[is_message], ids[is_message], names)


@compiled
def first_deliveries(ids: np.ndarray, start: np.ndarray, size: int) -> tuple[np.ndarray, np.ndarray]:
    """The sequences without repeated messages."""
    last = np.full(size, -1, np.int32)
    kept = np.empty_like(ids)
    bounds = np.zeros_like(start)
    count = 0
    for member in range(len(start) - 1):
        for index in range(start[member], start[member + 1]):
            message = ids[index]
            if last[message] != member:
                last[message] = member
                kept[count] = message
                count += 1
        bounds[member + 1] = count
    return kept[:count], bounds


@compiled
def take(ids: np.ndarray, head: np.ndarray, tail: np.ndarray, size: int, step: int, rank: np.ndarray) -> int:
    """Take messages from the fronts (step 1) or the ends (step -1) of all sequences, while one is next wherever it occurs.

    Returns how many deliveries were taken. Unless `rank` is empty, each message's position in the merge is written to it.
    """
    members = len(head)
    holders = np.zeros(size, np.int32)
    for member in range(members):
        for index in range(head[member], tail[member]):
            holders[ids[index]] += 1
    # A linked list of the members whose next message is m: waiting[m], then behind[member], and so on.
    waiting = np.full(size, -1, np.int32)
    behind = np.full(members, -1, np.int32)
    stack = np.empty(members, np.int32)
    depth = members
    for member in range(members):
        stack[member] = member
    taken = 0
    while depth > 0:
        depth -= 1
        member = stack[depth]
        if head[member] == tail[member]:
            continue
        message = ids[head[member]] if step == 1 else ids[tail[member] - 1]
        behind[member] = waiting[message]
        waiting[message] = member
        holders[message] -= 1
        if holders[message] == 0:
            if len(rank):
                rank[message] = taken
            free = waiting[message]
            while free >= 0:
                taken += 1
                if step == 1:
                    head[free] += 1
                else:
                    tail[free] -= 1
                stack[depth] = free
                depth += 1
                free = behind[free]
    return taken


@compiled
def components(ids: np.ndarray, start: np.ndarray, size: int) -> np.ndarray:
    """For each message, the number of its strongly connected component; -1 if it is alone in it."""
    members = len(start) - 1
    out_start = np.zeros(size + 1, np.int64)
    for member in range(members):
        for index in range(start[member], start[member + 1] - 1):
            out_start[ids[index] + 1] += 1
    for message in range(size):
        out_start[message + 1] += out_start[message]
    out = np.empty(out_start[size], np.int32)
    edge = out_start[:size].copy()
    for member in range(members):
        for index in range(start[member], start[member + 1] - 1):
            message = ids[index]
            out[edge[message]] = ids[index + 1]
            edge[message] += 1
    return strongly_connected(out_start, out)[0]


@compiled
def disagreements(ids: np.ndarray, start: np.ndarray, size: int) -> Disagreements:
    """Count the pairs of members that deliver some two messages in different orders."""
    members = len(start) - 1
    index_there = np.full(size, -1, np.int64)
    pairs, first, second, before, after = 0, -1, -1, -1, -1
    for one in range(members):
        for other in range(one + 1, members):
            for index in range(start[other], start[other + 1]):
                index_there[ids[index]] = index
            furthest, at = -1, -1
            for index in range(start[one], start[one + 1]):
                there = index_there[ids[index]]
                if there < 0:
                    continue
                if there < furthest:
                    if pairs == 0:
                        first, second, before, after = one, other, ids[at], ids[index]
                    pairs += 1
                    break
                furthest, at = there, index
            for index in range(start[other], start[other + 1]):
                index_there[ids[index]] = -1
    return Disagreements(pairs, first, second, before, after)


@compiled
def first_inversion(there: np.ndarray, kind: np.ndarray, ordered: np.ndarray, own: np.ndarray) -> tuple[int, int]:
    """Two messages in the order of one member that another has the other way round, where the order of their kinds
    matters: `there` is where the other has each of them. The second is one of the `own`."""
    furthest = np.full(len(ordered), -1, np.int64)
    at = np.full(len(ordered), -1, np.int64)
    for index in range(len(there)):
        mine = kind[index]
        for other in range(len(ordered)):
            if own[index] and ordered[mine, other] and furthest[other] > there[index]:
                return at[other], index
        if there[index] > furthest[mine]:
            furthest[mine] = there[index]
            at[mine] = index
    return -1, -1


@compiled
def shortest_cycle(ids: np.ndarray, start: np.ndarray, component: np.ndarray, steps_max: int) -> np.ndarray:
    """A cycle with the fewest steps, as rows (member, a, b): the member delivered a before b.

    From a message, one step leads to every message that some member delivers later. For each member only the earliest index
    reached matters, so a search visits every delivery at most once.
    """
    members, size = len(start) - 1, len(component)
    index_at = np.full((members, size), -1, np.int64)
    for member in range(members):
        for index in range(start[member], start[member + 1]):
            index_at[member, ids[index]] = index
    best = np.empty((0, 3), np.int64)
    queue = np.empty(size, np.int64)
    steps = 0
    for source in range(size):
        if len(best) and steps > steps_max:
            break
        reached = start[1:].copy()
        distance = np.full(size, -1, np.int64)
        parent = np.full((size, 2), -1, np.int64)
        queue[0] = source
        head, tail, closed = 0, 1, False
        while head < tail and not closed:
            message = queue[head]
            head += 1
            far = 0 if message == source else distance[message]
            if len(best) and far + 1 >= len(best):
                break
            for member in range(members):
                at = index_at[member, message]
                if at < 0:
                    continue
                for index in range(at + 1, reached[member]):
                    steps += 1
                    following = ids[index]
                    if component[following] != component[source] or distance[following] >= 0:
                        continue
                    distance[following] = far + 1
                    parent[following, 0] = member
                    parent[following, 1] = message
                    if following == source:
                        closed = True
                        break
                    queue[tail] = following
                    tail += 1
                reached[member] = min(reached[member], at + 1)
                if closed:
                    break
        if closed:
            found = np.empty((distance[source], 3), np.int64)
            message = source
            for step in range(distance[source] - 1, -1, -1):
                found[step, 0] = parent[message, 0]
                found[step, 1] = parent[message, 1]
                found[step, 2] = message
                message = parent[message, 1]
            best = found
    return best
