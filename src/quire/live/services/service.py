"""Services on real sockets, as `quire run` starts them: each process does its share of a planned load and leaves its trace.

A group protocol needs no more than a name, because every member does the same. A service brings its own processes:
sequencers and clients, objects and their callers, replicas and transactions. `Role` is what one process does; `NodeRole` is
that for a node on the mesh, which is all that most services need.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import msgspec

from quire.live.load import Load
from quire.live.observing.observer import Observer
from quire.live.observing.status import Observed
from quire.live.recording import Recording
from quire.live.services.nodes import Host
from quire.live.services.status import ObservedNode
from quire.live.settings import Settings
from quire.protocols.node import Node, Notice
from quire.protocols.sequencing.failover.configurations import Configuration
from quire.trace.parts.description import RunIdentity

Details = Mapping[str, object]


class Role(ABC):
    """What one process of a service does in a run. Each instance is used once."""

    def __init__(self, load: Load, settings: Settings, recording: Recording | None, observer: Observer | None = None) -> None:
        self.load = load
        self.settings = settings
        self.recording = recording
        self.observer = observer
        self.sent = 0
        self.delivered = 0
        self.on_running: Callable[[Configuration], None] | None = None
        """Called with each configuration of a unit of sequencers that begins to work, where there are such."""
        self.stopping = False
        """Whether it was asked to end before it has done everything."""

    def stop(self) -> None:
        """Begin nothing new, and end when what was begun is done."""
        self.stopping = True

    @abstractmethod
    async def take_part(self) -> None:
        """Join, do everything, and return when it is done everywhere. Raises GroupFailed or NotDelivered."""

    def details(self) -> Details:
        """What only this process can report about the run."""
        return {}


class NodeRole(Role):
    """The role of a node on the mesh, where every process reaches every other."""

    survives: ClassVar[bool] = False
    """Whether the service goes on without processes that are lost."""

    @abstractmethod
    def make_node(self) -> Node:
        """The node of this process."""

    @abstractmethod
    def on_notice(self, host: Host, notice: Notice) -> None:
        """Handle a notice of the node."""

    @abstractmethod
    async def work(self, host: Host) -> None:
        """Do all of the planned work; check `stopping`, and `host.failure`, which may be set at any time."""

    def observed(self, host: Host) -> Observed:
        """What observers see of this process."""
        return ObservedNode(host)

    async def take_part(self) -> None:
        host = Host(
            self.settings, self.make_node(), self.on_notice, recording=self.recording, survives=self.survives,
            observer=self.observer,
        )  # fmt: skip
        host.observed = self.observed(host)
        async with host:
            await self.work(host)


def add_up(details: Sequence[Details]) -> dict[str, object]:
    """Combine the reports of all processes: numbers are added, and of other values the first counts."""
    together: dict[str, object] = {}
    for each in details:
        for name, value in each.items():
            before = together.get(name)
            if isinstance(value, int | float) and isinstance(before, int | float):
                together[name] = before + value
            else:
                together.setdefault(name, value)
    return together


class Service(msgspec.Struct, frozen=True):
    """The registry entry of a live service: how its processes are set up."""

    name: str
    summary: str
    options: type[msgspec.Struct]
    role: Callable[[Load, Settings, Recording | None, Observer | None], Role]
    identify: Callable[[Settings, Mapping[str, object] | None], RunIdentity]
    """What identifies a run with these settings and this load."""
    processes: Callable[[int, Any], int] = lambda members, _options: members
    """How many processes there are for so many members and these options; members come first."""
    process: Callable[[Settings], int | None] = lambda settings: settings.me
    """The number of a process in the trace; None: it leaves none."""
    losable: Callable[[int, Any], range] = lambda _members, _options: range(0)
    """For so many members and these options, the processes that may be lost; they keep a register together."""
    messages: int = 1000
    """How much each member does by default."""
    summarise: Callable[[Sequence[Details]], dict[str, object]] = add_up
    """Combines the reports of the processes for the result of a run."""
