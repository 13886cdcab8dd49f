"""Strongly connected components of a directed graph, and the shortest cycle in them."""

from __future__ import annotations

import numpy as np

from quire.pipeline.compiled import compiled


@compiled
def outgoing(edges: np.ndarray, nodes: int) -> tuple[np.ndarray, np.ndarray]:
    """The edges grouped by source: those that leave node n are `order[begin[n]:begin[n + 1]]`."""
    begin = np.zeros(nodes + 1, np.int64)
    for edge in range(len(edges)):
        begin[edges[edge, 0] + 1] += 1
    for node in range(nodes):
        begin[node + 1] += begin[node]
    fill = begin[:nodes].copy()
    order = np.empty(len(edges), np.int64)
    for edge in range(len(edges)):
        order[fill[edges[edge, 0]]] = edge
        fill[edges[edge, 0]] += 1
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
def shortest(edges: np.ndarray, begin: np.ndarray, order: np.ndarray, component: np.ndarray, steps_max: int) -> np.ndarray:
    """The edges of the shortest cycle found, searching from every node of a component until `steps_max` steps are used up."""
    nodes = len(begin) - 1
    best = np.empty(0, np.int64)
    queue = np.empty(nodes, np.int64)
    came = np.full(nodes, -1, np.int64)
    seen = np.full(nodes, -1, np.int64)
    far = np.zeros(nodes, np.int64)
    steps = 0
    for source in range(nodes):
        if component[source] < 0:
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
    return best
