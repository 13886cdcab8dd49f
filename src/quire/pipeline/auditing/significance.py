"""Significant precedence between messages, as a graph whose size is linear in the trace.

Message m significantly precedes m' if the instance that sent m' had sent or received m before; or if another instance had,
which ended before the sender of m' began, at the same object and with a conflicting operation; or transitively. Every event of
an instance is a node with two predecessors: the instance's previous event, and the message received. Each instance that ends
adds one more node, which collects what the ended instances of its operation at its object knew. So an instance that begins has
one edge for each operation that conflicts with its own, however many instances ended before.

Nodes are numbered in an order of the trace in which causes come before effects. So a message can only precede a later one, and
the search for it in the past of another never has to go further back than its own node.
"""

from __future__ import annotations

import numpy as np

from quire.pipeline.compiled import compiled

SEND_REQUEST, SEND_RESPONSE, START, RECEIVE, OTHER = range(5)
"""The role of an event in its instance. A request that is refused is received but starts nothing."""


@compiled
def sequence(start: np.ndarray, turn: np.ndarray) -> np.ndarray:
    """The event indices in the order of `turn`, which says whose event is next."""
    cursor = start[:-1].copy()
    order = np.empty(len(turn), np.int64)
    for step in range(len(turn)):
        order[step] = cursor[turn[step]]
        cursor[turn[step]] += 1
    return order


@compiled
def build(
    order: np.ndarray, what: np.ndarray, message: np.ndarray, instance: np.ndarray, replica: np.ndarray, op: np.ndarray,
    conflicts: np.ndarray, kind: np.ndarray, instances: int, node_of: np.ndarray, before: np.ndarray, label: np.ndarray,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:  # fmt: skip
    """The node of each message (-1: never sent), and for each node its two predecessors (-1: none) and its message (-1: none):
    they are written to the last three arrays, all of which are -1 before and have room enough.

    `replica` identifies the object and member of a start; `kind` selects the conflict matrix that applies there.
    """
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
    node_of: np.ndarray, before: np.ndarray, own: np.ndarray, place: np.ndarray,
) -> tuple[int, int, int]:  # fmt: skip
    """How many of the `own` messages stand, in their sequence, before a conflicting one that significantly precedes them; and
    for that with the least `place`, its index and that of the other. In a sequence whose kind is negative, all conflict."""
    size = len(message)
    lowest = np.empty(size + 1, np.int64)
    visited = np.full(len(before), -1, before.dtype)
    wanted = np.full(len(before), -1, before.dtype)
    stack = np.empty(2 * len(before) + 2, before.dtype)
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
            if top < 0 or not own[index]:
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
                if count == 0 or place[index] < place[first]:
                    first = index
                    for later in range(index + 1, high):
                        if node_of[message[later]] == hit:
                            second = later
                            break
                count += 1
    return count, first, second


@compiled
def path(first: int, last: int, before: np.ndarray, label: np.ndarray) -> np.ndarray:
    """The messages on a path with the fewest messages from the node `first` to the node `last`, both included."""
    distance = np.full(last + 1, -1, np.int64)
    following = np.full(last + 1, -1, np.int64)
    distance[last] = 0
    # Predecessors have smaller numbers, so in descending order every node is final when it is visited.
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
