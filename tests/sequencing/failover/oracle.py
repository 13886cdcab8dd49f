"""What must be true of a service that survives, when it has come to rest: as of any, of dead clients too."""

from __future__ import annotations

from quire.protocols.sequencing.events import MESSAGES
from tests.sequencing.failover.kit import SurvivingService
from tests.sequencing.oracle import STUCK, _causal, _fifo, _numbers, _pairwise, _slices, _violation


def wrong_with(service: SurvivingService) -> str | None:
    """The first thing that is not as it must be."""
    checks = [_violation, _slices, _stuck, _after_eviction]
    if service.options.totally:
        checks.append(_pairwise)
    checks.append(_causal if service.options.causally else _fifo)
    return next((found for check in checks if (found := check(service)) is not None), None)


def _stuck(service: SurvivingService) -> str | None:
    if not service.ended:
        undone = [str(host.node.address) for host in service.hosts if not host.gone and not host.node.idle()]
        held = {client.address: client.hold.held for client in service.clients if client.hold.held_events}
        return f"{STUCK}: nodes {undone} are not idle, held {held}"
    for sequencer in service.sequencers:
        for group, state in sequencer.groups.items():
            if service.directory.locations[group] != sequencer.address:
                return f"place: {group} is at {sequencer.address}, not where the directory says"
            behind = [each for each in state.members if service.clients[each].hold.delivered.get(group) != state.seq]
            if behind:
                return f"{STUCK}: {behind} lack events of {group}"
    if sum(len(sequencer.groups) for sequencer in service.sequencers) != len(service.directory.locations):
        return "place: a group is nowhere, or twice"
    known = {(seen.who, number) for log in service.log.values() for seen in log.values() for number in _numbers(seen)}
    missing = {message for message in service.past if message[0] not in service.dead} - known
    return f"lost: {sorted(missing)[:3]}" if missing else None


def _after_eviction(service: SurvivingService) -> str | None:
    """Nothing of a client follows its eviction."""
    for (group, who), number in service.evictions.items():
        for seen in service.log[group].values():
            if seen.kind == MESSAGES and seen.who == who and seen.seq > number:
                return f"evicted: {seen} follows {who}'s eviction by {number}"
    return None
