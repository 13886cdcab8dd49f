"""Objects in the simulator: runs an application's own object classes in virtual time, or a random workload of calls."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from quire.model.errors import BadInput
from quire.model.orders import Guarantee
from quire.objects.declare import Object
from quire.objects.executor import Executor, Program
from quire.objects.placing import Placement, catalogue_of, objects_at
from quire.objects.record import conflicts, record
from quire.objects.workload import Aborted, ObjectWorkloadOptions, placements, random_program
from quire.protocols.node import Notice
from quire.protocols.objects.errors import CallAborted
from quire.protocols.objects.exchange import ObjectOptions
from quire.protocols.objects.node import ObjectNode
from quire.protocols.objects.notices import CaughtUp, Started
from quire.simulation.config import NetworkConfig, SimulationConfig
from quire.simulation.delays import to_ns
from quire.simulation.object_views import ObjectViews
from quire.simulation.randomness import stream
from quire.simulation.runs import make_network
from quire.simulation.scenario import Scenario, Service
from quire.simulation.steps import SteppedRuntime
from quire.simulation.workload import due_times
from quire.simulation.world import SimulatedHost, World

RETURN_AGAIN_NS = 1_000_000
"""How often a process that is to come back tries to."""
SIMULATED_NS_MAX = 3_600_000_000_000

Observe = Callable[[Notice], None]
Done = Callable[[Any, BaseException | None], None]


class ObjectWorld:
    """A group of objects in a world. `call` starts a root at a member; the world must run for it to end."""

    def __init__(
        self,
        world: World,
        members: int,
        objects: Mapping[str, Placement],
        options: ObjectOptions,
        seed: int = 0,
        observe: Observe = lambda _notice: None,
    ) -> None:
        self.world = world
        self.catalogue = catalogue_of(members, objects)
        self.executors: list[Executor] = []
        self._objects, self._options, self._seed, self._observe = objects, options, seed, observe
        for member in range(members):
            executor, runtime = self._executor(member)
            runtime.host = world.add(executor.node, _teller(executor, observe))
            self.executors.append(executor)

    def _executor(self, member: int, life: int = 0) -> tuple[Executor, SteppedRuntime]:
        runtime = SteppedRuntime(self.world, stream(self._seed, f"retries/{member}" + f"/{life}" * (life > 0)), life)
        node = ObjectNode(member, self.catalogue, self._options)
        return Executor(node, objects_at(member, self._objects), runtime), runtime

    def come_back(self, member: int, views: ObjectViews, others: Mapping[int, int]) -> None:
        """Start another process in the place of one that crashed. These are there, and those are the numbers of their
        processes."""
        host = self.world.hosts[member]
        executor, runtime = self._executor(member, host.life + 1)
        executor.node.begin_life(host.life + 1, others)
        runtime.host, self.executors[member] = host, executor
        tell = _teller(executor, self._observe)

        def on_notice(host: SimulatedHost, notice: Notice) -> None:
            if isinstance(notice, CaughtUp):
                views.caught_up(member)
            tell(host, notice)

        self.world.restart(member, executor.node, on_notice)

    def call(self, member: int, program: Program, done: Done) -> None:
        executor = self.executors[member]
        executor.start(program, done)


def _teller(executor: Executor, observe: Observe) -> Callable[[SimulatedHost, Notice], None]:
    def on_notice(host: SimulatedHost, notice: Notice) -> None:
        record(host, host.node.address, notice)
        observe(notice)
        executor.on_notice(notice)

    return on_notice


class Crash(msgspec.Struct, frozen=True):
    """A member that stops at a time. The others agree to go on without it."""

    member: int
    at_ms: float


class Return(msgspec.Struct, frozen=True):
    """Another process takes the place of a member that crashed, at a time, or when the others have gone on without that."""

    member: int
    at_ms: float


class Root(msgspec.Struct, frozen=True):
    """A program that a member starts at a time."""

    member: int
    program: Program
    at_ms: float = 0.0


def simulate_objects(
    members: int,
    objects: Mapping[str, Placement],
    roots: Sequence[Root],
    *,
    seed: int = 0,
    network: NetworkConfig | None = None,
    options: ObjectOptions | None = None,
    crashes: Sequence[Crash] = (),
    returns: Sequence[Return] = (),
) -> tuple[list[Any], list[Mapping[str, Object]]]:
    """Run an application's own objects in virtual time until all roots have ended. Returns what each root returned, or
    the exception that it raised (None: its member crashed before), and each member's objects. Raises BadInput where the
    settings make no sense, or where a root does not end, because it awaits something that never comes."""
    config = SimulationConfig(protocol="objects", members=members, seed=seed, network=network or NetworkConfig())
    world = World(make_network(config))
    group = ObjectWorld(world, members, objects, options or ObjectOptions(), seed)
    outcomes: dict[int, Any] = {}

    views = ObjectViews(world, stream(seed, "views"))
    for member in [*(crash.member for crash in crashes), *(each.member for each in returns)]:
        if not 0 <= member < members:
            raise BadInput(f"member {member} cannot crash: the members are 0 to {members - 1}")
    for crash in crashes:
        world.at(to_ns(crash.at_ms, "the time of a crash"), views.crash, crash.member)

    waiting = len(returns)

    def come_back(member: int) -> None:
        nonlocal waiting
        if views.come_back(member, lambda others: group.come_back(member, views, others)):
            waiting -= 1
        else:
            world.at(world.now + RETURN_AGAIN_NS, come_back, member)

    for each in returns:
        world.at(to_ns(each.at_ms, "the time of a return"), come_back, each.member)

    def begin(number: int) -> None:
        if world.hosts[roots[number].member].gone:
            outcomes[number] = None
            return

        def done(result: Any, error: BaseException | None) -> None:
            outcomes[number] = result if error is None else error

        group.call(roots[number].member, roots[number].program, done)

    for number, root in enumerate(roots):
        world.at(to_ns(root.at_ms, "the time of a root"), begin, number)
    times = [*(root.at_ms for root in roots), *(crash.at_ms for crash in crashes), *(each.at_ms for each in returns)]
    last_ns = max((to_ns(at_ms, "the time of a root") for at_ms in times), default=0)
    lasting = [number for number, root in enumerate(roots) if root.member not in {crash.member for crash in crashes}]

    def is_over() -> bool:
        ended = not waiting and all(each in outcomes for each in lasting)
        return world.now >= last_ns and views.is_quiet() and ended and world.idle()

    world.at(last_ns, lambda _: None, None)
    if not world.run(last_ns + SIMULATED_NS_MAX, is_over):
        missing = sum(number not in outcomes for number in lasting)
        raise BadInput(f"{missing} of {len(roots)} roots did not end within an hour of simulated time")
    return [outcomes.get(number) for number in range(len(roots))], [executor.objects for executor in group.executors]


class ObjectScenario(Scenario):
    """Members start random trees of calls; `messages` counts the roots of each."""

    options: ObjectWorkloadOptions

    @classmethod
    def processes(cls, config: SimulationConfig, options: ObjectWorkloadOptions) -> int:
        placements(config.members, options)
        return config.members

    def __init__(self, config: SimulationConfig, options: ObjectWorkloadOptions, world: World) -> None:
        super().__init__(config, options, world)
        self.group = ObjectWorld(
            world, config.members, placements(config.members, options), options, config.seed, self._observe
        )
        self.begun = 0
        self.ended = 0
        self.aborted = 0
        self.failed: list[BaseException] = []
        self._vectors_kept_max = 0
        self._due: dict[int, Iterator[int]] = {}
        self._left = dict.fromkeys(config.senders(), config.workload.messages)
        self._random = {sender: stream(config.seed, f"calls/{sender}") for sender in config.senders()}

    def _observe(self, notice: Notice) -> None:
        if isinstance(notice, Started) and notice.source != notice.instance.member:
            self.remote_waits.append(notice.waited)

    def start(self) -> None:
        for index, sender in enumerate(self.config.senders()):
            self._due[sender] = due_times(self.config, index, stream(self.config.seed, f"workload/{sender}"))
            self.world.at(next(self._due[sender]), self._begin, sender)

    def _begin(self, sender: int) -> None:
        self._left[sender] -= 1
        self.begun += 1
        began = self.world.now

        def done(_result: Any, error: BaseException | None) -> None:
            self.ended += 1
            self.origin_waits.append(self.world.now - began)
            if isinstance(error, Aborted | CallAborted):
                self.aborted += 1
            elif error is not None:
                self.failed.append(error)
            kept = self.group.executors[sender].node.vector_sizes()
            self._vectors_kept_max = max(self._vectors_kept_max, *kept, 0)

        self.group.call(sender, random_program(self._random[sender], self.options), done)
        if self._left[sender]:
            self.world.at(max(next(self._due[sender]), self.world.now), self._begin, sender)

    def done(self) -> bool:
        return self.ended == self.total() and self.world.idle()

    def sent(self) -> int:
        return self.begun

    def total(self) -> int:
        return len(self.config.senders()) * self.config.workload.messages

    def complete(self) -> bool:
        return not self.failed and not self._differing()

    def _differing(self) -> list[str]:
        """The replicated objects whose replicas are not equal."""
        found = []
        for name, placed in self.group.catalogue.objects.items():
            states = [vars(self.group.executors[member].objects[name]) for member in placed.members]
            if any(state != states[0] for state in states):
                found.append(name)
        return found

    def promises(self) -> frozenset[Guarantee]:
        return frozenset({Guarantee.INTEGRITY, Guarantee.AGREEMENT, Guarantee.SIGNIFICANT})

    def groups(self) -> Mapping[str, tuple[int, ...]]:
        return {"objects": tuple(range(self.config.members))}

    def settings(self) -> dict[str, object]:
        return {"conflicts": conflicts(self.group.catalogue)}

    def details(self) -> dict[str, object]:
        return {
            "roots": self.ended,
            "retries": sum(executor.died for executor in self.group.executors),
            "aborted": self.aborted,
            "vectors_kept_max": self._vectors_kept_max,
            "replicas_differ": self._differing(),
        }


OBJECTS = Service(
    "objects", "objects that call each other: only what conflicts is ordered", ObjectScenario, ObjectWorkloadOptions
)
