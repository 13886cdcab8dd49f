"""Operational events: what an operator of a group should know, as values for `on_event` and as lines of the log.

awaited                  peers that have not come yet, for so long, and why the first of them has not
connected, disconnected  a peer came or went; what is on its link is kept
stalled                  a peer acknowledges nothing that was sent to it, for so long
lost                     a peer's process has ended, or nothing was heard from it for longer than the timeout
recovered                a peer that was stalled or lost acknowledges again, or was heard again
gap                      a message is held back here for so long, and whom it waits for
unread                   this member's own application does not take what was delivered, for so long: nothing more is read
evicted                  a sequencer has removed a client from its groups, or a replica was away for too long, and why
too_large                a packet of a service was not sent, because nobody could take it
unrecorded               what happens here is in the trace no more, because it could not be written
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Literal

import msgspec

log = logging.getLogger("quire.live")

Kind = Literal[
    "awaited",
    "connected",
    "disconnected",
    "stalled",
    "lost",
    "recovered",
    "gap",
    "unread",
    "evicted",
    "too_large",
    "unrecorded",
]
_WARNINGS = ("awaited", "disconnected", "stalled", "lost", "gap", "unread", "evicted", "too_large", "unrecorded")


class Event(msgspec.Struct, frozen=True):
    """What happened (`kind`), to which `peers`, for how long so far, and why. docs/live.md lists the kinds."""

    kind: Kind
    peers: tuple[int | str, ...]
    for_s: float = 0.0
    why: str = ""


Listener = Callable[[Event], None]


class Reporter:
    """Writes each event to the log and calls the listener."""

    def __init__(self, group: str, me: int | str) -> None:
        self.listener: Listener | None = None
        self._group = group
        self._me = me

    def __call__(self, event: Event) -> None:
        level = logging.WARNING if event.kind in _WARNINGS else logging.INFO
        if log.isEnabledFor(level):
            peers = ",".join(map(str, event.peers))
            how_long = f" for_s={event.for_s:.1f}" if event.for_s else ""
            why = f" why={event.why!r}" if event.why else ""
            log.log(level, "group=%s member=%s event=%s peer=%s%s%s", self._group, self._me, event.kind, peers, how_long, why)
        if self.listener is not None:
            self.listener(event)
