"""What must be true of a sequencing service when it has come to rest."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import combinations, pairwise

from quire.protocols.sequencing.events import JOIN, LEAVE, MESSAGES
from tests.sequencing.kit import FOREVER_NS, Seen, Service

STUCK = "stuck"


def wrong_with(service: Service) -> str | None:
    """The first thing that is not as it must be."""
    checks = [_violation, _slices, _stuck, _dests]
    if service.options.totally:
        checks.append(_pairwise)
    if service.options.acyclic:
        checks.append(_acyclic)
    checks.append(_causal if service.options.causally else _fifo)
    return next((found for check in checks if (found := check(service)) is not None), None)


def _violation(service: Service) -> str | None:
    return service.violations[0] if service.violations else None


def _stuck(service: Service) -> str | None:
    if not service.ended:
        undone = [str(host.node.address) for host in service.hosts if not host.node.idle()]
        held = {client.address: client.hold.held for client in service.clients if client.hold.held_events}
        return f"{STUCK}: nodes {undone} are not idle, held {held}"
    for sequencer in service.sequencers:
        for group, state in sequencer.groups.items():
            if service.directory.locations[group] != sequencer.address:
                return f"place: {group} is at {sequencer.address}, not where the directory says"
            if state.history or state.kept:
                return f"history: {group} keeps {list(state.history)}"
            if set(service.directory.entries[group]) != set(state.members):
                return f"entries: {group} has {set(state.members)}, the directory {service.directory.entries[group]}"
            behind = [each for each in state.members if service.clients[each].hold.delivered.get(group) != state.seq]
            if behind:
                return f"{STUCK}: {behind} lack events of {group}"
    if sum(len(sequencer.groups) for sequencer in service.sequencers) != len(service.directory.locations):
        return "place: a group is nowhere, or twice"
    missing = set(service.past) - {
        (seen.who, number) for log in service.log.values() for seen in log.values() for number in _numbers(seen)
    }
    return f"lost: {sorted(missing)[:3]}" if missing else None


def memberships(service: Service, me: int) -> list[tuple[str, list[Seen]]]:
    """What a client delivered, cut into its memberships."""
    open_: dict[str, list[Seen]] = {group: [] for group, members in service.founders.items() if me in members}
    closed: list[tuple[str, list[Seen]]] = []
    for seen in service.delivered[me]:
        if seen.kind == JOIN and seen.who == me:
            open_[seen.group] = [seen]
        else:
            open_[seen.group].append(seen)
            if seen.kind == LEAVE and seen.who == me:
                closed.append((seen.group, open_.pop(seen.group)))
    return closed + list(open_.items())


def _slices(service: Service) -> str | None:
    """One unbroken slice of the group's log for each membership."""
    for me in range(len(service.clients)):
        try:
            found = memberships(service, me)
        except KeyError as error:
            return f"slice: {me} delivered something of {error} outside of it"
        for group, membership in found:
            at = 0
            for seen in membership:
                starts_well = seen is membership[0] and (seen.kind == JOIN and seen.who == me)
                if not starts_well and seen.seq != at + 1 and not service.is_blank(group, at + 1, seen.seq):
                    return f"slice: {me} delivered {group}{seen.seq} after {at}"
                if service.log[group].get(seen.seq) != seen:
                    return f"slice: {me} delivered {seen}, the log has {service.log[group].get(seen.seq)}"
                at = seen.seq + seen.size - 1
    return None


def _dests(service: Service) -> str | None:
    """Who was a member when a message was numbered is who delivered it, and what its sender was told."""
    for group, log in service.log.items():
        members = set(service.founders.get(group, ()))
        for seq in sorted(log):
            seen = log[seq]
            if seen.kind != MESSAGES:
                (members.add if seen.kind == JOIN else members.discard)(seen.who)
                continue
            got = {me for me, delivered in enumerate(service.delivered) if seen in delivered}
            told = {frozenset(service.dests.get((seen.who, number), ())) for number in _numbers(seen)}
            if got != members or told != {frozenset(members)}:
                return f"dests: {seen} went to {got}, members were {members}, its sender was told {told}"
    return None


