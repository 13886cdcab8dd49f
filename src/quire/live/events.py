"""What a person who runs a group wants to be told of, as a value and as one line of the log.

connected, disconnected  a peer came or went; what is on its link is kept
stalled, recovered       a peer acknowledges nothing that was sent to it, for so long; or does so again
gap                      a message is held back here for so long, and whom it waits for
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Literal

import msgspec

log = logging.getLogger("quire.live")

Kind = Literal["connected", "disconnected", "stalled", "recovered", "gap"]
_WARNINGS = ("disconnected", "stalled", "gap")


class Event(msgspec.Struct, frozen=True):
    kind: Kind
    peers: tuple[int, ...]
    for_s: float = 0.0
    why: str = ""


Listener = Callable[[Event], None]


class Reporter:
    """Writes each event to the log and tells whoever listens."""

    def __init__(self, group: str, me: int) -> None:
        self.listener: Listener | None = None
        self._group = group
        self._me = me

    def __call__(self, event: Event) -> None:
        level = logging.WARNING if event.kind in _WARNINGS else logging.INFO
        if log.isEnabledFor(level):
            peers = ",".join(map(str, event.peers))
            how_long = f" for_s={event.for_s:.1f}" if event.for_s else ""
            why = f" why={event.why!r}" if event.why else ""
            log.log(level, "group=%s member=%d event=%s peer=%s%s%s", self._group, self._me, event.kind, peers, how_long, why)
        if self.listener is not None:
            self.listener(event)
