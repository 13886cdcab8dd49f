"""What is on its way between members, and whatever else will happen."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from quire.model.packets import Packet

Parcel = tuple[int, Packet, int, tuple[int, ...], int, int]
"""Source, packet, logical time of its sending, receivers, and the key and length of the run in it (key -1: none)."""

Entry = tuple[int, int, Callable[[Any], None] | None, Any]
"""Something that will happen: when, the running number that breaks ties, and act(item), or None for a parcel that arrives."""
