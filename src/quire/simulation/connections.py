"""Connections over a network that loses, repeats and reorders: whatever is sent arrives, at most late.

They do what TCP does for live groups. What is lost is sent again after a timeout, each time after twice as long, until
it gets through. Where the protocol needs it, everything comes once and in order: what follows something late waits behind
it. A protocol that copes with repeated and reordered packets gets them as they come.
"""

from __future__ import annotations

from collections.abc import Sequence

from quire.simulation.network import Network

RETRANSMISSION = "RETRANSMISSION"

TIMEOUT_NS_MIN = 1_000_000
BACK_OFF_MAX = 64
"""How many times the first timeout the longest one is."""


class Connections:
    """All connections of a group."""

    def __init__(self, network: Network, *, ordered: bool) -> None:
        self.counts = {RETRANSMISSION: 0}
        self._network = network
        self._ordered = ordered
        # A packet and its acknowledgement take two delays; a third leaves room for those that are late.
        self._timeout_ns = max(3 * network.delays.usual_ns_max(), TIMEOUT_NS_MIN)
        self._last: dict[tuple[int, int], int] = {}

    def arrivals(self, source: int, destination: int, now_ns: int) -> Sequence[int]:
        """When a packet that is sent now arrives; more than once only where nobody minds. Call it once for each packet."""
        sent_ns, timeout_ns = now_ns, self._timeout_ns
        while not (times := self._network.arrivals(source, destination, sent_ns)):
            self.counts[RETRANSMISSION] += 1
            sent_ns += timeout_ns
            timeout_ns = min(2 * timeout_ns, BACK_OFF_MAX * self._timeout_ns)
        if not self._ordered:
            return times
        way = (source, destination)
        self._last[way] = time = max(min(times), self._last.get(way, 0))
        return (time,)
