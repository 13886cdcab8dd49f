"""Seeded swarms on random unequal hierarchies: messages to one site or several, while sites join, move, leave and are
replaced as agents. No order is violated and nothing is lost, by the definitions and by the audit.

QUIRE_SWARM_RUNS says how many runs there are of each kind; QUIRE_SWARM_SEED runs one alone, which is how a failure is
replayed.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from random import Random

import pytest

from quire.model.errors import QuireError
from quire.model.orders import Guarantee, in_order
from quire.protocols.clusters.packets import Carrier
from quire.protocols.clusters.site import Site
from quire.protocols.clusters.tree import routes_of
from quire.protocols.contract import Effects
from quire.protocols.hierarchy.membership import FLUSHING, STOPPING, Barrier, DynamicSite
from quire.protocols.hierarchy.notes import is_client, may_leave, sponsors
from tests.audit.oracle import Event
from tests.audit.test_oracle import counts, judge
from tests.audit.traces import timed
from tests.hierarchy.trees import factory, random_tree
from tests.kit.effort import runs
from tests.kit.oracles import ORACLES
from tests.kit.schedules import SPEEDS, broken_promise, random_plan, run_plan
from tests.kit.world import Take, World

RUNS = runs(100, 500)
SEED = os.environ.get("QUIRE_SWARM_SEED")
SEEDS = range(RUNS) if SEED is None else [int(SEED)]
INSIDE = ("matrix", "coordinator", "mixed")
ENCODINGS = ("dense", "changes", "adaptive")
OUTSIDE = 3
MESSAGES = 24
CHANGES = 4


def replay(seed: int, name: str) -> str:
    return f"replay: QUIRE_SWARM_SEED={seed} make test PYTEST_ARGS='tests/hierarchy/test_swarm.py -k {name}'"


@pytest.mark.parametrize("inside", INSIDE)
def test_no_run_on_a_random_hierarchy_violates_the_order_or_loses_a_message(
    inside: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: Counter[str] = Counter()
    for seed in SEEDS:
        random = Random(f"{inside} {seed}")
        plan = random_plan(random, members=(3, 9), runs=14, addressed=True)
        tree = random_tree(random, plan.members, inside)
        make = factory(tree, encoding=random.choice(ENCODINGS), held=random.choice((5, 10, 1 << 16)))
        try:
            world = run_plan(plan, make, random, reordering=True)
            wrong = broken_promise(world, Site.promises) or found_by_the_audit(world, monkeypatch)
        except (AssertionError, QuireError) as error:
            wrong = repr(error)
        if wrong:
            pytest.fail(f"{wrong}\n{replay(seed, inside)}", pytrace=False)
        seen["held back"] += world.held_back_most > 0
        seen["had to wait"] += world.refused_packets > 0
        seen["deep"] += tree.layers >= 3
    assert SEED is not None or all(seen[sign] for sign in ("held back", "had to wait", "deep")), seen


def found_by_the_audit(world: World, monkeypatch: pytest.MonkeyPatch) -> str | None:
    """What the audit that runs on Spark says is wrong with the trace of this world, by its own tasks in this process."""
    everybody = tuple(range(world.members))
    logs = [
        [
            Event(kind, *message, tuple(sorted(world.dests.get(message, everybody))) if kind == "send" else None)
            for kind, message in log
        ]
        for log in world.events
    ]
    found = counts(judge(monkeypatch, timed(logs), 2))
    wrong = {name: count for name in ("integrity", "agreement", "fifo", "causal") if (count := getattr(found, name)) != 0}
    return f"the audit finds violations: {wrong}" if wrong else None


class Life:
    """A world in which messages are sent and members change, in a random order, until all is done."""

    def __init__(self, random: Random, inside: str, kind: type[DynamicSite], changes: int = CHANGES) -> None:
        self.random = random
        founders = random.randint(3, 8)
        self.tree = random_tree(random, founders, inside)
        self.world = World(
            founders + OUTSIDE, factory(self.tree, kind=kind, encoding=random.choice(ENCODINGS)), reordering=True
        )
        self.sites = [site for site in self.world.protocols if isinstance(site, DynamicSite)]
        self.speed = {channel: random.choice(SPEEDS) for channel in self.world.channels}
        self.left = MESSAGES
        self.changes = changes
        self.seen: Counter[str] = Counter()
        self.changed = self.sites[0]
        """Who changed its place last."""

    def run(self) -> str | None:
        """Returns what is wrong in the end, if anything."""
        while True:
            steps = self.world.steps()
            idle = not any(site.changing for site in self.sites)
            if not steps and not self.left and (not self.changes or not idle):
                break
            choice = self.random.random()
            if self.changes and idle and (choice < 0.05 or not (steps or self.left)):
                self.changes -= 1
                self.change()
            elif self.left and (choice < 0.35 or not steps):
                self.say()
                if not steps and not self.world.steps() and not idle:
                    return "a change waits for ever"
            elif steps:
                weights = [self.weight(step) for step in steps if isinstance(step, Take)]
                (step,) = self.random.choices(steps, weights)
                assert isinstance(step, Take)
                self.world.perform(Take(step.source, step.dest, step.index, self.random.random() < 0.1))
        return self.verdict()

    def weight(self, step: Take) -> float:
        """How likely it is that this packet comes next."""
        return self.speed[step.source, step.dest]

    def say(self) -> None:
        speakers = [site for site in self.sites if site.welcome]
        site = self.random.choice(speakers)
        audience = site.audience()
        several = self.random.random() < 0.2
        to = tuple(self.random.sample(audience, self.random.randint(1, len(audience)) if several else 1))
        self.submit(site, None if several and self.random.random() < 0.3 else to)

    def submit(self, site: DynamicSite, to: tuple[int, ...] | None) -> None:
        if self.world.submit(site.me, [b"x"], to):
            self.left -= 1
        else:
            self.seen["had to wait"] += 1

    def change(self) -> None:
        inside = [site for site in self.sites if site.welcome]
        tree = inside[0].routes.tree
        clients = [site for site in inside if is_client(tree, site.site)]
        agents = [site for site in inside if site not in clients]
        outside = [site for site in self.sites if not site.welcome]
        options: list[tuple[str, DynamicSite, Callable[[], Effects]]] = []
        sponsor = self.random.choice(agents) if agents else None
        if sponsor is not None:
            options += [("join", site, partial(site.join, sponsor.me)) for site in outside]
            options += [("move", site, partial(site.move, sponsor.me)) for site in clients if site is not sponsor] * 2
        options += [("leave", site, site.leave) for site in clients if len(inside) > 3][:1]
        alone = [site for site in agents if may_leave(tree, site.site)]
        options += [("detach", site, site.leave) for site in alone] * 3
        takers = [site for site in agents if sponsors(site.routes, site.site, 2) is not None]
        options += [("attach", site, partial(site.attach, self.random.choice(takers).me)) for site in outside if takers]
        for agent in agents:
            routes = routes_of(tree)
            options += [
                ("replace", agent, partial(agent.replace, site.me))
                for site in clients
                if tree.layers > 1 and routes.homes[site.site][0] == routes.homes[agent.site][0]
            ]
        if options:
            name, site, begin = self.random.choice(options)
            self.seen[name] += 1
            self.changed = site
            self.world.act(site.me, begin())

    def verdict(self) -> str | None:
        if any(site.changing for site in self.sites):
            return "a change was not finished"
        history = self.world.history()
        for guarantee in in_order(DynamicSite.promises):
            witness = ORACLES[guarantee](history)
            if witness is not None:
                return f"{guarantee} is broken: {witness}"
        if any(site.held_back() for site in self.sites):
            return "a site holds something back although nothing is under way"
        trees = {site.routes for site in self.sites if site.welcome}
        return None if len(trees) == 1 else "sites know different hierarchies"


class Torn(Life):
    """When a member begins to change its place, others speak to it and to a second one, where that takes long, though
    whatever the change needs passes; and the first speaks to the second as soon as it may. So it is seen whether everybody
    has what the one knows that changes."""

    def __init__(self, random: Random, inside: str, kind: type[DynamicSite]) -> None:
        super().__init__(random, inside, kind, changes=6)
        self.speed = dict.fromkeys(self.world.channels, 1.0)
        self.slow = 0

    def weight(self, step: Take) -> float:
        packet = self.world.channels[step.source, step.dest][step.index]
        return 0.002 if step.dest == self.slow and isinstance(packet, Carrier) and not packet.note else 1.0

    def say(self) -> None:
        if self.random.random() < 0.5 and self.changed.welcome and self.slow in self.changed.audience():
            self.submit(self.changed, (self.slow,))
        else:
            super().say()

    def change(self) -> None:
        super().change()
        inside = [site for site in self.sites if site.welcome and site is not self.changed]
        self.slow = self.random.choice(inside).me
        for site in self.random.sample(inside, min(len(inside), 2)):
            to = {self.changed.me, self.slow} & set(site.audience())
            if self.left and to:
                self.submit(site, tuple(sorted(to)))


def swarm(inside: str, life_of: type[Life], seeds: Iterable[int], name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: Counter[str] = Counter()
    for seed in seeds:
        life = life_of(Random(f"{inside} changes {seed}"), inside, DynamicSite)
        try:
            wrong = life.run() or found_by_the_audit(life.world, monkeypatch)
        except (AssertionError, QuireError) as error:
            wrong = repr(error)
        if wrong:
            pytest.fail(f"{wrong}\n{replay(seed, f'{name} and {inside}')}", pytrace=False)
        seen += life.seen
    signs = ("join", "move", "leave", "replace", "attach", "detach", "had to wait")
    assert SEED is not None or all(seen[sign] for sign in signs), seen
    assert Guarantee.CAUSAL in DynamicSite.promises


@pytest.mark.parametrize("inside", INSIDE)
def test_no_run_with_joins_and_moves_violates_the_order_or_loses_a_message(
    inside: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    swarm(inside, Life, SEEDS, "joins_and_moves", monkeypatch)


@pytest.mark.parametrize("inside", INSIDE)
def test_no_change_overtakes_what_the_one_that_changes_has_delivered(inside: str, monkeypatch: pytest.MonkeyPatch) -> None:
    seeds = SEEDS if SEED is not None or RUNS > 1000 else range(RUNS // 4)
    swarm(inside, Torn, seeds, "overtakes", monkeypatch)


class WithoutBarrier(DynamicSite):
    """A site that is told to change its place does so at once."""

    def _begin(self, why: str, other: int) -> Effects:
        self.barrier = Barrier(why, FLUSHING, 0, other, frozenset())
        effects: list[object] = []
        self._advance(effects)  # type: ignore[arg-type]
        return effects  # type: ignore[return-value]


class OnePhase(DynamicSite):
    """A pivot that does not have its past flushed."""

    def _advance(self, effects: list[object]) -> None:  # type: ignore[override]
        barrier = self.barrier
        assert barrier is not None
        if barrier.phase == STOPPING:
            self.barrier = Barrier(barrier.why, FLUSHING, barrier.number, barrier.other, frozenset())
        super()._advance(effects)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("life_of", "kind", "first", "broken"),
    [(Life, WithoutBarrier, 5600, "causal"), (Torn, WithoutBarrier, 0, "agreement"), (Torn, OnePhase, 0, "causal")],
)
def test_a_change_without_the_whole_barrier_is_caught(
    life_of: type[Life], kind: type[DynamicSite], first: int, broken: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That a site without any barrier breaks the order and not only loses something, takes thousands of runs to see; these
    are among the first that show it."""
    verdicts = []
    for seed in range(first, first + 50):
        with suppress(QuireError):
            life = life_of(Random(f"fault {seed}"), "matrix", kind)
            verdict = life.run()
            if verdict and verdict.startswith(broken):
                assert broken in (found_by_the_audit(life.world, monkeypatch) or ""), "the audit finds it too"
            verdicts.append(verdict)
    assert any(verdict and verdict.startswith(broken) for verdict in verdicts)
