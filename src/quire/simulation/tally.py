"""Counts the relay load if members forward messages for others: arrivals at each member, and counters in headers."""

from __future__ import annotations

from array import array

from quire.model.packets import Packet


class Tally:
    """Counts every copy of a packet that is put on the wire."""

    def __init__(self, members: int) -> None:
        self.arrivals = array("q", bytes(8 * members))
        """Per member, how many packets were sent to it."""
        self.entries = 0
        """Counts of messages in the headers of all copies."""

    def count(self, packet: Packet, receivers: tuple[int, ...]) -> None:
        self.entries += packet.entries * len(receivers)
        for receiver in receivers:
            self.arrivals[receiver] += 1
