"""Checks that any two destinations begin the conflicting requests they have in common in the same order.

If every destination begins conflicting requests in the order in which they were sent, no two destinations disagree; that is
seen in one pass. Otherwise, as only conflicting operations are ordered, the destinations' sequences cannot simply be merged.
Instead, a graph is sorted topologically: a request follows one node for each operation that conflicts with its own, and that
node follows every earlier request of that operation. If the whole graph can be sorted, no two destinations disagree on
conflicting requests. Whatever remains unsorted is compared pair by pair.
"""

from __future__ import annotations

from collections import defaultdict
from itertools import combinations
from typing import NamedTuple

import numpy as np

from quire.pipeline.auditing.total import first_inversion
from quire.pipeline.compiled import compiled


class Opposite(NamedTuple):
    """Two destinations that disagree, and of two requests that the one begins in this order, the other in the other, where the
    one begins each of them, and then the other."""

    one: int
    other: int
    entries: tuple[int, int, int, int]


def opposite_orders(
    bounds: np.ndarray, request: np.ndarray, op: np.ndarray, kind: np.ndarray, conflicts: np.ndarray, requests: int,
    own: np.ndarray,
) -> list[Opposite]:  # fmt: skip
    """Compare the sequences of requests begun at each destination; those of destination d are at `bounds[d]` to
    `bounds[d + 1]`. Of two requests in different orders the second is one of the `own`, where the one destination begins it."""
    edges, nodes = connect(bounds, request, op, kind, conflicts, requests)
    left = unsorted(edges, nodes, np.ones(nodes, np.bool_))
    if not left[:requests].any():
        return []
    left = unsorted(edges[:, ::-1].copy(), nodes, left)
    kept = np.flatnonzero(left[request])
    at: defaultdict[int, list[int]] = defaultdict(list)
    for index in kept.tolist():
        at[int(request[index])].append(index)
    destination = np.repeat(np.arange(len(bounds) - 1), np.diff(bounds))
    common: defaultdict[tuple[int, int], list[tuple[int, int]]] = defaultdict(list)
    for indices in at.values():
        for one, other in combinations(indices, 2):
            common[int(destination[one]), int(destination[other])].append((one, other))
    found = []
    for pair in sorted(common):
        here, there = np.array(sorted(common[pair]), np.int64).T
        both = conflicts[kind[pair[0]]] & conflicts[kind[pair[1]]]
        first, second = first_inversion(there.copy(), op[here], both, own[here])
        if first >= 0:
            found.append(Opposite(*pair, (int(here[first]), int(here[second]), int(there[first]), int(there[second]))))
    return found


@compiled
def begin_in_order(bounds: np.ndarray, rank: np.ndarray, op: np.ndarray, kind: np.ndarray, conflicts: np.ndarray) -> bool:
    """Whether every destination begins conflicting requests in the order of these ranks, no two of which are equal."""
    operations = conflicts.shape[1]
    latest = np.empty(operations, np.int64)
    for destination in range(len(bounds) - 1):
        latest[:] = -1
        for index in range(bounds[destination], bounds[destination + 1]):
            own = op[index]
            for other in range(operations):
                if latest[other] > rank[index] and conflicts[kind[destination], own, other]:
                    return False
            latest[own] = max(latest[own], rank[index])
    return True


@compiled
def connect(
    bounds: np.ndarray, request: np.ndarray, op: np.ndarray, kind: np.ndarray, conflicts: np.ndarray, requests: int
) -> tuple[np.ndarray, int]:
    """The graph's edges as pairs of nodes, and the number of nodes; the requests are the first nodes."""
    operations = conflicts.shape[1]
    edges = np.empty((len(request) * (operations + 2), 2), np.int64)
    count, nodes = 0, requests
    gathered = np.empty(operations, np.int64)
    for destination in range(len(bounds) - 1):
        gathered[:] = -1
        for index in range(bounds[destination], bounds[destination + 1]):
            own = op[index]
            for other in range(operations):
                if gathered[other] >= 0 and conflicts[kind[destination], own, other]:
                    edges[count] = (gathered[other], request[index])
                    count += 1
            if gathered[own] >= 0:
                edges[count] = (gathered[own], nodes)
                count += 1
            edges[count] = (request[index], nodes)
            count += 1
            gathered[own] = nodes
            nodes += 1
    return edges[:count].copy(), nodes


@compiled
def unsorted(edges: np.ndarray, nodes: int, alive: np.ndarray) -> np.ndarray:
    """Which of the `alive` nodes cannot be sorted topologically, because they are on a cycle or after one."""
    waits = np.zeros(nodes, np.int64)
    begin = np.zeros(nodes + 1, np.int64)
    for edge in range(len(edges)):
        if alive[edges[edge, 0]] and alive[edges[edge, 1]]:
            begin[edges[edge, 0] + 1] += 1
            waits[edges[edge, 1]] += 1
    for node in range(nodes):
        begin[node + 1] += begin[node]
    out = np.empty(begin[nodes], np.int64)
    fill = begin[:nodes].copy()
    for edge in range(len(edges)):
        if alive[edges[edge, 0]] and alive[edges[edge, 1]]:
            out[fill[edges[edge, 0]]] = edges[edge, 1]
            fill[edges[edge, 0]] += 1
    left = alive.copy()
    stack = np.empty(nodes, np.int64)
    depth = 0
    for node in range(nodes):
        if alive[node] and waits[node] == 0:
            stack[depth] = node
            depth += 1
    while depth > 0:
        depth -= 1
        node = stack[depth]
        left[node] = False
        for index in range(begin[node], begin[node + 1]):
            waits[out[index]] -= 1
            if waits[out[index]] == 0:
                stack[depth] = out[index]
                depth += 1
    return left
