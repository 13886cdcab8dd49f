"""Objects as an application sees them: results, aborts, what is taken back, retries, replicas, and what is refused."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest

from quire.model.errors import BadInput, ProtocolViolation
from quire.objects.call import Call
from quire.objects.declare import operation
from quire.objects.executor import Executor, Program
from quire.protocols.objects.declarations import Catalogue, Pair, Placed, declare
from quire.protocols.objects.errors import (
    CallAborted,
    EmptyDestination,
    InstanceEnded,
    MayNotCall,
    UnknownObject,
    UnknownOperation,
)
from quire.protocols.objects.exchange import ObjectOptions
from quire.protocols.objects.node import ObjectNode
from quire.protocols.objects.notices import Suspected
from quire.protocols.objects.packets import Data, Instance, Response
from quire.simulation.delays import parse_delays
from quire.simulation.network import Network
from quire.simulation.randomness import stream
from quire.simulation.steps import SteppedRuntime
from quire.simulation.world import World
from tests.objects.accounts import BaseAccount
from tests.objects.kit import add_to_world


class Account(BaseAccount):
    conflicts: ClassVar[set[Pair]] = {("withdraw", "withdraw"), ("deposit", "withdraw")}

    def __init__(self) -> None:
        self.balance = 100

    @operation
    async def withdraw(self, call: Call, amount: int) -> None:
        if amount > self.balance:
            raise ValueError("not enough money")
        self.balance -= amount

    @operation
    async def send(self, call: Call, to: str, amount: int) -> None:
        await call.invoke(to, "deposit", amount)
        await self.withdraw(call, amount)

    @operation(calls=False)
    async def peek(self, call: Call) -> int:
        return self.balance


class Bank:
    """Accounts at three members, one of them with replicas at all, on a network with a seed."""

    def __init__(self, seed: int = 0, loss: float = 0.0) -> None:
        delays = parse_delays("exponential:1", 3)
        self.world = World(Network(3, delays, stream(seed, "network"), loss=loss, duplicate=loss, reorder=True))
        places = {"a": (0,), "b": (1,), "c": (2,), "everywhere": (0, 1, 2)}
        self.catalogue = Catalogue(3, {name: Placed(Account.type, members) for name, members in places.items()})
        self.executors = []
        for member in range(3):
            runtime = SteppedRuntime(self.world, stream(seed, f"jitter/{member}"))
            node = ObjectNode(member, self.catalogue, ObjectOptions(heartbeat_ms=5))
            executor = Executor(node, {name: Account() for name in self.catalogue.at(member)}, runtime)
            add_to_world(self.world, executor, runtime)
            self.executors.append(executor)

    def run(self, *programs: Program) -> list[Any]:
        """The results of all, or what they raised, after everything has ended."""
        found: list[Any] = [None] * len(programs)
        left = [len(programs)]

        def finish(place: int, result: Any, error: BaseException | None) -> None:
            found[place] = error if error is not None else result
            left[0] -= 1

        for place, program in enumerate(programs):
            executor = self.executors[place % 3]
            executor._runtime.start(
                executor.run(program),
                lambda result, error, place=place: finish(place, result, error),  # type: ignore[misc]
            )
        assert self.world.run(10_000_000_000, lambda: not left[0] and self.world.idle())
        return found

    def account(self, name: str, member: int) -> Account:
        account = self.executors[member].objects[name]
        assert isinstance(account, Account)
        return account


def calling(targets: str | list[str], op: str, *args: Any) -> Program:
    async def program(call: Call) -> Any:
        return await call.invoke(targets, op, *args)

    return program


def test_a_call_returns_what_the_operation_returns() -> None:
    bank = Bank()
    assert bank.run(calling("b", "deposit", 5)) == [105]
    assert bank.run(calling(["a", "b"], "peek")) == [{"a": 100, "b": 105}]


def test_replicas_all_run_a_request_and_one_result_comes_back() -> None:
    bank = Bank(3, loss=0.2)
    withdrawals = [calling("everywhere", "withdraw", 30) for _ in range(5)]
    outcomes = bank.run(*withdrawals)
    assert sum(outcome is None for outcome in outcomes) == 3
    assert {bank.account("everywhere", member).balance for member in range(3)} == {10}


def test_an_exception_aborts_the_caller_and_what_was_done_is_taken_back() -> None:
    bank = Bank()
    (outcome,) = bank.run(calling("a", "send", "b", 1000))
    assert isinstance(outcome, CallAborted)
    assert str(outcome) == "a aborted the call: not enough money"
    assert [bank.account(name, place).balance for place, name in enumerate("ab")] == [100, 100]


def test_a_caller_may_go_on_without_a_call_that_aborted() -> None:
    bank = Bank()

    async def program(call: Call) -> str:
        try:
            await call.invoke("a", "withdraw", 1000)
        except CallAborted:
            await call.invoke("b", "withdraw", 10)
        return "done"

    assert bank.run(program) == ["done"]
    assert bank.account("b", 1).balance == 90


def test_a_call_that_fails_at_one_target_is_taken_back_at_the_others() -> None:
    bank = Bank()
    bank.account("a", 0).balance = 0

    async def program(call: Call) -> None:
        await call.invoke(["b", "c"], "deposit", 7)
        await call.invoke("a", "withdraw", 1)

    (outcome,) = bank.run(program)
    assert isinstance(outcome, CallAborted)
    assert [bank.account("b", 1).balance, bank.account("c", 2).balance] == [100, 100]


@pytest.mark.parametrize("seed", range(20))
def test_money_is_conserved_whoever_gives_way(seed: int) -> None:
    bank, random = Bank(seed, loss=0.1), stream(seed, "transfers")
    pairs = [random.sample("abc", 2) for _ in range(12)]
    outcomes = bank.run(*(calling(source, "send", target, random.randint(1, 60)) for source, target in pairs))
    assert all(outcome is None or isinstance(outcome, CallAborted) for outcome in outcomes)
    assert sum(bank.account(name, place).balance for place, name in enumerate("abc")) == 300


def test_what_makes_no_sense_is_refused_where_it_is_called() -> None:
    bank = Bank()
    refused: list[tuple[str | list[str], str, type[Exception]]] = [
        ("nobody", "peek", UnknownObject),
        ("a", "steal", UnknownOperation),
        ([], "peek", EmptyDestination),
        (["a", "a"], "peek", EmptyDestination),
    ]
    for targets, op, error in refused:
        (outcome,) = bank.run(calling(targets, op))
        assert isinstance(outcome, error)
    (outcome,) = bank.run(calling("a", "deposit", {1, 2}, object()))
    assert isinstance(outcome, BadInput)


def test_replicas_may_not_call() -> None:
    (outcome,) = Bank().run(calling("everywhere", "send", "a", 1))
    assert isinstance(outcome, CallAborted)
    assert "may not call others" in str(outcome)


def test_an_instance_that_has_ended_cannot_call() -> None:
    node = ObjectNode(0, Catalogue(1, {"a": Placed(Account.type, (0,))}))
    root = node.begin(0)
    node.finish(0, root, "ok")
    with pytest.raises(InstanceEnded):
        node.invoke(0, root, 0, ["a"], "peek", b"")
    with pytest.raises(MayNotCall):
        raise MayNotCall


def test_undeclared_pairs_conflict_and_declared_ones_do_as_declared() -> None:
    type = declare(["a", "b", "c"], conflicts=[("a", "a"), ("a", "b")], compatible=[("c", "c")])
    assert type.conflict("a", "b")
    assert type.conflict("b", "a")
    assert not type.conflict("b", "b")
    assert not type.conflict("c", "c")
    assert type.conflict("b", "c")
    assert declare(["a"]).conflict("a", "a")
    with pytest.raises(BadInput, match="choose one"):
        declare(["a"], [("a", "a")], [("a", "a")])
    with pytest.raises(BadInput, match="no operation 'x'"):
        declare(["a"], [("a", "x")])


def test_an_order_is_explained() -> None:
    bank = Bank()
    bank.run(calling("everywhere", "withdraw", 1))
    bank.run(calling("everywhere", "withdraw", 2))
    bank.run(calling("everywhere", "peek"))
    node = bank.executors[0].node
    first, second, third = [key for key, head in node.heads.found.items() if head.to is None]
    explanation = node.explain(second, first)
    assert (explanation.first, explanation.second, explanation.where) == (first, second, ("everywhere",))
    assert "withdraw and withdraw conflict at everywhere" in explanation.because
    # What the first root did and what the second did have nothing to do with each other before they meet.
    assert not explanation.significant
    assert node.explain(first, third).first == first
    with pytest.raises(BadInput, match="no record"):
        node.explain((0, 999), first)


def test_compatible_calls_are_explained_as_unordered() -> None:
    bank = Bank()
    bank.run(calling("a", "deposit", 1))
    bank.run(calling("a", "deposit", 2))
    node = bank.executors[0].node
    first, second = [key for key, head in node.heads.found.items() if head.to is None]
    explanation = node.explain(first, second)
    assert explanation.first is None
    assert "deposit and deposit do not conflict at a" in explanation.because


def test_a_peer_that_breaks_the_rules_is_refused_and_nothing_is_taken() -> None:
    node = ObjectNode(0, Catalogue(2, {"a": Placed(Account.type, (0,))}))
    me, peer = Instance(0, 0, "", 0), Instance(1, 0, "", 1)

    def response(number: int, clock: int, sender: Instance = peer) -> Response:
        return Response(number, clock, sender, 1, (), me, "ok", b"")

    node.receive(0, 1, Data(2, 0, response(5, 5)))
    for bad in (
        Data(2, 0, response(6, 5)),  # another message with a number that is taken
        Data(1, 0, response(4, 5)),  # a clock that does not grow
        Data(3, 0, response(6, 4)),
        Data(3, 9, response(6, 6)),  # acknowledges what was never sent
        Data(3, 0, response(6, 6, me)),  # somebody else's message
    ):
        with pytest.raises(ProtocolViolation):
            node.receive(0, 1, bad)
    assert node.exchange.clock == 5


def test_a_silent_peer_is_suspected_and_nothing_else_changes() -> None:
    node = ObjectNode(0, Catalogue(2, {"a": Placed(Account.type, (0,))}), ObjectOptions(suspect_ms=100))
    root = node.begin(0)
    node.invoke(0, root, 0, ["a"], "withdraw", b"")
    start = 10**15  # A clock may begin anywhere.
    assert not [effect for effect in node.wake(start) if isinstance(effect, Suspected)]
    told = [effect for effect in node.wake(start + 200_000_000) if isinstance(effect, Suspected)]
    assert told == [Suspected(1)]
    assert not node.queues["a"].active
