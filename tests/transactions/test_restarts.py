"""Live replicas that end and come back: with their disks, without one, and after all were killed at once."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import ExitStack, suppress
from pathlib import Path
from shutil import rmtree

import pytest

import quire
from quire.journal.summary import summarise
from quire.live.network.peers import Peer
from quire.live.runs.collecting import collect
from quire.live.runs.fleet import free_addresses
from quire.model.errors import NoQuorum
from quire.pipeline import Verdict
from quire.pipeline.auditing.auditor import audit_here
from quire.protocols.transactions.quorum_replica import QuorumReplica
from quire.wire.frames import PACKET
from tests.kit.patience import PATIENCE_S
from tests.kit.virtual_time import run_in_virtual_time
from tests.live.test_examples import Terminal
from tests.transactions.histories import dirty_read, wrong_order
from tests.transactions.test_live import ACCOUNTS, REPLICAS, open_accounts
from tests.transactions.test_outages import LOADED_S
from tests.transactions.test_simulate import read_histories

TELLERS = 2
TOTAL = f"all accounts together hold {100 * ACCOUNTS}"


class Bank:
    """Replicas with journals, and tellers, as processes."""

    def __init__(self, journals: Path, stack: ExitStack) -> None:
        self.journals = journals
        self._stack = stack
        self._addresses = free_addresses(REPLICAS + TELLERS)
        self.replicas = [self._start(me) for me in range(REPLICAS)]
        self.tellers = [self._start(REPLICAS + me) for me in range(TELLERS)]
        for process in (*self.replicas, *self.tellers):
            assert process.line() == "Everybody is here."

    def _start(self, me: int) -> Terminal:
        terminal = Terminal("bank.py", str(me), str(REPLICAS), *self._addresses, "--journal", self.journal(me))
        self._stack.callback(terminal.end)
        return terminal

    def journal(self, me: int) -> Path:
        return self.journals / f"replica-{me}"

    def kill(self, replica: int) -> None:
        self.replicas[replica].end()

    def restart(self, replica: int) -> None:
        self.replicas[replica] = self._start(replica)

    def total(self) -> str:
        """As the first teller sees it, which asks until the replicas answer."""
        answer = "no majority"
        while "no majority" in answer:
            self.tellers[0].type("total")
            answer = self.tellers[0].line()
        return answer


def test_the_total_is_right_at_every_moment_while_each_replica_is_killed_and_comes_back_and_after_all_were(
    tmp_path: Path,
) -> None:
    with ExitStack() as stack:
        bank = Bank(tmp_path, stack)
        open_accounts(bank.tellers[0])
        for replica in range(REPLICAS):
            bank.tellers[1].type("shuffle 15")
            bank.kill(replica)
            assert bank.total() == TOTAL
            bank.restart(replica)
            assert bank.replicas[replica].line() == "Everybody is here.", "it need not wait for anybody"
            while not bank.tellers[1].has_said_something():
                assert bank.total() == TOTAL
            assert bank.tellers[1].line() == "made 15 transfers"
        # Killed while they work, all of them: whatever was committed is there when they are.
        bank.tellers[1].type("open last 0")
        assert bank.tellers[1].line() == "last has 0"
        for replica in range(REPLICAS):
            bank.kill(replica)
        rmtree(bank.journal(2))
        for replica in range(REPLICAS):
            bank.restart(replica)
        assert bank.total() == TOTAL
        bank.tellers[0].type("show last")
        assert bank.tellers[0].line() == "last has 0"
        # When the one that lost its disk has got everything from the others, one of them can be spared.
        assert bank.replicas[2].line() == "Everybody is here."
        while "state" not in summarise(bank.journal(2)).types:
            assert bank.total() == TOTAL
        bank.kill(0)
        assert bank.total() == TOTAL
        for teller in bank.tellers:
            teller.type("quit")
        for process in (*bank.replicas[1:], *bank.tellers):
            process.process.communicate(timeout=PATIENCE_S)
            assert process.process.returncode == 0


class Ended(Exception):
    """A replica's process is ended from outside."""