def _span(service: Service, me: int, group: str, membership: Sequence[Seen]) -> tuple[int, int]:
    first, last = membership[0], membership[-1]
    began = service.numbered_at[group, first.seq] if first.kind == JOIN and first.who == me else -1
    ended = service.numbered_at[group, last.seq] if last.kind == LEAVE and last.who == me else FOREVER_NS * 2
    return began, ended


def _events(service: Service, me: int) -> dict[Seen, tuple[int, tuple[int, int]]]:
    """The events of a client: when in its order, and the membership around each."""
    order = {seen: location for location, seen in enumerate(service.delivered[me])}
    return {
        seen: (order[seen], _span(service, me, group, membership))
        for group, membership in memberships(service, me)
        for seen in membership
    }


def _pairwise(service: Service) -> str | None:
    """Two clients agree on two messages, joins or leaves if at some instant both were in both groups."""
    views = [_events(service, me) for me in range(len(service.clients))]
    for p, q in combinations(range(len(views)), 2):
        common = [seen for seen in views[p] if seen in views[q]]
        for one, other in combinations(common, 2):
            (p1, s1), (p2, s2) = views[p][one], views[p][other]
            (q1, s3), (q2, s4) = views[q][one], views[q][other]
            together = max(s[0] for s in (s1, s2, s3, s4)) <= min(s[1] for s in (s1, s2, s3, s4))
            if (p1 < p2) != (q1 < q2) and together:
                return f"pairwise: {p} and {q} disagree on {one} and {other}"
    return None


def _acyclic(service: Service) -> str | None:
    """The delivery orders of all clients together have no cycle."""
    after: dict[Seen, set[Seen]] = defaultdict(set)
    for delivered in service.delivered:
        messages = [seen for seen in delivered if seen.kind == MESSAGES]
        for one, other in pairwise(messages):
            after[one].add(other)
    return "cycle: the orders of all clients have a cycle" if _has_cycle(after) else None


def _causal(service: Service) -> str | None:
    """Causes before effects, wherever both are delivered."""
    for me, delivered in enumerate(service.delivered):
        before = 0
        everything = [(seen.who, number) for seen in delivered if seen.kind == MESSAGES for number in _numbers(seen)]
        all_bits = sum(service.bit[message] for message in everything)
        for message in everything:
            late = service.past[message] & all_bits & ~before
            if late:
                return f"causal: {me} delivered {message} before what it depends on ({bin(late)})"
            before |= service.bit[message]
    return None


def _fifo(service: Service) -> str | None:
    """What one client sends to one group comes in that order."""
    for me, delivered in enumerate(service.delivered):
        last: dict[tuple[str, int], int] = {}
        for seen in delivered:
            if seen.kind == MESSAGES:
                if seen.first < last.get((seen.group, seen.who), -1):
                    return f"fifo: {me} delivered {seen} late"
                last[seen.group, seen.who] = seen.first
    return None


def disagreements(service: Service) -> tuple[int, int]:
    """Of the pairs of concurrent messages of two groups that two clients delivered: how many in opposite orders, and
    how many there are."""
    views = [
        {(seen.who, seen.first): location for location, seen in enumerate(delivered) if seen.kind == MESSAGES}
        for delivered in service.delivered
    ]
    opposite = total = 0
    for p, q in combinations(views, 2):
        for one, other in combinations([message for message in p if message in q], 2):
            related = service.past[one] & service.bit[other] or service.past[other] & service.bit[one]
            if service.destination[one] != service.destination[other] and not related:
                total += 1
                opposite += (p[one] < p[other]) != (q[one] < q[other])
    return opposite, total


def _numbers(seen: Seen) -> range:
    return range(seen.first, seen.first + seen.size) if seen.kind == MESSAGES else range(0)


def _has_cycle(after: Mapping[Seen, set[Seen]]) -> bool:
    state: dict[Seen, int] = {}
    for root in after:
        stack = [(root, iter(after[root]))] if root not in state else []
        state.setdefault(root, 1)
        while stack:
            node, others = stack[-1]
            for other in others:
                if state.get(other) == 1:
                    return True
                if other not in state:
                    state[other] = 1
                    stack.append((other, iter(after.get(other, ()))))
                    break
            else:
                state[node] = 2
                stack.pop()
    return False
