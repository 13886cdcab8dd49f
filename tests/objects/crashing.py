"""Executions in which members crash, and what must hold of them besides everything else."""

from __future__ import annotations

from functools import partial

import msgspec

from quire.protocols.node import Notice
from quire.protocols.objects.activity import Activity
from quire.protocols.objects.node import ObjectNode
from quire.protocols.objects.notices import CalleeLost, Orphaned, Refused, Started
from quire.protocols.objects.packets import Instance
from quire.simulation.object_views import ObjectViews
from quire.simulation.randomness import stream
from tests.objects.kit import Event, Execution, Id, Plan, ancestors

NOBODY = (-1, -1)


class CrashPlan(Plan, frozen=True, kw_only=True):
    crashes: int = 1


class Removal(msgspec.Struct, frozen=True):
    """From here on in the run, a member knew that others are gone."""

    index: int
    member: int
    gone: frozenset[int]


class CrashingExecution(Execution):
    def __init__(self, seed: int, plan: CrashPlan, node_class: type[ObjectNode] = ObjectNode) -> None:
        super().__init__(seed, plan, node_class)
        self.crashes = plan.crashes
        self.views = ObjectViews(self.world, stream(seed, "views"))
        self.removals: list[Removal] = []
        self.lost = self.orphans = 0
        self.seen: dict[Id, set[tuple[str, int]]] = {}
        """Of each request, the objects and members at which it was run, or refused."""
        for executor in self.executors:
            self._watch(executor.node)

    def _watch(self, node: ObjectNode) -> None:
        """Those who end without an answer, because nobody is left to hear it, end all the same."""
        end, install = node.memory.end, node.install

        def ends(activity: Activity) -> None:
            if activity.caller is not None and activity.caller.member in node.departures.gone:
                self.events.append(Event("end", activity.instance, NOBODY))
            end(activity)

        def installs(now: int, union: dict[int, object]) -> object:
            self.removals.append(Removal(len(self.events), node.address, frozenset(node.departures.gone | set(union))))
            return install(now, union)  # type: ignore[arg-type]

        node.memory.end = ends  # type: ignore[method-assign]
        node.install = installs  # type: ignore[method-assign, assignment]

    def _observer(self, member: int):  # type: ignore[no-untyped-def]
        observe = super()._observer(member)

        def also(notice: Notice) -> None:
            if isinstance(notice, Started | Refused):
                instance = notice.instance
                self.seen.setdefault((instance.origin, instance.number), set()).add((instance.object, member))
            self.lost += isinstance(notice, CalleeLost)
            self.orphans += isinstance(notice, Orphaned)
            observe(notice)

        return also

    def play(self, until_ms: int = 10_000) -> bool:
        random, span_ns = self.random, int(self.plan.span_ms * 1_000_000)
        for _ in range(self.plan.roots):
            member = random.randrange(self.plan.members)
            steps = [[self.call(0, 0)] for _ in range(random.choice((1, 2)))]
            self.world.at(int(random.random() * span_ns), partial(self._begin, member), steps)
        for member in random.sample(range(self.plan.members), self.crashes):
            self.world.at(int((0.1 + random.random()) * span_ns), self.views.crash, member)
        self.world.at(2 * span_ns, lambda _: None, None)
        return self.world.run(until_ms * 1_000_000, lambda: self.world.now >= 2 * span_ns and self._is_over())

    def _begin(self, member: int, steps: list[object]) -> None:
        if not self.world.hosts[member].gone:
            self._root(self.executors[member], steps)

    def _is_over(self) -> bool:
        """Whether every root that can end has ended: those of members that go on."""
        live = [executor.node for executor in self.executors if not self.world.hosts[executor.node.address].gone]
        return self.views.is_quiet() and not any(node.roots for node in live) and self.world.idle()

    @property
    def survivors(self) -> list[int]:
        return sorted(self.views.view)

    def replicas(self):  # type: ignore[no-untyped-def]
        """The ends that nobody heard of are at home at their objects too."""
        found = dict(super().replicas())
        ends = [event for event in self.events if event.kind == "end"]
        homes = {(event.instance.object, event.instance.member) for event in ends}
        heads = self.heads()
        for home in homes:
            found[home] = [
                event
                for event in self.events
                if (event.instance.object, event.instance.member) == home and (event.kind == "end" or event.message in heads)
            ]
        return found

    def steady(self) -> set[int]:
        """The members that were there all along."""
        return set(self.survivors)


def broken_agreement(execution: CrashingExecution) -> list[str]:
    """Whatever came to one of those who were there all along came wherever it was sent among them."""
    heads, steady, wrong = execution.heads(), execution.steady(), []
    for (origin, number), seen in execution.seen.items():
        if origin in steady or not any(member in steady for _, member in seen):
            continue
        targets = heads[origin, number].targets
        sent = {(name, member) for name in targets for member in execution.catalogue.find(name).members if member in steady}
        if not sent <= seen:
            wrong.append(f"request {origin}:{number} came to {sorted(seen)}, and not to {sorted(sent - seen)}")
    return wrong


def active_orphans(execution: CrashingExecution) -> list[str]:
    """Who has lost one of those who called it takes no step after it is known, unless at replicas."""
    callers, wrong = ancestors(execution), []
    for removal in execution.removals:
        for event in execution.events[removal.index :]:
            instance = event.instance
            if instance.member != removal.member or event.kind not in ("start", "send") or not instance.object:
                continue
            replicated = len(execution.catalogue.find(instance.object).members) > 1
            if not replicated and any(each.member in removal.gone for each in callers(instance)):
                wrong.append(f"{instance} has lost a caller, and does {event.kind}")
    return wrong


def differing_survivors(execution: CrashingExecution) -> list[str]:
    """The replicas that are left ran the same requests."""
    wrong = []
    for name, placed in execution.catalogue.objects.items():
        live = [member for member in placed.members if member in execution.views.view]
        runs = [execution.executors[member].objects[name].ran for member in live]  # type: ignore[attr-defined]
        if any(sorted(run) != sorted(runs[0]) for run in runs):
            wrong.append(f"the replicas of {name} did not run the same requests")
    return wrong


def unfinished(execution: CrashingExecution) -> list[Instance]:
    return [each for member in execution.survivors for each in execution.executors[member].node.activities]