class Cluster:
    """The same in tasks of one process."""

    def __init__(self, folder: Path, *, journals: bool = True, **options: object) -> None:
        self.folder = folder
        self._journals = journals
        self._options = options
        self._addresses = free_addresses(REPLICAS + 1)
        self._ends = [asyncio.Event() for _ in range(REPLICAS)]
        self.members: list[quire.StoreMember] = [self.member(me) for me in range(REPLICAS)]
        self.tasks = [asyncio.create_task(self._serve(me)) for me in range(REPLICAS)]
        self.client = self.member(REPLICAS)

    def member(self, me: int) -> quire.StoreMember:
        return quire.join_store(
            "cluster", me=me, members=self._addresses, replicas=REPLICAS, options=self._options, timeout_s=2, codec=quire.JSON,
            join_s=PATIENCE_S, journal=self.folder / f"journal-{me}" if self._journals else None, trace=self.folder / "parts",
        )  # fmt: skip

    async def _serve(self, me: int) -> None:
        with suppress(Ended):
            async with self.members[me]:
                ended = asyncio.create_task(self._ends[me].wait())
                over = asyncio.create_task(self.members[me].until_not_needed())
                await asyncio.wait((ended, over), return_when=asyncio.FIRST_COMPLETED)
                over.cancel()
                if self._ends[me].is_set():
                    raise Ended
                ended.cancel()

    async def end(self, me: int) -> None:
        self._ends[me].set()
        await self.tasks[me]

    def start(self, me: int) -> None:
        self._ends[me] = asyncio.Event()
        self.members[me] = self.member(me)
        self.tasks[me] = asyncio.create_task(self._serve(me))

    async def add(self, key: str) -> int:
        """One more; returns how much it is then."""

        async def program(t: quire.Transaction) -> int:
            value: int = 1 + (await t.read(key) or 0)
            await t.write(key, value)
            return value

        while True:
            with suppress(NoQuorum):
                return await self.client.store.run(program)

    async def until_begun(self, me: int) -> None:
        host = self.members[me]._host
        assert isinstance(host.node, QuorumReplica)
        while host.node.recovering:
            await asyncio.sleep(0.01)


def run(folder: Path, act: Callable[[Cluster], Awaitable[None]], *, journals: bool = True, **options: object) -> None:
    async def main() -> None:
        cluster = Cluster(folder, journals=journals, **options)
        async with cluster.client:
            await act(cluster)
        await asyncio.gather(*cluster.tasks)

    asyncio.run(asyncio.wait_for(main(), PATIENCE_S))


def test_a_replica_that_kept_nothing_comes_back_with_what_the_others_have(tmp_path: Path) -> None:
    async def act(cluster: Cluster) -> None:
        assert await cluster.add("x") == 1
        for replica in range(REPLICAS):
            await cluster.end(replica)
            cluster.start(replica)
            assert await cluster.add("x") == 2 + replica
            await cluster.until_begun(replica)

    run(tmp_path, act, journals=False)


def test_replicas_that_kept_nothing_and_are_all_gone_are_not_taken_for_a_new_store(tmp_path: Path) -> None:
    async def act(cluster: Cluster) -> None:
        assert await cluster.add("x") == 1
        for replica in range(REPLICAS):
            await cluster.end(replica)
        for replica in range(REPLICAS):
            cluster.start(replica)
        with pytest.raises(NoQuorum):
            await cluster.client.store.run(lambda t: t.read("x"), timeout_s=3)
        for replica in range(REPLICAS):
            await cluster.end(replica)

    run(tmp_path, act, journals=False)


def test_replicas_that_are_restarted_before_the_store_has_come_together_found_it_all_the_same(tmp_path: Path) -> None:
    async def main() -> None:
        cluster = Cluster(tmp_path, journals=False)
        met = cluster.members[0]._host._mesh.incarnations
        while len(met()) < REPLICAS - 1:
            await asyncio.sleep(0.01)
        for replica in (1, 2):
            cluster.tasks[replica].cancel()
            await asyncio.wait([cluster.tasks[replica]])
            cluster.start(replica)
        async with cluster.client:
            await cluster.client.store.run(lambda t: t.write("x", 1), timeout_s=LOADED_S)
        await asyncio.gather(*cluster.tasks)

    asyncio.run(asyncio.wait_for(main(), PATIENCE_S))


