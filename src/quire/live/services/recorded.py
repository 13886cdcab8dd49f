"""The recording of a process of a service: to a directory, for observers, or both."""

from __future__ import annotations

from pathlib import Path

from quire.live.observing.observer import Observer
from quire.live.recording import Recording
from quire.trace.parts.description import RunIdentity


def record_node(
    identity: RunIdentity, me: int, trace: str | Path | None, observer: Observer | None, *, at_once: bool = False
) -> Recording | None:
    """Record a process in this directory, for observers, or both. `at_once`: so that nothing is missing when the process is
    killed."""
    if trace is None and observer is None:
        return None
    directory, tail = None if trace is None else Path(trace), None if observer is None else observer.tail
    return Recording(directory, identity, me, at_once=at_once, tail=tail)
