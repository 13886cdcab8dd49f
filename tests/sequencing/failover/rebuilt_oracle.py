"""What must be true of a service that may lose groups when it has come to rest: as of any, but for groups that are lost."""

from __future__ import annotations

from tests.sequencing.failover.oracle import _after_eviction
from tests.sequencing.failover.rebuilt_kit import RebuiltService
from tests.sequencing.oracle import STUCK, _causal, _fifo, _numbers, _pairwise, _slices, _violation


def wrong_with(service: RebuiltService) -> str | None:
    """The first thing that is not as it must be."""
    checks = [_violation, _slices, _told, _stuck, _after_eviction]
    if service.options.totally:
        checks.append(_pairwise)
    checks.append(_causal if service.options.causally else _fifo)
    return next((found for check in checks if (found := check(service)) is not None), None)


def _told(service: RebuiltService) -> str | None:
    """What a sender was told to have a number has that number, and is delivered by who is there to deliver it."""
    for (sender, first), (group, seq, members) in service.told.items():
        if group in service.directory.lost:
            continue
        seen = service.log[group].get(seq)
        expected = {sender} if members is None else {*members}
        if seen is None and expected - service.dead:
            return f"lost: {sender}'s message {first} was acknowledged as {group}{seq}"
        if seen is not None and (seen.who, seen.first) != (sender, first):
            return f"fork: {sender}'s message {first} was acknowledged as {group}{seq}, which is {seen}"
    return None


def _stuck(service: RebuiltService) -> str | None:
    if not service.ended:
        undone = [str(host.node.address) for host in service.hosts if not host.gone and not host.node.idle()]
        held = {client.address: client.hold.held for client in service.clients if client.hold.held_events}
        return f"{STUCK}: nodes {undone} are not idle, held {held}"
    directory = service.directory
    for sequencer in service.sequencers:
        for group, state in sequencer.groups.items():
            if directory.locations[group] != sequencer.address:
                return f"place: {group} is at {sequencer.address}, not where the directory says"
            behind = [each for each in state.members if service.clients[each].hold.delivered.get(group) != state.seq]
            if behind:
                return f"{STUCK}: {behind} lack events of {group}"
            views = {service.clients[each].views[group] for each in state.members}
            if any({*view} != {*state.members} for view in views):
                return f"views: {group} has {[*state.members]}, which its members take for {views}"
            # An entry too many is allowed: that a client has left may be lost with a unit from which the group moved on.
            if not state.effective() <= directory.entries[group].keys():
                return f"entries: {group} has {[*state.members]}, the directory {directory.entries[group]}"
    if sum(len(sequencer.groups) for sequencer in service.sequencers) != len(directory.locations):
        return "place: a group is nowhere, or twice"
    known = {(seen.who, number) for log in service.log.values() for seen in log.values() for number in _numbers(seen)}
    known |= {(sender, first) for sender, first in service.told}
    missing = {
        message for message in service.past
        if message[0] not in service.dead and service.destination[message] not in directory.lost
    } - known  # fmt: skip
    firsts = {(sender, first) for (sender, _, _), (first, _) in service.sent.items()}
    missing &= firsts
    return f"unsent: {sorted(missing)[:3]}" if missing else None
