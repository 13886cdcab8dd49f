"""Simulated reliable connections over a network that loses, duplicates and reorders packets.

They do what TCP does for live groups. A lost packet is retransmitted after a timeout, which doubles each time, until it gets
through. If the protocol needs it, packets arrive once and in order: those behind a late one wait. A protocol that copes with
duplicates and reordering gets packets as they arrive.
"""

from __future__ import annotations

from collections.abc import Sequence

from quire.simulation.network import Network

RETRANSMISSION = "RETRANSMISSION"

TIMEOUT_NS_MIN = 1_000_000
BACK_OFF_MAX = 64
"""The longest timeout, as a multiple of the first."""


class Connections:
    """All connections of a group."""

    def __init__(self, network: Network, *, ordered: bool) -> None:
        self.counts = {RETRANSMISSION: 0}
        self._network = network
        self._ordered = ordered
        # A packet and its acknowledgement take two delays; a third leaves some slack.
        self._timeout_ns = max(3 * network.delays.usual_ns_max(), TIMEOUT_NS_MIN)
        self._last: dict[tuple[int, int], int] = {}

    def arrivals(self, source: int, destination: int, now_ns: int) -> Sequence[int]:
        """When a packet that is sent now arrives; several times only if the protocol copes with duplicates. Call it once per
        packet."""
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
