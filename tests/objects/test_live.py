"""Objects over real sockets: the same classes as in the simulator, in processes of their own where it matters."""

from __future__ import annotations

import asyncio
import json
import subprocess
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import ClassVar

import pytest

import quire
from quire.live.runs.fleet import free_addresses
from quire.objects.executor import Program
from quire.protocols.objects.declarations import Pair
from quire.simulation.config import NetworkConfig
from quire.simulation.objects import Root, simulate_objects
from tests.kit.patience import PATIENCE_S
from tests.live.test_examples import Terminal, terminals
from tests.live.test_run import QUIRE


class Account(quire.Object):
    conflicts: ClassVar[set[Pair]] = {("send", "send"), ("send", "deposit")}

    def __init__(self) -> None:
        self.balance = 100

    @quire.operation
    async def deposit(self, call: quire.Call, amount: int) -> int:
        self.balance += amount
        return self.balance

    @deposit.undo
    def take_back(self, call: quire.Call, amount: int) -> None:
        self.balance -= amount

    @quire.operation
    async def send(self, call: quire.Call, to: str, amount: int) -> None:
        await asyncio.sleep(0)  # An operation of a live group may await whatever it likes.
        await call.invoke(to, "deposit", amount)
        if amount > self.balance:
            raise ValueError("not enough money")
        self.balance -= amount


class Register(quire.Object):
    def __init__(self) -> None:
        self.values: list[str] = []

    @quire.operation
    async def push(self, call: quire.Call, value: str) -> int:
        self.values.append(value)
        return len(self.values)


def test_transfers_in_cycles_conserve_the_money_and_replicas_agree() -> None:
    objects = {f"account {number}": quire.place(Account, number) for number in range(3)}
    objects["log"] = quire.place(Register, 0, 1, 2)
    addresses = free_addresses(3)
    groups = [quire.join_objects("bank", me=me, members=addresses, objects=objects) for me in range(3)]

    async def take_part(me: int) -> None:
        async with groups[me] as group:
            for number in range(15):
                there = f"account {(me + 1 + number % 2) % 3}"
                outcome = "sent"
                try:
                    await group.invoke(f"account {me}", "send", there, 30)
                except quire.CallAborted:
                    outcome = "refused"
                await group.invoke("log", "push", f"{me} {number} {outcome}")

    async def main() -> None:
        async with asyncio.timeout(PATIENCE_S):
            await asyncio.gather(*map(take_part, range(3)))

    asyncio.run(main())
    accounts = [group.objects[f"account {me}"] for me, group in enumerate(groups)]
    assert sum(account.balance for account in accounts if isinstance(account, Account)) == 300
    logs = [log.values for log in (group.objects["log"] for group in groups) if isinstance(log, Register)]
    assert len(logs[0]) == 45
    assert logs[0] == logs[1] == logs[2]


def test_the_same_classes_run_in_the_simulator() -> None:
    objects = {f"account {number}": quire.place(Account, number) for number in range(3)}

    def transfer(source: int, target: int) -> Program:
        async def program(call: quire.Call) -> None:
            # What only an event loop can give is not to be had in virtual time, so the operation itself cannot be used.
            await call.invoke(f"account {source}", "deposit", -30)
            await call.invoke(f"account {target}", "deposit", 30)

        return program

    roots = [Root(number % 3, transfer(number % 3, (number + 1) % 3), at_ms=number) for number in range(12)]
    outcomes, members = simulate_objects(3, objects, roots, network=NetworkConfig(loss=0.2, duplicate=0.2, reorder=True))
    assert outcomes == [None] * 12
    accounts = [members[number][f"account {number}"] for number in range(3)]
    assert sum(account.balance for account in accounts if isinstance(account, Account)) == 300

    async def waits(call: quire.Call) -> None:
        await call.invoke("account 0", "send", "account 1", 5)

    (outcome,), _ = simulate_objects(3, objects, [Root(0, waits)])
    assert isinstance(outcome, quire.CallAborted)
    assert "in the simulator an operation can await calls and call.sleep, nothing else" in str(outcome)


def test_members_that_were_given_other_objects_do_not_start() -> None:
    addresses = free_addresses(2)

    async def take_part(me: int) -> None:
        objects = {f"log {me}": quire.place(Register, 0, 1)}
        async with quire.join_objects("bank", me=me, members=addresses, objects=objects, timeout_s=5):
            pytest.fail("they started")

    async def main() -> list[BaseException | None]:
        return await asyncio.gather(*map(take_part, range(2)), return_exceptions=True)

    for outcome in asyncio.run(main()):
        assert isinstance(outcome, quire.QuireError)


def test_objects_run_in_processes_and_leave_a_whole_trace(tmp_path: Path) -> None:
    done = subprocess.run(
        [*QUIRE, "run", "--protocol", "objects", "--members", "3", "--messages", "40",
         "--option", "aborts=10", "--out", tmp_path / "run", "--no-audit", "--json"],
        capture_output=True, text=True, timeout=PATIENCE_S, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    run = result.get("run_result", result)
    assert run["complete"]
    assert run["details"]["roots"] == 120
    assert run["details"]["replicas_equal"]
    info = json.loads((tmp_path / "run/run.json").read_text())
    assert info["settings"]["conflicts"]["x0"]["set"] == ["set"]


def test_the_shared_document_outlives_a_writer_that_is_killed() -> None:
    addresses = free_addresses(6)
    with ExitStack() as stack:
        people = [Terminal("shared_document.py", str(me), *addresses[:3], "--views", *addresses[3:]) for me in range(3)]
        for person in people:
            stack.callback(person.end)
        for person in people:
            assert person.line() == "Writing with 2 others; end with Ctrl-D."
        for number, person in enumerate(people):
            for word in range(20):
                person.type(f"append 1 {number}.{word}")
        people[2].line()
        people[2].process.kill()
        for number, person in enumerate(people[:2]):
            person.type(f"append 1 last-{number}")
        with ThreadPoolExecutor(2) as pool:
            ended = list(pool.map(lambda person: person.process.communicate(timeout=PATIENCE_S), people[:2]))
        assert [person.process.returncode for person in people[:2]] == [0, 0]
        shown = [out.splitlines() for out, _ in ended]
    documents = [lines[-5:] for lines in shown]
    assert documents[0] == documents[1]
    words = documents[0][1].removeprefix("paragraph 1: ").split()
    assert {"last-0", "last-1", *(f"{number}.{word}" for number in range(2) for word in range(20))} <= set(words)
    assert len(words) == len(set(words)), "nothing is done twice"


def test_the_shared_document_is_the_same_everywhere() -> None:
    with terminals("shared_document.py") as people:
        for person in people:
            assert person.line() == "Writing with 2 others; end with Ctrl-D."
        for number, person in enumerate(people):
            for word in range(5):
                person.type(f"append 1 {number}.{word}")
            person.type("like 2")
            person.type(f"write 3 {number} was here")
        for person in people:
            person.type("delete 1")
        # Each closes when all have, so all must be told at once.
        with ThreadPoolExecutor(len(people)) as pool:
            shown = list(pool.map(Terminal.rest, people))
    documents = [lines[-5:] for lines in shown]
    assert documents[0] == documents[1] == documents[2]
    assert sorted(documents[0][1].removeprefix("paragraph 1: ").split()[:15]) == sorted(
        f"{number}.{word}" for number in range(3) for word in range(5)
    )
    assert documents[0][2] == "paragraph 2:  (3 likes)"
    assert all(any("has no operation 'delete'" in line for line in lines) for lines in shown)
