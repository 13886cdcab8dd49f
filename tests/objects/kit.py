"""Random trees of calls over random objects on a bad network, and what must hold of any of them.

Significant precedence is decided here by its definition, event by event and then transitively; nothing of the vectors under
test is used for it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import combinations
from typing import Any

import msgspec

from quire.objects.call import Call
from quire.objects.declare import Object, operation
from quire.objects.executor import Executor
from quire.protocols.node import Notice
from quire.protocols.objects.declarations import Catalogue, ObjectType, Placed
from quire.protocols.objects.exchange import ObjectOptions
from quire.protocols.objects.explain import Head
from quire.protocols.objects.node import ObjectNode
from quire.protocols.objects.notices import Answered, Sent, Started
from quire.protocols.objects.packets import Instance
from quire.protocols.objects.vectors import ENDLESS, dense_key
from quire.simulation.delays import parse_delays
from quire.simulation.network import Network
from quire.simulation.randomness import stream
from quire.simulation.steps import SteppedRuntime
from quire.simulation.world import World

OPERATIONS = ("op0", "op1", "op2")
Id = tuple[int, int]


def add_to_world(world: World, executor: Executor, runtime: SteppedRuntime) -> None:
    runtime.host = world.add(executor.node, lambda _host, notice: executor.on_notice(notice))


class Refusal(Exception):
    """What an operation of the workload raises to abort."""


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """How random executions are made."""

    members: int = 4
    roots: int = 8
    depth: int = 2
    cyclic: bool = False
    conflict: float = 0.5
    loss: float = 0.0
    replicas: bool = False
    abort: float = 0.1
    sleep: float = 0.3
    span_ms: float = 12.0
    options: ObjectOptions = ObjectOptions(heartbeat_ms=3, collect=False, history=100_000)


async def follow(thing: Thing, call: Call, me: str, script: list[Any], flags: dict[str, Any]) -> str:
    """An operation of the workload: makes the calls of its script, those of one step at once, then ends as it says."""
    for step in script:
        calls = [call.invoke(targets, op, *arguments) for targets, op, arguments in step]
        for each in calls:
            await each
    if flags.get("sleep"):
        await call.sleep(flags["sleep"])
    if flags.get("abort"):
        raise Refusal("as planned")
    thing.ran.append((me, flags["name"]))
    return me


class Thing(Object):
    conflicts = (("op0", "op0"), ("op1", "op1"), ("op2", "op2"))

    def __init__(self) -> None:
        self.ran: list[tuple[str, int]] = []

    def __getstate__(self) -> list[list[Any]]:
        return [list(each) for each in self.ran]

    def __setstate__(self, state: list[tuple[str, int]]) -> None:
        self.ran = [(op, name) for op, name in state]

    @operation
    async def op0(self, call: Call, script: list[Any], flags: dict[str, Any]) -> str:
        return await follow(self, call, "op0", script, flags)

    @operation
    async def op1(self, call: Call, script: list[Any], flags: dict[str, Any]) -> str:
        return await follow(self, call, "op1", script, flags)

    @operation
    async def op2(self, call: Call, script: list[Any], flags: dict[str, Any]) -> str:
        return await follow(self, call, "op2", script, flags)

    def back(self, call: Call, script: list[Any], flags: dict[str, Any]) -> None:
        self.ran.append(("undone", flags["name"]))

    for each in (op0, op1, op2):
        each.undo(back)
    del each


class Event(msgspec.Struct, frozen=True):
    """Something that happened at a replica, in the order in which the member decided it."""

    kind: str  # start, receive, send, respond, refuse
    instance: Instance
    message: Id


class Execution:
    """One run, with everything that happened in it."""

    def __init__(self, seed: int, plan: Plan, node_class: type[ObjectNode] = ObjectNode) -> None:
        self.seed, self.plan = seed, plan
        self.random = stream(seed, "workload")
        self.events: list[Event] = []
        self.ops: dict[Instance, str] = {}
        self.chains: dict[Instance, tuple[Instance, ...]] = {}
        self.finished = 0
        self.failed: list[BaseException] = []
        self._names = 0
        members = plan.members
        delays, random = parse_delays("exponential:1", members), stream(seed, "network")
        self.world = World(Network(members, delays, random, loss=plan.loss, duplicate=plan.loss, reorder=True))
        self.catalogue = Catalogue(members, self._objects())
        self.executors: list[Executor] = []
        for member in range(members):
            runtime = SteppedRuntime(self.world, stream(seed, f"jitter/{member}"))
            node = node_class(member, self.catalogue, plan.options)
            things = {name: Thing() for name in self.catalogue.at(member)}
            executor = Executor(node, things, runtime, observe=self._observer(member))
            add_to_world(self.world, executor, runtime)
            self.executors.append(executor)

    def _objects(self) -> dict[str, Placed]:
        random, members = self.random, self.plan.members
        objects = {}
        for member in range(members):
            objects[f"x{member}"] = Placed(self._type(), (member,))
        if self.plan.replicas:
            for number in range(2):
                objects[f"r{number}"] = Placed(self._type(), tuple(sorted(random.sample(range(members), members - 1))))
        return objects

    def _type(self) -> ObjectType:
        conflicting: dict[str, set[str]] = {op: set() for op in OPERATIONS}
        for index, one in enumerate(OPERATIONS):
            for other in OPERATIONS[index:]:
                if self.random.random() < self.plan.conflict:
                    conflicting[one].add(other)
                    conflicting[other].add(one)
        undoable = frozenset(OPERATIONS) if self.plan.abort else frozenset[str]()
        return ObjectType({op: frozenset(each) for op, each in conflicting.items()}, undoable=undoable)

    def _observer(self, member: int) -> Callable[[Notice], None]:
        def observe(notice: Notice) -> None:
            if isinstance(notice, Sent):
                kind = "respond" if notice.object is None else "send"
                self.events.append(Event(kind, notice.sender, (member, notice.number)))
            elif isinstance(notice, Started):
                self.ops[notice.instance] = notice.op
                self.events.append(Event("start", notice.instance, (notice.instance.origin, notice.instance.number)))
            elif isinstance(notice, Answered):
                self.events.append(Event("receive", notice.instance, (notice.source, notice.number)))

        return observe

    # The workload.

    def script(self, depth: int, least: int) -> list[Any]:
        if depth >= self.plan.depth or not self._names_from(least):
            return []
        choice = self.random.choice
        return [[self.call(depth + 1, least) for _ in range(choice((1, 1, 2)))] for _ in range(choice((0, 1, 1, 2)))]

    def _names_from(self, least: int) -> list[str]:
        """The objects that may be called from below `least`: all of them where calls may go in cycles."""
        return [name for name in self.catalogue.objects if self.plan.cyclic or name[0] == "r" or int(name[1:]) >= least]

    def call(self, depth: int, least: int) -> Any:
        random = self.random
        names = self._names_from(least)
        targets = random.sample(names, min(len(names), random.choice((1, 1, 2))))
        plain = [int(name[1:]) for name in targets if name[0] == "x"]
        # Replicas call nobody, and neither does whoever is called together with them.
        deeper = depth if len(plain) == len(targets) else self.plan.depth
        script = self.script(deeper, max(plain, default=0) + 1)
        self._names += 1
        flags: dict[str, Any] = {"name": self._names, "abort": random.random() < self.plan.abort}
        if random.random() < self.plan.sleep:
            flags["sleep"] = random.random() * 0.004
        return targets, random.choice(OPERATIONS), (script, flags)

    def play(self, until_ms: int = 10_000) -> bool:
        """Run everything to its end; False: something is stuck."""
        for _ in range(self.plan.roots):
            executor, steps = self.random.choice(self.executors), [[self.call(0, 0)] for _ in range(self.random.choice((1, 2)))]
            at = int(self.random.random() * self.plan.span_ms * 1_000_000)
            self.world.at(at, lambda item: self._root(*item), (executor, steps))
        return self.world.run(until_ms * 1_000_000, lambda: self.finished == self.plan.roots and self.world.idle())

    def _root(self, executor: Executor, steps: list[Any]) -> None:
        async def program(call: Call) -> None:
            for step in steps:
                for targets, op, arguments in step:
                    await call.invoke(targets, op, *arguments)

        def done(_result: Any, error: BaseException | None) -> None:
            self.finished += 1
            if error is not None:
                self.failed.append(error)

        executor._runtime.start(executor.run(program), done)

    def differing_replicas(self) -> list[str]:
        """Replicas run the same requests, those that conflict in the same order."""
        wrong = []
        for name, placed in self.catalogue.objects.items():
            runs = [self.executors[member].objects[name].ran for member in placed.members]  # type: ignore[attr-defined]
            if any(sorted(run) != sorted(runs[0]) for run in runs):
                wrong.append(f"the replicas of {name} did not run the same requests")
            conflict, ops = placed.type.conflict, dict(reversed(entry) for entry in runs[0] if entry[0] != "undone")
            orders = [[pair for pair in combinations(run, 2) if conflict(ops[pair[0][1]], ops[pair[1][1]])] for run in runs]
            if any(sorted(order) != sorted(orders[0]) for order in orders):
                wrong.append(f"the replicas of {name} ran conflicting requests in different orders")
        return wrong

    # What was sent.

    def heads(self) -> dict[Id, Head]:
        found: dict[Id, Head] = {}
        for executor in self.executors:
            found.update({key: head for key, head in executor.node.heads.found.items() if key[0] == executor.node.address})
        return found

    def replicas(self) -> Mapping[tuple[str, int], list[Event]]:
        """The events of each object at each member; roots are each by themselves."""
        found: dict[tuple[str, int], list[Event]] = {}
        heads = self.heads()
        for event in self.events:
            if event.message not in heads:
                continue  # A further target of a request, which was sent once.
            instance = event.instance
            home = (instance.object, instance.member) if instance.object else (f"root {instance.number}", instance.member)
            found.setdefault(home, []).append(event)
        return found


def closure(execution: Execution) -> dict[Id, set[Id]]:
    """Everything that significantly precedes each message, by the definition."""
    heads = execution.heads()
    direct: dict[Id, set[Id]] = {message: set() for message in heads}
    for (name, _), events in execution.replicas().items():
        start = {event.instance: index for index, event in enumerate(events) if event.kind == "start"}
        end = {event.instance: index for index, event in enumerate(events) if event.kind in ("respond", "end")}
        for index, event in enumerate(events):
            if event.kind not in ("send", "respond"):
                continue
            for earlier in events[:index]:
                if earlier.kind == "end":
                    continue
                if earlier.instance == event.instance:
                    direct[event.message].add(earlier.message)
                elif earlier.instance in start and event.instance in start:
                    type = execution.catalogue.find(name).type
                    conflict = type.conflict(execution.ops[earlier.instance], execution.ops[event.instance])
                    ended = end.get(earlier.instance)
                    if conflict and ended is not None and ended < start[event.instance]:
                        direct[event.message].add(earlier.message)
            if event.kind == "respond" and event.instance not in start:
                # It gave way without starting: it received its request, and answered.
                direct[event.message].add((event.instance.origin, event.instance.number))
    before: dict[Id, set[Id]] = {}
    for message in sorted(heads, key=lambda each: heads[each].stamp):
        before[message] = set(direct[message])
        for each in direct[message]:
            before[message] |= before[each]
    return before


def vector_errors(execution: Execution, before: dict[Id, set[Id]]) -> list[str]:
    """Where the vectors say something else than the definition.

    Exact ones must say the same; those from which is forgotten what is delivered everywhere may leave that out, and
    nothing else; dense ones may say more, but not less.
    """
    heads, options = execution.heads(), execution.plan.options
    dense = options.vectors == "dense"
    delivered = _delivered_everywhere(execution) if options.collect else {}
    sent = {event.message: index for index, event in enumerate(execution.events) if event.kind in ("send", "respond")}
    sent_by: dict[Instance, list[tuple[int, Id]]] = {}
    for message, head in heads.items():
        sent_by.setdefault(dense_key(head.sender) if dense else head.sender, []).append((head.sends, message))
    wrong = []
    for second, head in heads.items():
        said = {first for sender, mark in head.past for sends, first in sent_by[sender] if sends <= mark.sends}
        if said - before[second] and not dense:
            wrong.append(f"the vector of {second} has {min(said - before[second])}, which does not precede it")
        missed = {first for first in before[second] - said if delivered.get(first, ENDLESS) > sent[second]}
        if missed:
            wrong.append(f"the vector of {second} lacks {min(missed)}, which precedes it")
    return wrong


def _delivered_everywhere(execution: Execution) -> dict[Id, int]:
    """For each message, the place in the run at which it had been delivered wherever it went."""
    found: dict[Id, int] = {}
    for index, event in enumerate(execution.events):
        if event.kind == "respond" and event.instance not in execution.ops:
            found[event.instance.origin, event.instance.number] = index  # It gave way, and was answered at once.
        elif event.kind in ("start", "receive"):
            found[event.message] = index
    return found


def order_violations(execution: Execution, before: dict[Id, set[Id]]) -> list[str]:
    """Every way in which an execution broke the order that it promises."""
    wrong: list[str] = []
    heads, orders = execution.heads(), dict[tuple[Id, Id], dict[str, bool]]()
    for (name, member), events in execution.replicas().items():
        if name not in execution.catalogue.objects:
            wrong += _responses(events, before)
            continue
        conflict = execution.catalogue.find(name).type.conflict
        wrong += _responses(events, before) + _overlaps(events, execution, conflict)
        starts = [event for event in events if event.kind == "start"]
        for index, second in enumerate(starts):
            for first in starts[:index]:
                one, other = first.message, second.message
                if not conflict(execution.ops[first.instance], execution.ops[second.instance]):
                    continue
                if other in before[one]:
                    wrong.append(f"{name}@{member} ran {one} before {other}, which significantly precedes it")
                forward = one < other
                pair = (one, other) if forward else (other, one)
                if orders.setdefault(pair, {}).setdefault("", forward) != forward:
                    wrong.append(f"{name}@{member} ran {pair} in another order than elsewhere")
                if heads[one].stamp > heads[other].stamp:
                    wrong.append(f"{name}@{member} ran {one} before {other}, which is older")
    return wrong


def _responses(events: list[Event], before: dict[Id, set[Id]]) -> list[str]:
    received: dict[Instance, list[Id]] = {}
    wrong = []
    for event in events:
        if event.kind == "receive":
            early = [each for each in received.setdefault(event.instance, []) if event.message in before[each]]
            wrong += [f"{event.instance} received {each} before {event.message}, which precedes it" for each in early]
            received[event.instance].append(event.message)
    return wrong


def _overlaps(events: list[Event], execution: Execution, conflict: Callable[[str, str], bool]) -> list[str]:
    active: list[Instance] = []
    wrong, chains = [], ancestors(execution)
    for event in events:
        if event.kind == "start":
            op, own = execution.ops[event.instance], chains(event.instance)
            beside = [other for other in active if conflict(execution.ops[other], op) and other not in own]
            wrong += [f"{event.instance} ran beside {other}, with which it conflicts" for other in beside]
            active.append(event.instance)
        elif event.kind in ("respond", "end") and event.instance in active:
            active.remove(event.instance)
    return wrong


def ancestors(execution: Execution) -> Callable[[Instance], set[Instance]]:
    heads = execution.heads()

    def find(instance: Instance) -> set[Instance]:
        found: set[Instance] = set()
        while instance.object:
            instance = heads[instance.origin, instance.number].sender
            found.add(instance)
        return found

    return find
