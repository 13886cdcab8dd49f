"""Stores in real processes: the bank conserves its total, also when a replica or a teller is killed; `quire run`."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

import quire
from quire.live.runs.fleet import free_addresses
from tests.kit.effort import cases
from tests.kit.patience import PATIENCE_S
from tests.live.test_examples import Terminal
from tests.transactions.histories import dirty_read, wrong_order
from tests.transactions.test_simulate import read_histories

REPLICAS, TELLERS = 3, 3
ACCOUNTS = 4


@contextmanager
def bank() -> Iterator[list[Terminal]]:
    addresses = free_addresses(REPLICAS + TELLERS)
    with ExitStack() as stack:
        opened = []
        for me in range(REPLICAS + TELLERS):
            terminal = Terminal("bank.py", str(me), str(REPLICAS), *addresses)
            stack.callback(terminal.end)
            opened.append(terminal)
        for terminal in opened:
            assert terminal.line() == "Everybody is here."
        yield opened


def open_accounts(teller: Terminal) -> None:
    for number in range(ACCOUNTS):
        teller.type(f"open account-{number} 100")
        assert teller.line() == f"account-{number} has 100"


def shuffle_at_once(tellers: list[Terminal], count: int) -> None:
    for teller in tellers:
        teller.type(f"shuffle {count}")


def test_concurrent_transfers_conserve_the_total() -> None:
    with bank() as processes:
        tellers = processes[REPLICAS:]
        open_accounts(tellers[0])
        shuffle_at_once(tellers, 10)
        for teller in tellers:
            assert teller.line() == "made 10 transfers"
        for teller in tellers:
            teller.type("total")
            assert teller.line() == "all accounts together hold 400"
            teller.type("quit")
        for process in processes:
            assert process.rest() == []


def test_the_bank_goes_on_when_a_replica_and_a_teller_are_killed() -> None:
    with bank() as processes:
        tellers = processes[REPLICAS:]
        open_accounts(tellers[0])
        shuffle_at_once(tellers, 10)
        processes[1].process.kill()
        tellers[2].process.kill()
        for teller in tellers[:2]:
            assert teller.line() == "made 10 transfers"
        for teller in tellers[:2]:
            teller.type("total")
            assert teller.line() == "all accounts together hold 400"
            teller.type("quit")
        for process in (processes[0], processes[2], *tellers[:2]):
            out, complaints = process.process.communicate(timeout=PATIENCE_S)
            assert (process.process.returncode, out) == (0, "")
            assert "bank:" not in complaints


def quire_run(out: Path, messages: int, **options: object) -> dict[str, Any]:
    """The details of a run of three replicas and their clients, which it has ended well."""
    given = [part for name, value in options.items() for part in ("--option", f"{name}={value}")]
    command = [sys.executable, "-c", "from quire.cli.main import main; main()", "run", "--protocol", "transactions",
               "--members", "3", "--messages", str(messages), *given, "--no-audit", "--json", "--out", str(out)]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["complete"]
    assert result["details"]["replicas_equal"]
    details: dict[str, Any] = result["details"]
    return details


@pytest.mark.parametrize("replication", ["majority", "all"])
def test_quire_run_leaves_a_trace_that_tells_every_transaction(tmp_path: Path, replication: str) -> None:
    details = quire_run(tmp_path / "run", 15, clients=2, keys=4, replication=replication)
    assert details["committed"] == 30
    history, committed = read_histories(tmp_path / "run")
    assert len(committed) == 30
    assert wrong_order(history, committed) is None
    assert dirty_read(history, committed) is None


@pytest.mark.parametrize("replication", cases(["majority"], ["all"]))
def test_nobody_gives_up_where_all_clients_want_the_same_keys(tmp_path: Path, replication: str) -> None:
    details = quire_run(tmp_path / "run", 40, clients=4, keys=2, replication=replication)
    assert (details["committed"], details["given_up"]) == (160, 0)
    assert details["retries"] > 0
    history, committed = read_histories(tmp_path / "run")
    assert wrong_order(history, committed) is None
    assert dirty_read(history, committed) is None


def test_what_makes_no_sense_is_refused_in_one_sentence() -> None:
    with pytest.raises(quire.BadInput, match="needs 1 to 1 replicas and a client"):
        quire.join_store("bank", me=0, members=["127.0.0.1:7000", "127.0.0.1:7001"], replicas=2)
    with pytest.raises(quire.BadInput, match="has no option"):
        quire.join_store("bank", me=0, members=["127.0.0.1:7000", "127.0.0.1:7001"], replicas=1, options={"no": 1})
