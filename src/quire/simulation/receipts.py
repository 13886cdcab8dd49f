"""Receipts in a trace: when a member got a message that it was to deliver later.

A trace has no receipts unless they are asked for, because they are as many as the deliveries and only people need them:
to see how long a message was held back. A message is received when the protocol first takes a packet that carries it.
"""

from __future__ import annotations

from collections.abc import Callable

from quire.model.packets import Packet
from quire.protocols.contract import Deliver, Effects


class Received(Deliver, frozen=True, gc=False):
    """A delivery to the trace alone: the engine records it before what the packet brought about."""


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
