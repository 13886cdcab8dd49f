"""Executions in which members crash and come back as other processes, and what must hold of them besides everything else."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from itertools import combinations
from typing import Any

from quire.objects.executor import Executor
from quire.protocols.node import Notice
from quire.protocols.objects.node import ObjectNode
from quire.protocols.objects.notices import CaughtUp
from quire.protocols.objects.packets import Instance
from quire.simulation.randomness import stream
from quire.simulation.steps import SteppedRuntime
from tests.objects.crashing import CrashingExecution, CrashPlan
from tests.objects.kit import Event, Thing, ancestors


class ReturnPlan(CrashPlan, frozen=True, kw_only=True):
    returns: int = 3
    """How often a member may come back."""


class ReturningExecution(CrashingExecution):
    def __init__(self, seed: int, plan: ReturnPlan, node_class: type[ObjectNode] = ObjectNode) -> None:
        self.former: list[ObjectNode] = []
        self.began_again: list[tuple[int, int, int]] = []
        """The members that came back, and how many events and removals there were before."""
        self.back: list[int] = []
        super().__init__(seed, plan, node_class)
        self.returning = stream(seed, "returns")
        self.left = plan.returns
        self._node_class = node_class
        self.views.on_back = self._is_back

    def play(self, until_ms: int = 10_000) -> bool:
        span_ns = int(self.plan.span_ms * 1_000_000)
        for _ in range(2 * self.left):
            self.world.at(int((0.2 + 2.2 * self.returning.random()) * span_ns), lambda _: self._try_return(), None)
        self.world.at(3 * span_ns, lambda _: None, None)
        begun = super().play(until_ms)
        return begun and self.world.run(until_ms * 1_000_000, lambda: self.world.now >= 3 * span_ns and self._is_over())

    def _try_return(self) -> None:
        absent = [member for member, host in enumerate(self.world.hosts) if host.gone]
        if absent and self.left:
            member = self.returning.choice(absent)
            self.left -= self.views.come_back(member, partial(self._start, member))

    def _start(self, member: int, others: Mapping[int, int]) -> None:
        self.former.append(self.executors[member].node)
        life = self.world.hosts[member].life + 1
        runtime = SteppedRuntime(self.world, stream(self.seed, f"jitter/{member}/{life}"), life)
        node = self._node_class(member, self.catalogue, self.plan.options)
        node.begin_life(life, others)
        things = {name: Thing() for name in self.catalogue.at(member)}
        executor = self.executors[member] = Executor(node, things, runtime, observe=self._observer(member))
        runtime.host = self.world.hosts[member]
        self._watch(node)
        self.began_again.append((member, len(self.events), len(self.removals)))

        def on_notice(_host: Any, notice: Notice) -> None:
            if isinstance(notice, CaughtUp):
                self.views.caught_up(member)
            executor.on_notice(notice)

        self.world.restart(member, node, on_notice)

    def _is_back(self, member: int) -> None:
        self.back.append(member)
        for _ in range(self.returning.choice((0, 1, 2))):
            self._root(self.executors[member], [[self.call(0, 0)]])
        if self.returning.random() < 0.3:
            delay_ns = int(self.returning.random() * self.plan.span_ms * 500_000)
            self.world.at(self.world.now + delay_ns, self.views.crash, member)

    # What was sent, by whichever process.

    def heads(self):  # type: ignore[no-untyped-def]
        found = super().heads()
        for node in self.former:
            found.update({key: head for key, head in node.heads.found.items() if key[0] == node.address})
        return found

    def replicas(self):  # type: ignore[no-untyped-def]
        """Whoever comes back begins anew: it knows a state, and not what led to it."""
        lives = {id(event): self.life(event.instance.member, index) for index, event in enumerate(self.events)}
        found: dict[tuple[str, Any], list[Event]] = {}
        for (name, member), events in super().replicas().items():  # type: ignore[no-untyped-call]
            for event in events:
                found.setdefault((name, f"{member}.{lives[id(event)]}"), []).append(event)
        return found

    def life(self, member: int, index: int) -> int:
        """How often the member had come back before this event."""
        return sum(each == member and begun <= index for each, begun, _ in self.began_again)

    def life_at_removal(self, member: int, number: int) -> int:
        """How often the member had come back before this removal."""
        return sum(each == member and begun <= number for each, _, begun in self.began_again)

    def steady(self) -> set[int]:
        return super().steady() - {member for member, *_ in self.began_again}


def active_orphans(execution: ReturningExecution) -> list[str]:
    """Who has lost one of those who called it takes no step after it is known, unless at replicas. Whoever came back since is
    another."""
    callers, lives, wrong = ancestors(execution), dict[Instance, int](), []
    for index, event in enumerate(execution.events):
        lives.setdefault(event.instance, execution.life(event.instance.member, index))
    for number, removal in enumerate(execution.removals):
        gone = {member: execution.life_at_removal(member, number) for member in removal.gone}
        for event in execution.events[removal.index :]:
            instance = event.instance
            if instance.member != removal.member or event.kind not in ("start", "send") or not instance.object:
                continue
            if lives[instance] > execution.life_at_removal(removal.member, number):
                continue
            replicated = len(execution.catalogue.find(instance.object).members) > 1
            if not replicated and any(lives[each] <= gone.get(each.member, -1) for each in callers(instance)):
                wrong.append(f"{instance} has lost a caller, and does {event.kind}")
    return wrong


def differing_replicas(execution: ReturningExecution) -> list[str]:
    """All that have a replica, those that came back too, ran the same requests, conflicting ones in the same order."""
    wrong = []
    for name, placed in execution.catalogue.objects.items():
        live = [member for member in placed.members if member in execution.views.view]
        if len(placed.members) == 1 or any(name in execution.executors[member].node.departures.lost for member in live):
            continue
        runs = [execution.executors[member].objects[name].ran for member in live]  # type: ignore[attr-defined]
        if any(sorted(run) != sorted(runs[0]) for run in runs):
            wrong.append(f"the replicas of {name} did not run the same requests")
            continue
        ops = dict(reversed(entry) for run in runs for entry in run if entry[0] != "undone")
        conflict = placed.type.conflict
        orders = [[pair for pair in combinations(run, 2) if _conflict(conflict, ops, pair)] for run in runs]
        if any(sorted(order) != sorted(orders[0]) for order in orders):
            wrong.append(f"the replicas of {name} ran conflicting requests in different orders")
    return wrong


def _conflict(conflict: Any, ops: dict[int, str], pair: tuple[tuple[str, int], tuple[str, int]]) -> bool:
    return all(name in ops for _, name in pair) and conflict(ops[pair[0][1]], ops[pair[1][1]])