def test_that_a_process_took_part_is_known_when_the_next_one_ends_before_it_says_anything() -> None:
    peer = Peer(1, "127.0.0.1:7001")
    peer.restarted()
    assert not peer.took_part(), "nothing was said to any process of it"
    peer.outgoing.push(PACKET, 0, 0, b"")
    for _ in range(2):
        assert peer.took_part()
        peer.restarted()
    assert peer.is_unused()


def test_either_all_replicas_have_journals_or_none(tmp_path: Path) -> None:
    async def main() -> None:
        addresses = ["127.0.0.1:7000", "127.0.0.1:7001", "127.0.0.1:7002"]

        async def serve(me: int) -> None:
            journal = tmp_path / "journal" if me == 1 else None
            async with quire.join_store("mixed", me=me, members=addresses, replicas=2, transport="memory", journal=journal):
                raise AssertionError

        for error in await asyncio.gather(*map(serve, range(2)), return_exceptions=True):
            assert isinstance(error, quire.BadInput)
            assert "member 1 has a journal and member 0 has none; give all replicas journals, or none of them" in str(error)

    run_in_virtual_time(main())


def test_what_a_crash_left_half_written_is_not_read(tmp_path: Path) -> None:
    async def act(cluster: Cluster) -> None:
        assert await cluster.add("x") == 1
        for replica in range(REPLICAS):
            await cluster.end(replica)
            last = max((cluster.folder / f"journal-{replica}").glob("*.log"))
            with last.open("ab") as file:
                file.write(b"\x20\0\0\0 the length of a record, and not all of it")
        for replica in range(REPLICAS):
            cluster.start(replica)
        assert await cluster.add("x") == 2

    run(tmp_path, act)


def test_a_large_state_comes_to_a_new_replica_in_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("quire.protocols.transactions.pieces.PIECE_BYTES", 500)

    async def act(cluster: Cluster) -> None:
        for number in range(40):
            await cluster.add(f"key-{number}")
        await cluster.end(1)
        rmtree(cluster.folder / "journal-1")
        cluster.start(1)
        await cluster.until_begun(1)
        await cluster.end(0)
        assert [await cluster.add(f"key-{number}") for number in range(40)] == [2] * 40
        cluster.start(0)
        await cluster.add("x")

    run(tmp_path, act)


def test_the_trace_of_replicas_that_came_back_tells_every_transaction(tmp_path: Path) -> None:
    async def act(cluster: Cluster) -> None:
        for round_ in range(REPLICAS):
            adding = asyncio.gather(*(cluster.add(key) for key in "xyxyx"))
            await cluster.end(round_)
            cluster.start(round_)
            await adding
            await cluster.until_begun(round_)

    run(tmp_path, act)
    collect(tmp_path / "parts", tmp_path / "run")
    history, committed = read_histories(tmp_path / "run")
    assert len(committed) == 5 * REPLICAS
    assert wrong_order(history, committed) is None
    assert dirty_read(history, committed) is None
    judged = audit_here(tmp_path / "run", expect=["serialisable"])
    assert judged.verdict is Verdict.HOLDS


def test_a_long_journal_is_begun_anew_and_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("quire.live.journals.CHECKPOINT_BYTES", 3000)

    async def act(cluster: Cluster) -> None:
        for number in range(60):
            assert await cluster.add("x") == 1 + number
        assert list((cluster.folder / "journal-0").glob("*.snapshot"))
        for replica in range(REPLICAS):
            await cluster.end(replica)
        for replica in range(REPLICAS):
            cluster.start(replica)
        assert await cluster.add("x") == 61

    run(tmp_path, act)


def test_a_journal_belongs_to_one_process(tmp_path: Path) -> None:
    async def act(cluster: Cluster) -> None:
        await cluster.add("x")
        with pytest.raises(quire.BadInput, match="belongs to one process at a time"):
            async with cluster.member(0):
                raise AssertionError

    run(tmp_path, act)


def test_a_journal_is_of_no_use_where_nobody_may_crash(tmp_path: Path) -> None:
    members = ["127.0.0.1:7000", "127.0.0.1:7001"]
    with pytest.raises(quire.BadInput, match="choose replication=majority"):
        quire.join_store(
            "bank", me=0, members=members, replicas=1, options={"replication": "all"}, journal=tmp_path / "journal"
        )
