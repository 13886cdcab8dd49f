"""The relay load of a member of a hierarchy: how much it forwards for others, as it records itself."""

from __future__ import annotations

import msgspec


class RelayLoad(msgspec.Struct, frozen=True):
    """How much a member forwards for others: packets that arrived, and counts in the headers that it sent."""

    role: str
    arrived: int
    entries: int
