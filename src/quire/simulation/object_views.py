"""The simulated view service of a group of objects: all members remove who crashed, and admit who comes back, in one order.

The service is ideal: it is never wrong and never crashes. Its messages take time, so every member fences, reports, installs and
admits at a different time, interleaved with its other input, and further members may crash meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from random import Random
from typing import Any

from quire.protocols.objects.departures import union
from quire.protocols.objects.node import ObjectNode
from quire.simulation.world import SimulatedHost, World

DELAY_NS = 3_000_000
"""The longest delay of a message from or to the service."""


class _Change:
    """One change of membership. All who are concerned are asked, and told the result when all have answered."""

    def __init__(self, member: int) -> None:
        self.member = member
        self.answers: dict[int, Any] = {}
        self.told = False
        self.done: set[int] = set()

    def concerns(self, view: set[int]) -> set[int]:
        """Who has to be asked and told."""
        return view

    def ask(self, node: ObjectNode) -> Any:
        """What a member answers."""

    def tell(self, now: int, node: ObjectNode, answers: dict[int, Any]) -> Any:
        """The effects of what all have answered."""

    def end(self, view: set[int]) -> None:
        """All know."""


class _Removal(_Change):
    def concerns(self, view: set[int]) -> set[int]:
        return view - {self.member}

    def ask(self, node: ObjectNode) -> Any:
        return node.fence((self.member,))

    def tell(self, now: int, node: ObjectNode, answers: dict[int, Any]) -> Any:
        return node.install(now, union(answers.values()))

    def end(self, view: set[int]) -> None:
        view.discard(self.member)


class _Admission(_Change):
    """The new process is there already, and says like all others how it stands."""

    def __init__(self, member: int, life: int) -> None:
        super().__init__(member)
        self.life = life

    def concerns(self, view: set[int]) -> set[int]:
        return view | {self.member}

    def ask(self, node: ObjectNode) -> Any:
        if node.address != self.member:
            node.admit({self.member: self.life})
        return node.stands()

    def tell(self, now: int, node: ObjectNode, answers: dict[int, Any]) -> Any:
        return node.admitted(now, answers)

    def end(self, view: set[int]) -> None:
        view.add(self.member)


class _Completion(_Change):
    """A member that came back has everything."""

    def tell(self, now: int, node: ObjectNode, answers: dict[int, Any]) -> Any:  # noqa: ARG002
        return node.caught_up(now, self.member)


class ObjectViews:
    """Makes one change at a time."""

    def __init__(self, world: World, random: Random) -> None:
        self.world = world
        self.view = set(range(len(world.hosts)))
        self.on_back: Callable[[int], None] = lambda _member: None
        """Called when a member that came back may begin."""
        self._random = random
        self._waiting: list[_Change] = []
        self._change: _Change | None = None
        self._crashed: set[int] = set()

    def crash(self, member: int) -> None:
        """The member stops now; the service notices somewhat later."""
        if not self.world.hosts[member].gone:
            self.world.crash(member)
            self._soon(partial(self._miss, member))

    def come_back(self, member: int, start: Callable[[Mapping[int, int]], None]) -> bool:
        """Another process takes the place of a member that was removed, if there is none. `start` is called when it is to be
        started, with those who are there and the numbers of their processes."""
        if member in self.view or member in self._crashed or self._change is not None or self._waiting:
            return False
        hosts = self.world.hosts
        start({each: hosts[each].life for each in sorted(self.view)})
        self._waiting.append(_Admission(member, hosts[member].life))
        self._go_on()
        return True

    def caught_up(self, member: int) -> None:
        """A member says that it has everything."""
        life = self.world.hosts[member].life
        self._soon(lambda: self._complete(member, life))

    def is_quiet(self) -> bool:
        """Whether all crashed members have been removed from the view everywhere, and all that came back have everything."""
        hosts = [self.world.hosts[member] for member in self.view]
        return (
            self._change is None
            and not self._waiting
            and not any(host.gone or (isinstance(host.node, ObjectNode) and host.node.returns.catching_up) for host in hosts)
        )

    def _soon(self, act: Callable[[], None]) -> None:
        self.world.at(self.world.now + int(self._random.random() * DELAY_NS), lambda _: act(), None)

    def _miss(self, member: int) -> None:
        self._crashed.add(member)
        self._waiting.append(_Removal(member))
        self._go_on()

    def _complete(self, member: int, life: int) -> None:
        if self._is_there(member) and self.world.hosts[member].life == life:
            self._waiting.append(_Completion(member))
            self._go_on()

    def _go_on(self) -> None:
        if self._change is None and self._waiting:
            self._change = self._waiting.pop(0)
            for member in self._concerned():
                self._soon(partial(self._ask, self._change, member))
        change = self._change
        if change is None:
            return
        if not change.told and all(member in change.answers for member in self._concerned()):
            change.told = True
            answers = {member: change.answers[member] for member in self._concerned()}
            for member in self._concerned():
                self._soon(partial(self._tell, change, member, answers))
        if change.told and all(member in change.done for member in self._concerned()):
            change.end(self.view)
            self._crashed.difference_update({change.member} if isinstance(change, _Removal) else ())
            self._change = None
            self._go_on()

    def _concerned(self) -> list[int]:
        """The members that the change concerns and that are there, as far as the service knows."""
        assert self._change is not None
        return sorted(self._change.concerns(self.view) - self._crashed)

    def _is_there(self, member: int) -> bool:
        return not self.world.hosts[member].gone and member not in self._crashed

    def _node(self, member: int) -> tuple[SimulatedHost, ObjectNode] | None:
        host = self.world.hosts[member]
        assert isinstance(host.node, ObjectNode)
        return None if host.gone else (host, host.node)

    def _ask(self, change: _Change, member: int) -> None:
        found = self._node(member)
        if found is None or self._change is not change:
            return
        answer = change.ask(found[1])

        def answered() -> None:
            if self._change is change:
                change.answers[member] = answer
                self._go_on()

        self._soon(answered)

    def _tell(self, change: _Change, member: int, answers: dict[int, Any]) -> None:
        found = self._node(member)
        if found is not None:
            host, node = found
            host.act(change.tell(self.world.now, node, answers))
            change.done.add(member)
            if isinstance(change, _Completion) and member == change.member:
                self.on_back(member)
            self._go_on()
