"""The settings that all nodes of one store share: times and choices."""

from __future__ import annotations

from typing import Literal

import msgspec

MILLISECOND = 1_000_000


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """Times that affect how long things take, but never whether they are correct."""

    order: Literal["receipt", "stable"] = "receipt"
    """`all` only. stable: requests wait in the order layer until none can come before them, so that some can be omitted."""
    beat_ns: int = 20 * MILLISECOND
    """How long a client is silent under `stable` before it says that it is still there."""
    repeat_ns: int = 100 * MILLISECOND
    """What is not answered or confirmed after this time is sent again."""
    patience_ns: int = 5000 * MILLISECOND
    """A client gives up an operation, or a decision, that takes longer."""
    lease_ns: int = 1000 * MILLISECOND
    """A transaction whose client is silent for longer is ended by the replicas (`majority`), or its readers told (`all`)."""
    gossip_ns: int = 200 * MILLISECOND
    """`majority`: how often replicas compare what was decided."""
    cap_step: int = 64
    """`majority`: how far ahead a replica notes on its disk that transactions have read."""
    owed_max: int = 1 << 16
    """`majority`: how many decisions a replica keeps for another that is silent, before it gives that one up for good."""
    remembered: int = 4096
    """`majority`: of how many of the latest transactions a replica remembers how they ended, at least."""
