"""Which groups must have one sequencer, and which sequencer that should be.

Two groups with two clients in common must share a sequencer, for two clients could otherwise disagree (S2 in
docs/papers.md). What follows from that follows through others too: the *strong component* of a group, all that is reached
from it through pairs of clients in common, moves as a whole.

That makes any two clients agree, and no more: three groups that share one client each, pair by pair, may still be
delivered in a cycle. The orders of all clients have no cycle if, and for some schedule only if, the following graph is a
forest (S3). Take, at every sequencer, the connected components of groups that share any client. The graph joins each such
component with each client in it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

Members = Mapping[str, Iterable[int]]
"""The clients that are, or may be about to be, in each group."""
Locations = Mapping[str, int]
"""The sequencer of each group."""


def strong_component(group: str, members: Members) -> frozenset[str]:
    """The group, and all groups that can be reached from it through pairs of clients in common."""
    return _reached(group, members, _groups_of(members), 2)


def components(members: Members, at_least: int) -> list[frozenset[str]]:
    """All groups, partitioned into those that are connected by at least this many clients in common."""
    groups_of, found, seen = _groups_of(members), [], set[str]()
    for group in members:
        if group not in seen:
            found.append(_reached(group, members, groups_of, at_least))
            seen |= found[-1]
    return found


def _groups_of(members: Members) -> dict[int, list[str]]:
    groups_of: dict[int, list[str]] = {}
    for group, clients in members.items():
        for client in clients:
            groups_of.setdefault(client, []).append(group)
    return groups_of


def _reached(group: str, members: Members, groups_of: Mapping[int, Sequence[str]], at_least: int) -> frozenset[str]:
    reached, todo = {group}, [group]
    while todo:
        shared: dict[str, int] = {}
        for client in members[todo.pop()]:
            for other in groups_of[client]:
                shared[other] = shared.get(other, 0) + 1
        new = [other for other, count in shared.items() if count >= at_least and other not in reached]
        reached.update(new)
        todo.extend(new)
    return frozenset(reached)


def local_components(members: Members, locations: Locations) -> list[frozenset[str]]:
    """The connected components of groups that have the same sequencer and any client in common."""
    by_location: dict[int, dict[str, Iterable[int]]] = {}
    for group, clients in members.items():
        by_location.setdefault(locations[group], {})[group] = clients
    return [component for local in by_location.values() for component in components(local, 1)]


def cycle(members: Members, locations: Locations) -> frozenset[str] | None:
    """The groups on a cycle in the graph of components and clients, or None if it is a forest (S3)."""
    graph: dict[str | int, list[str | int]] = {}
    parts: dict[str, frozenset[str]] = {}
    for part in local_components(members, locations):
        name = min(part)
        parts[name] = part
        graph[name] = []
        for client in sorted({client for group in part for client in members[group]}):
            path = _path(graph, name, client)
            if path is not None:
                return frozenset(group for node in path if isinstance(node, str) for group in parts[node])
            graph[name].append(client)
            graph.setdefault(client, []).append(name)
    return None


def _path(graph: Mapping[str | int, Sequence[str | int]], start: str | int, end: str | int) -> list[str | int] | None:
    """The path between two nodes of a forest."""
    if end not in graph:
        return None
    before: dict[str | int, str | int | None] = {start: None}
    todo = [start]
    while todo:
        node = todo.pop()
        if node == end:
            path, step = [], before[node]
            while step is not None:
                path.append(step)
                step = before[step]
            return [end, *path]
        for other in graph[node]:
            if other not in before:
                before[other] = node
                todo.append(other)
    return None


def to_bring_together(group: str, members: Members, locations: Locations, *, acyclic: bool) -> frozenset[str] | None:
    """The groups that must share a sequencer because of this one, or None if they already do."""
    strong = strong_component(group, members)
    if len({locations[each] for each in strong}) > 1:
        # A part of a component that is left behind alone would cut what is ordered there in two.
        return _whole(strong, members, locations) if acyclic else strong
    return cycle(members, locations) if acyclic else None


def _whole(groups: frozenset[str], members: Members, locations: Locations) -> frozenset[str]:
    return frozenset().union(*(part for part in local_components(members, locations) if part & groups))


def target(groups: Iterable[str], locations: Locations, loads: Mapping[str, float]) -> int:
    """The sequencer at which to bring them together: the one with most of their load, so that the least moves; among equals,
    the one with the least load of all."""
    groups = sorted(groups)
    here = {
        location: sum(loads.get(group, 0.0) for group in groups if locations[group] == location)
        for location in locations.values()
    }
    total = {location: sum(loads.get(group, 0.0) for group in locations if locations[group] == location) for location in here}
    count = {location: sum(locations[group] == location for group in groups) for location in here}
    candidates = {locations[group] for group in groups}
    return min(candidates, key=lambda location: (-here[location], -count[location], total[location], location))


def relief(
    members: Members,
    locations: Locations,
    sequencers: Sequence[int],
    loads: Mapping[str, float],
    *,
    acyclic: bool,
    least: float,
) -> tuple[frozenset[str], int] | None:
    """What to move, and where, so that the busiest sequencer has less to do; None if no move relieves it by at least the
    share `least`."""
    total = dict.fromkeys(sequencers, 0.0)
    for group, location in locations.items():
        total[location] += loads.get(group, 0.0)
    busiest = max(sequencers, key=lambda location: (total[location], -location))
    idlest = min(sequencers, key=lambda location: (total[location], location))
    here = {group: clients for group, clients in members.items() if locations[group] == busiest}
    best: tuple[float, frozenset[str]] | None = None
    for part in components(here, 1 if acyclic else 2):
        load = sum(loads.get(group, 0.0) for group in part)
        after = max(total[busiest] - load, total[idlest] + load)
        if after <= total[busiest] * (1.0 - least) and load and (best is None or after < best[0]):
            best = after, part
    return None if best is None else (best[1], idlest)
