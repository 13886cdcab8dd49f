"""Joining a group with fixed members, and the recording of such a member."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from quire.live.groups.commands import AnyState
from quire.live.groups.group import Group
from quire.live.identity import everybody, identify_group
from quire.live.network_options import Network
from quire.live.observing.observer import observer_of
from quire.live.recording import Recording
from quire.live.settings import Settings, read_settings
from quire.trace.tail import TraceTail


def join_fixed(
    group: str,
    me: int,
    members: Sequence[str],
    protocol: str,
    options: Mapping[str, object] | None,
    state: AnyState,
    network: Network,
) -> Group:
    """What `quire.join` does for protocols whose groups have fixed members."""
    settings = read_settings(group, me, members, protocol=protocol, options=options, network=network)
    observer = observer_of(network)
    trace = None if network.trace is None else Path(network.trace)
    recorded = trace is not None or observer is not None
    recording = record_group(settings, trace, tail=None if observer is None else observer.tail) if recorded else None
    return Group(settings, recording, network.on_event, state, observer)


def record_group(
    settings: Settings, directory: Path | None, load: Mapping[str, object] | None = None, tail: TraceTail | None = None
) -> Recording:
    """Record a member of a group in this directory, for observers, or both. `load`: what a command is to send, if that is known
    beforehand."""
    return Recording(directory, identify_group(settings, load), settings.me, (everybody(settings),), tail=tail)
