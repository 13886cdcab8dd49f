"""The types of the event heap: parcels in flight between members, and other scheduled events."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from quire.model.packets import Packet

Parcel = tuple[int, Packet, int, tuple[int, ...], int, int]
"""Source, packet, logical time of its send, receivers, and the key and number of the messages in it (key -1: none)."""

Entry = tuple[int, int, Callable[[Any], None] | None, Any]
"""A scheduled event: its time, the running number that breaks ties, and act(item), or None for the arrival of a parcel."""
