"""The additional notices of a client of a service with failover to its application."""

from __future__ import annotations

from quire.protocols.node import Notice


class Unavailable(Notice, frozen=True):
    """Nobody can run these units now; they will work again when enough of the processes are back that may run them."""

    units: tuple[int, ...]
