"""The additional notices of a client of a service with failover to its application."""

from __future__ import annotations

from quire.protocols.node import Notice


class Unavailable(Notice, frozen=True):
    """No process can run these units now. They will work again when enough of the processes that may run them are back."""

    units: tuple[int, ...]
