"""Significant precedence, as a graph that grows with the trace and no faster.

Of two messages the first significantly precedes the second if an instance sent or received it before it sent the second;
or if that was an instance that had ended when the second's began, at the same object, their operations conflicting;
or through other messages. Every event of an instance is a node whose past is that of the event before and that of the
message received. What ended instances of one operation at one object knew is one node more for each of them, so an
instance that begins has a step for each operation that conflicts with its own, however many ended before.

Nodes are numbered in an order of the trace in which every cause comes first. So a message can only precede a later one,
and the search for it in the past of another need not go further back than itself.
"""

from __future__ import annotations

import numpy as np

from quire.pipeline.compiled import compiled

SEND_REQUEST, SEND_RESPONSE, START, RECEIVE, OTHER = range(5)
"""What an event is to the instance that it belongs to. A request that is refused is received and starts nothing."""


@compiled
def sequence(start: np.ndarray, turn: np.ndarray) -> np.ndarray:
    """The events in the order in which their processes have their turns."""
    cursor = start[:-1].copy()
    order = np.empty(len(turn), np.int64)
    for step in range(len(turn)):
        order[step] = cursor[turn[step]]
        cursor[turn[step]] += 1
    return order


@compiled
def build(
    order: np.ndarray, what: np.ndarray, message: np.ndarray, instance: np.ndarray, replica: np.ndarray, op: np.ndarray,
    conflicts: np.ndarray, kind: np.ndarray, messages: int, instances: int, nodes: int,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:  # fmt: skip
    """The node of each message (-1: never sent), and for each node its two predecessors (-1: none) and its message (-1: none).

    `replica` numbers the object and the member of a start, `kind` says which of the `conflicts` applies there.
    """
    node_of = np.full(messages, -1, np.int64)
    before = np.full((nodes, 2), -1, np.int64)
    label = np.full(nodes, -1, np.int64)
    chain = np.full(instances, -1, np.int64)
    began_at = np.full(instances, -1, np.int64)
    began_as = np.full(instances, -1, np.int64)
    ended = np.zeros(instances, np.bool_)
    operations = conflicts.shape[1]
    done = np.full((len(kind), operations), -1, np.int64)
    count = 0
    for event in order:
        mine, which = instance[event], message[event]
        if what[event] == SEND_REQUEST or what[event] == SEND_RESPONSE:
            if node_of[which] >= 0:
                continue
            before[count, 0] = chain[mine]
            label[count] = which
            node_of[which] = chain[mine] = count
            count += 1
            at = began_at[mine]
            if what[event] == SEND_RESPONSE and at >= 0 and not ended[mine]:
                ended[mine] = True
                before[count, 0] = done[at, began_as[mine]]
                before[count, 1] = chain[mine]
                done[at, began_as[mine]] = count
                count += 1
        elif what[event] == START or what[event] == RECEIVE:
            if what[event] == START and began_at[mine] < 0:
                at, own = replica[event], op[event]
                began_at[mine], began_as[mine] = at, own
                for other in range(operations):
                    if done[at, other] >= 0 and conflicts[kind[at], own, other]:
                        before[count, 0] = chain[mine]
                        before[count, 1] = done[at, other]
                        chain[mine] = count
                        count += 1
            before[count, 0] = chain[mine]
            before[count, 1] = node_of[which]
            chain[mine] = count
            count += 1
    return node_of, before[:count], label[:count]


@compiled
def too_early(
    bounds: np.ndarray, message: np.ndarray, op: np.ndarray, kind: np.ndarray, conflicts: np.ndarray,
    node_of: np.ndarray, before: np.ndarray,
) -> tuple[int, int, int]:  # fmt: skip
    """In sequences of messages: how many come before one that conflicts with them and significantly precedes them, and of
    the first of them its index and the index of the other. Where a sequence's kind is negative, all conflict."""
    size = len(message)
    lowest = np.empty(size + 1, np.int64)
    visited = np.full(len(before), -1, np.int64)
    wanted = np.full(len(before), -1, np.int64)
    stack = np.empty(2 * len(before) + 2, np.int64)
    count, first, second = 0, -1, -1
    far = np.iinfo(np.int64).max
    for each in range(len(bounds) - 1):
        low, high = bounds[each], bounds[each + 1]
        lowest[high] = far
        for index in range(high - 1, low - 1, -1):
            node = node_of[message[index]]
            lowest[index] = min(lowest[index + 1], node) if node >= 0 else lowest[index + 1]
        for index in range(low, high):
            top = node_of[message[index]]
            if top < 0:
                continue
            bottom = far
            later = index + 1
            while later < high and lowest[later] < top:
                node = node_of[message[later]]
                if 0 <= node < top and (kind[each] < 0 or conflicts[kind[each], op[index], op[later]]):
                    wanted[node] = index
                    bottom = min(bottom, node)
                later += 1
            if bottom == far:
                continue
            depth = 1
            stack[0] = top
            hit = -1
            while depth > 0 and hit < 0:
                depth -= 1
                node = stack[depth]
                for side in range(2):
                    past = before[node, side]
                    if past >= bottom and visited[past] != index:
                        visited[past] = index
                        if wanted[past] == index:
                            hit = past
                        stack[depth] = past
                        depth += 1
            if hit >= 0:
                if count == 0:
                    first = index
                    for later in range(index + 1, high):
                        if node_of[message[later]] == hit:
                            second = later
                            break
                count += 1
    return count, first, second


@compiled
def path(first: int, last: int, before: np.ndarray, label: np.ndarray) -> np.ndarray:
    """The messages on a way with the fewest messages from the node `first` to the node `last`, both included."""
    distance = np.full(last + 1, -1, np.int64)
    following = np.full(last + 1, -1, np.int64)
    distance[last] = 0
    # Predecessors have smaller numbers, so going down every node is final when its turn comes.
    for node in range(last, first, -1):
        if distance[node] < 0:
            continue
        for side in range(2):
            past = before[node, side]
            if past >= first:
                far = distance[node] + (1 if label[past] >= 0 else 0)
                if distance[past] < 0 or far < distance[past]:
                    distance[past] = far
                    following[past] = node
    found = np.empty(distance[first] + 1, np.int64)
    count, node = 0, first
    while node >= 0:
        if label[node] >= 0:
            found[count] = label[node]
            count += 1
        node = following[node]
    return found[:count]
