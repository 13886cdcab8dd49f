"""The description of a trace part: which run it belongs to, and which process wrote it; independent of the kind of run."""

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
    """What all processes of a run know in advance, without communication."""

    run: str
    """The run's name, the same at all its processes; other runs have other names."""
    group: str
    protocol: str
    options: dict[str, object]
    members: int
    """How many processes there are from the beginning, numbered from 0."""
    open: bool = False
    """Whether further processes, with greater numbers, may come and go."""
    views: bool = False
    """Whether members agree on numbered views, and number their messages from 0 in each (`membership_recorder`)."""
    restarts: bool = False
    """Whether a process may be restarted and continue, so that it has several parts."""
    relays: tuple[int, ...] = ()
    """Processes that neither send nor deliver: a run is complete without their parts."""
    promises: tuple[Guarantee, ...]
    """The guarantees that the trace must satisfy."""
    groups: dict[str, tuple[int, ...]] = {}
    """The groups that exist from the beginning, by name."""
    settings: dict[str, object] = {}
    """Further settings that are needed to judge the trace, or that may interest a reader."""


class Clock(msgspec.Struct, frozen=True):
    """One moment by both clocks of a host. Two such readings reveal whether the wall clock was set between them."""

    host: str
    wall_ns: int
    monotonic_ns: int


class PartDescription(msgspec.Struct, frozen=True, kw_only=True):
    """The description of a part. A restarted process is a new incarnation and writes a new part.

    Runs of the same group have the same identity; they are distinguished by which incarnations were linked to each other.
    """

    format: int = PART_FORMAT
    identity: RunIdentity
    process: int
    incarnation: int
    """When the process was started, in nanoseconds; unique among the starts of this process."""
    peers: dict[int, int] = {}
    """The incarnations of the processes with which it was linked when it began to record."""
    met: tuple[tuple[int, int], ...] = ()
    """Further processes that it was in contact with later, each with its incarnation."""
    name: str = ""
    """Its name in the group, if that is not its number."""
    clock: Clock
    """When it began to record; times in the log are by this host's wall clock."""
    versions: dict[str, str]

    @property
    def stem(self) -> str:
        """The name of the part's files without their suffixes."""
        return part_stem(self.process, self.incarnation)


class PartEnd(msgspec.Struct, frozen=True, kw_only=True):
    """What a process records when it ends. A log without it belongs to a process that is running or has crashed."""

    clock: Clock
    failure: str = ""
    """Why the process ended before its group, or its group before everything was delivered; empty if neither happened."""
    details: dict[str, object] = {}
    """Details that only this process knows."""
    relay_load: RelayLoad | None = None
    """Set if members forward messages for others."""


def part_stem(process: int, incarnation: int) -> str:
    """A file name that shows the process and its start time."""
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
    """The description for a process that begins to record now. The incarnation defaults to the current time."""
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
    """Read a description. Raises BadInput, with a message of one sentence, if the file is not one, and OSError if it cannot be
    read."""
    try:
        description = msgspec.json.decode(path.read_bytes(), type=PartDescription)
    except msgspec.DecodeError as error:
        raise BadInput(f"{path} does not describe a process's part of a run: {error}") from error
    if description.format != PART_FORMAT:
        raise BadInput(f"{path} has format {description.format}, this version reads format {PART_FORMAT}")
    return description
