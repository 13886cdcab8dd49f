"""The interface of a service in the simulator: its nodes, the workload of their applications, and the results.

A group protocol is a class that the engine drives. A service has several kinds of nodes (sequencers and clients, replicas and
transactions) whose applications differ from service to service, so each service has its own scenario. The simulator gives it a
world with a network, starts it, lets time pass until it is done, and collects the results.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from array import array
from collections.abc import Mapping
from typing import Any, ClassVar

import msgspec

from quire.model.moments import Happened
from quire.model.orders import Guarantee
from quire.simulation.config import SimulationConfig
from quire.simulation.world import World


class Scenario(ABC):
    """Adds `processes` nodes to the world when it is created; members come first, so that they keep their numbers."""

    survives_crashes: ClassVar[bool] = False
    instead_of_faults: ClassVar[str] = "leave them out"
    """What to do where the words of `--faults` are given; empty: the scenario does itself what they say."""

    @classmethod
    def suited_to(cls, options: Any) -> type[Scenario]:  # noqa: ARG003
        """The scenario for these options."""
        return cls

    @classmethod
    @abstractmethod
    def processes(cls, config: SimulationConfig, options: Any) -> int:
        """How many nodes there will be, members and all others. Raises BadInput where the settings make no sense."""

    def __init__(self, config: SimulationConfig, options: Any, world: World) -> None:
        self.config = config
        self.options = options
        self.world = world
        self.origin_waits = array("q")
        """Nanoseconds that messages took to be delivered to their senders; taken away as the run goes on."""
        self.remote_waits = array("q")

    @abstractmethod
    def start(self) -> None:
        """Schedule what applications do."""

    @abstractmethod
    def done(self) -> bool:
        """Whether all of it was done and nothing is unfinished anywhere. Asked after every event: it must be cheap."""

    @abstractmethod
    def sent(self) -> int:
        """How many messages were sent so far, of all that `total` says."""

    @abstractmethod
    def total(self) -> int: ...

    @abstractmethod
    def complete(self) -> bool:
        """Asked at the end: whether every message reached everybody that was to deliver it."""

    @abstractmethod
    def promises(self) -> frozenset[Guarantee]:
        """What the trace of this run must satisfy."""

    @abstractmethod
    def groups(self) -> Mapping[str, tuple[int, ...]]:
        """The groups by name, each with those that were its members at some time."""

    def settings(self) -> dict[str, object]:
        """What else the description of the run must say so that its trace can be judged."""
        return {}

    def details(self) -> dict[str, object]:
        """What only this service can say of a run: counts, ratios, lists of them."""
        return {}

    def happened(self) -> tuple[Happened, ...]:
        """What was done to processes, and what came of it."""
        return ()


class Service(msgspec.Struct, frozen=True):
    """How a service is found and set up; as a protocol's entry in the registry."""

    name: str
    summary: str
    scenario: type[Scenario]
    options: type[msgspec.Struct]
