"""The simulated view service of a group of objects: all survivors remove crashed members, in the same order.

The service is ideal: it is never wrong and never crashes. Its messages take time, so every member fences, reports and installs
at a different time, interleaved with its other input, and further members may crash meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from random import Random

from quire.protocols.objects.departures import Report, union
from quire.protocols.objects.node import ObjectNode
from quire.simulation.world import World

DELAY_NS = 3_000_000
"""The longest delay of a message from or to the service."""


class ObjectViews:
    """Makes one change at a time: asks all survivors, and tells them the result when all have answered."""

    def __init__(self, world: World, random: Random) -> None:
        self.world = world
        self.view = set(range(len(world.hosts)))
        self._random = random
        self._suspected: list[int] = []
        self._leaving: int | None = None
        self._reports: dict[int, Report] = {}
        self._installed: set[int] = set()
        self._told = False

    def crash(self, member: int) -> None:
        """The member stops now; the service notices somewhat later."""
        self.world.crash(member)
        self._soon(partial(self._notice, member))

    def is_quiet(self) -> bool:
        """Whether all crashed members have been removed from the view everywhere."""
        return self._leaving is None and not any(self.world.hosts[member].gone for member in self.view)

    def _soon(self, act: Callable[[], None]) -> None:
        self.world.at(self.world.now + int(self._random.random() * DELAY_NS), lambda _: act(), None)

    def _notice(self, member: int) -> None:
        self._suspected.append(member)
        self._go_on()

    def _go_on(self) -> None:
        if self._leaving is None and self._suspected:
            self._leaving, self._told = self._suspected.pop(0), False
            self._reports, self._installed = {}, set()
            for member in self._survivors():
                self._soon(partial(self._ask, member))
        if self._leaving is None:
            return
        if not self._told and all(member in self._reports for member in self._survivors()):
            self._told = True
            agreed = union(self._reports.values())
            for member in self._survivors():
                self._soon(partial(self._install, member, agreed))
        if self._told and all(member in self._installed for member in self._survivors()):
            self.view.remove(self._leaving)
            self._leaving = None
            self._go_on()

    def _survivors(self) -> list[int]:
        """The members that survive, as far as the service knows."""
        return sorted(self.view - {self._leaving} - set(self._suspected))

    def _ask(self, member: int) -> None:
        host, leaving = self.world.hosts[member], self._leaving
        if host.gone or leaving is None:
            return
        assert isinstance(host.node, ObjectNode)
        report = host.node.fence((leaving,))

        def reported() -> None:
            if self._leaving == leaving:
                self._reports[member] = report
                self._go_on()

        self._soon(reported)

    def _install(self, member: int, agreed: Report) -> None:
        host = self.world.hosts[member]
        if not host.gone:
            assert isinstance(host.node, ObjectNode)
            host.act(host.node.install(self.world.now, agreed))
            self._installed.add(member)
            self._go_on()
