"""What identifies a run, and one process's part of it. Nothing here knows what the run is for, or who started it."""

from __future__ import annotations

import socket
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

import msgspec

from quire.model.errors import BadInput
from quire.model.orders import Guarantee
from quire.trace.relay_load import RelayLoad

PART_FORMAT = 3
"""Raised when a reader of older parts would misread newer ones."""

LOG_SUFFIX = ".events"
DESCRIPTION_SUFFIX = ".json"

_SECOND_NS = 1_000_000_000


class RunIdentity(msgspec.Struct, frozen=True, kw_only=True):
    """What all processes of a run agree on, each by itself, before the first of them does anything."""

    run: str
    """The same at all processes of a run; other runs have other names."""
    group: str
    protocol: str
    options: dict[str, object]
    members: int
    """How many processes there are from the beginning; their numbers begin at 0."""
    open: bool = False
    """Whether other processes come and go, under greater numbers."""
    views: bool = False
    """Whether members agree on numbered views, in each of which they number their messages from 0 (`membership_recorder`)."""
    restarts: bool = False
    """Whether a process may be started again and go on, so that there are several parts of it."""
    relays: tuple[int, ...] = ()
    """Processes that neither send nor deliver: a run is whole without their parts."""
    promises: tuple[Guarantee, ...]
    """What the trace must satisfy."""
    groups: dict[str, tuple[int, ...]] = {}
    """The groups that there are from the beginning, by name."""
    settings: dict[str, object] = {}
    """What else the trace needs to be judged, or a reader may want to know."""


class Clock(msgspec.Struct, frozen=True):
    """One moment by both clocks of a host. Two of them tell whether the time of day was set between them."""

    host: str
    wall_ns: int
    monotonic_ns: int


class PartDescription(msgspec.Struct, frozen=True, kw_only=True):
    """Which run, and which process of it. A process that is started again is another incarnation and leaves another part.

    Runs of the same group have the same identity. What tells them apart is which incarnations were linked to each other.
    """

    format: int = PART_FORMAT
    identity: RunIdentity
    process: int
    incarnation: int
    """When the process was started, in nanoseconds; no other start of it has the same number."""
    peers: dict[int, int] = {}
    """The incarnations of the processes with which it was linked when it began to record."""
    met: tuple[tuple[int, int], ...] = ()
    """With whom else it had to do later: each process, and under which incarnation."""
    name: str = ""
    """By which its group knows it, where that is not its number."""
    clock: Clock
    """The time at which it began to record; times in the log are by the wall clock of this host."""
    versions: dict[str, str]

    @property
    def stem(self) -> str:
        """The name of the part's files without their suffixes."""
        return part_stem(self.process, self.incarnation)


class PartEnd(msgspec.Struct, frozen=True, kw_only=True):
    """What a process says at its end. A log without it is of a process that is running, or has crashed."""

    clock: Clock
    failure: str = ""
    """Why the process ended before its group did, or its group before everything was delivered; empty: neither happened."""
    details: dict[str, object] = {}
    """What only this process can say of how it went."""
    relay_load: RelayLoad | None = None
    """Where members pass on what is for others."""


def part_stem(process: int, incarnation: int) -> str:
    """Names of files that tell a person whose they are and since when."""
    started = datetime.fromtimestamp(incarnation // _SECOND_NS, UTC)
    return f"p{process:05d}-{started:%Y%m%dT%H%M%S}{incarnation % _SECOND_NS:09d}Z"


def read_clock() -> Clock:
    return Clock(socket.gethostname(), time.time_ns(), time.monotonic_ns())


def describe_part(
    identity: RunIdentity,
    process: int,
    incarnation: int | None = None,
    peers: Mapping[int, int] | None = None,
    name: str = "",
) -> PartDescription:
    """The part of a process that begins to record now. Where nobody numbers incarnations, this moment does."""
    clock = read_clock()
    return PartDescription(
        identity=identity,
        process=process,
        incarnation=clock.wall_ns if incarnation is None else incarnation,
        peers=dict(peers or {}),
        name=name,
        clock=clock,
        versions={"quire": version("quire")},
    )


def read_description(path: Path) -> PartDescription:
    """Raises BadInput, in one sentence, where the file does not describe a part, and OSError where it cannot be read."""
    try:
        description = msgspec.json.decode(path.read_bytes(), type=PartDescription)
    except msgspec.DecodeError as error:
        raise BadInput(f"{path} does not describe a process's part of a run: {error}") from error
    if description.format != PART_FORMAT:
        raise BadInput(f"{path} has format {description.format}, this version reads format {PART_FORMAT}")
    return description
