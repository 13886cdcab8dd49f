"""A join or leave that is under way at a client."""

from __future__ import annotations

import msgspec

from quire.protocols.sequencing import packets as wire

WAIT_TICKS_MAX = 8
"""What is repeated is repeated after one tick, then two, four … up to so many."""


class Request(msgspec.Struct):
    """A join or leave in progress, with the packet that is retransmitted."""

    group: str
    packet: wire.Join | wire.Leave | wire.Prepare
    again_at: int
    wait: int
