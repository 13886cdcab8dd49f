"""Records receipts in a trace: when a member received a message that it delivered later.

A trace has receipts only on request, because there are as many as deliveries, and only people need them, to see how long a
message was held back. A message is received when the protocol first takes a packet that carries it.
"""

from __future__ import annotations

from collections.abc import Callable

from quire.model.packets import Packet
from quire.protocols.contract import Deliver, Effects


class Received(Deliver, frozen=True, gc=False):
    """A pseudo-delivery that is only recorded in the trace, before the effects of the packet."""


class Receipts:
    """A member's `receive`, and what it received before."""

    def __init__(self, me: int, receive: Callable[[int, Packet], Effects]) -> None:
        self._me = me
        self._receive = receive
        self._known: set[tuple[int, int]] = set()

    def receive(self, source: int, packet: Packet) -> Effects:
        effects = self._receive(source, packet)
        run = packet.carried()
        if run is None or run.origin == self._me or (run.origin, run.first) in self._known:
            return effects
        self._known.add((run.origin, run.first))
        return (Received(run), *effects)
