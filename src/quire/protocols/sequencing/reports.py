"""A client's reports: how far it has delivered its groups, to the sequencer of each, which also request what comes after."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from quire.protocols.node import Send
from quire.protocols.sequencing import packets as wire


def reports(me: int, locations: Mapping[str, int], delivered: Mapping[str, int], curious: Iterable[str]) -> list[Send]:
    """One packet for each sequencer concerned. `curious`: the groups of which the client wants to know how far they are
    stable."""
    asks: dict[int, set[str]] = {}
    for group in curious:
        if group in locations:
            asks.setdefault(locations[group], set()).add(group)
    have: dict[int, dict[str, int]] = {}
    for group, number in delivered.items():
        have.setdefault(locations[group], {})[group] = number
    return [
        Send(wire.Fetch(me, have.get(location, {}), tuple(sorted(asks.get(location, ())))), (location,))
        for location in sorted({*asks, *have})
    ]
