"""Strongly connected components of a directed graph, and the shortest cycle in them."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from quire.pipeline.compiled import compiled

_STEPS_MAX = 2_000_000_000
"""The shortest cycle is searched for so long."""


class Knots(NamedTuple):
    """How many strongly connected components there are, the edges of a shortest cycle, and which nodes are on any cycle."""

    components: int
    cycle: list[int]
    knotted: np.ndarray


def find_knots(edges: np.ndarray, nodes: int, ranks: Callable[[], np.ndarray]) -> Knots:
    """Edges may come twice: the first of equal ones counts. `ranks` of the nodes are asked for if there is a cycle; it is the
    faster to find, the fewer edges go back in their order."""
    begin, order = grouped(edges[:, 0].copy(), nodes)
    component, count = strongly_connected(begin, edges[order, 1])
    if not count:
        return Knots(0, [], component >= 0)
    inside = np.flatnonzero((component[edges[:, 0]] >= 0) & (component[edges[:, 0]] == component[edges[:, 1]]))
    _, first = np.unique(edges[inside, 0] * nodes + edges[inside, 1], return_index=True)
    kept = inside[first]
    inner = edges[kept]
    begin, order = grouped(inner[:, 0].copy(), nodes)
    cycle = kept[shortest(inner, begin, order, component, ranks(), _STEPS_MAX)].tolist()
    return Knots(int(count), cycle, component >= 0)


@compiled
def grouped(keys: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """The places of each key below `count`: those of key k are `order[begin[k]:begin[k + 1]]`, in their order."""
    begin = np.zeros(count + 1, np.int64)
    for key in keys:
        begin[key + 1] += 1
    for key in range(count):
        begin[key + 1] += begin[key]
    fill = begin[:count].copy()
    order = np.empty(len(keys), np.int64)
    for place in range(len(keys)):
        order[fill[keys[place]]] = place
        fill[keys[place]] += 1
    return begin, order


@compiled
def strongly_connected(begin: np.ndarray, out: np.ndarray) -> tuple[np.ndarray, int]:
    """For each node the number of its strongly connected component, -1 if it is alone in it; and how many there are (Tarjan,
    without recursion). The edges of node n lead to `out[begin[n]:begin[n + 1]]`."""
    nodes = len(begin) - 1
    number = np.full(nodes, -1, np.int64)
    low = np.zeros(nodes, np.int64)
    on_stack = np.zeros(nodes, np.bool_)
    component = np.full(nodes, -1, np.int64)
    edge = begin[:nodes].copy()
    stack = np.empty(nodes, np.int64)
    path = np.empty(nodes, np.int64)
    depth, counter, count = 0, 0, 0
    for root in range(nodes):
        if number[root] >= 0:
            continue
        path[0], length = root, 1
        while length > 0:
            node = path[length - 1]
            if number[node] < 0:
                number[node] = low[node] = counter
                counter += 1
                stack[depth] = node
                depth += 1
                on_stack[node] = True
            if edge[node] < begin[node + 1]:
                following = out[edge[node]]
                edge[node] += 1
                if number[following] < 0:
                    path[length] = following
                    length += 1
                elif on_stack[following] and number[following] < low[node]:
                    low[node] = number[following]
                continue
            length -= 1
            if length > 0 and low[node] < low[path[length - 1]]:
                low[path[length - 1]] = low[node]
            if low[node] == number[node]:
                alone = stack[depth - 1] == node
                while True:
                    depth -= 1
                    on_stack[stack[depth]] = False
                    if not alone:
                        component[stack[depth]] = count
                    if stack[depth] == node:
                        break
                if not alone:
                    count += 1
    return component, count


@compiled
def shortest(
    edges: np.ndarray, begin: np.ndarray, order: np.ndarray, component: np.ndarray, rank: np.ndarray, steps_max: int
) -> np.ndarray:  # fmt: skip
    """The edges of the shortest cycle. Every cycle goes back somewhere, whatever the `rank` of the nodes is; so it is searched
    from those nodes from which an edge goes back, as long as that is affordable. It begins with its least node."""
    nodes = len(begin) - 1
    goes_back = np.zeros(nodes, np.bool_)
    for edge in range(len(edges)):
        first, second = edges[edge]
        if component[first] >= 0 and component[first] == component[second] and rank[first] >= rank[second]:
            goes_back[first] = True
    best = np.empty(0, np.int64)
    queue = np.empty(nodes, np.int64)
    came = np.full(nodes, -1, np.int64)
    seen = np.full(nodes, -1, np.int64)
    far = np.zeros(nodes, np.int64)
    steps = 0
    for source in range(nodes):
        if not goes_back[source]:
            continue
        if len(best) == 2 or (len(best) and steps > steps_max):
            break
        queue[0], head, tail, closing = source, 0, 1, -1
        seen[source], far[source] = source, 0
        while head < tail and closing < 0:
            node = queue[head]
            head += 1
            if len(best) and far[node] + 1 >= len(best):
                break
            for index in range(begin[node], begin[node + 1]):
                steps += 1
                following = edges[order[index], 1]
                if following == source:
                    closing = order[index]
                    break
                if component[following] == component[source] and seen[following] != source:
                    seen[following], far[following], came[following] = source, far[node] + 1, order[index]
                    queue[tail] = following
                    tail += 1
        if closing >= 0:
            length = far[edges[closing, 0]] + 1
            best = np.empty(length, np.int64)
            edge = closing
            for step in range(length - 1, -1, -1):
                best[step] = edge
                edge = came[edges[edge, 0]]
    least = 0
    for step in range(len(best)):
        if edges[best[step], 0] < edges[best[least], 0]:
            least = step
    return np.concatenate((best[least:], best[:least]))
