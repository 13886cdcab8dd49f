"""Levels of isolation below serialisability, against their definitions by brute force, and anomalies that tell them apart."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterable
from itertools import count, permutations
from pathlib import Path
from typing import Any

import pytest

from quire.model.errors import BadInput
from quire.model.orders import Guarantee
from quire.pipeline import Audit, Verdict
from quire.pipeline.auditing.auditor import audit_with
from quire.pipeline.auditing.checks.isolation import judge_levels
from quire.pipeline.auditing.isolation import Level
from quire.pipeline.auditing.registry import audit_job
from quire.pipeline.importing.edn import read_edn
from quire.pipeline.importing.importer import import_with
from quire.pipeline.importing.request import ImportRequest
from quire.pipeline.importing.tasks import IMPORT
from quire.pipeline.importing.values import NotJson
from quire.pipeline.tasks import run_here
from tests.audit import memory
from tests.audit.traces import Trace
from tests.audit.txn_traces import random_transactions
from tests.kit.effort import runs

TRACES = runs(200, 2000)
HISTORIES_TRIED = runs(40, 600)
INITIAL = "initial"
LEVELS = [Guarantee.READ_COMMITTED, Guarantee.READ_ATOMIC, Guarantee.TRANSACTIONAL_CAUSAL, Guarantee.SERIALISABLE]
Edge = tuple[str, str]


def brute_force(trace: Trace) -> tuple[bool, dict[Level, int]]:
    """Whether sessions and reads alone are a cycle, and how many knots of transactions there are at each level."""
    events = [(p, e) for p, log in enumerate(trace.logs) for e in log]
    committed = {e.txn for _, e in events if e.op == "commit"}
    sessions: dict[int, list[str]] = {}
    for p, e in events:
        if e.kind == "send" and e.txn in committed and e.txn is not None and e.txn not in sessions.setdefault(p, []):
            sessions[p].append(e.txn)
    names = {name for own in sessions.values() for name in own}
    writes = {(e.origin, e.seq): (e.txn, e.object) for _, e in events if e.kind != "view" and e.op == "w"}
    asked = {(e.origin, e.seq) for _, e in events if e.kind == "send" and e.op == "r"}
    wrote = {pair for pair in writes.values() if pair[0] in names}
    reads: list[tuple[str, str, str]] = []
    for _, e in events:
        if e.kind == "view" and e.op == "r" and e.txn in names and e.object is not None:
            writer, thing = writes.get((e.origin, e.seq), (None, None))
            if thing == e.object and writer in names and writer != e.txn:
                reads.append((e.txn, e.object, writer))
            elif thing is None and (e.origin, e.seq) in asked:
                reads.append((e.txn, e.object, INITIAL))
    so = {(a, b) for own in sessions.values() for i, a in enumerate(own) for b in own[i + 1 :]}
    wr = {(writer, reader) for reader, _, writer in reads}
    base = so | wr | {(INITIAL, name) for name in names}
    past = reachable(so | wr, names | {INITIAL})
    cyclic = any(name in past[name] for name in names)
    found = {}
    for level in Level:
        co: set[Edge] = set()
        for at, (t3, x, t1) in enumerate(reads):
            earlier = {w for r, _, w in reads[:at] if r == t3}
            for t2 in names - {t1, t3}:
                seen = {
                    Level.READ_COMMITTED: t2 in earlier,
                    Level.READ_ATOMIC: (t2, t3) in so | wr,
                    Level.CAUSAL: t2 in past[t3],
                }[level]
                if seen and (t2, x) in wrote:
                    co.add((t2, t1))
        reach = reachable(base | co, names | {INITIAL})
        found[level] = len({frozenset(b for b in reach[a] if a in reach[b]) for a in reach if a in reach[a]})
    return cyclic, found


def reachable(edges: set[Edge], names: set[str]) -> dict[str, set[str]]:
    """For each name those from which edges lead to it."""
    past: dict[str, set[str]] = {name: {a for a, b in edges if b == name} for name in names}
    for _ in names:
        for name in names:
            past[name] |= {earlier for each in past[name] for earlier in past[each]}
    return past


def test_levels_equal_brute_force() -> None:
    seen: Counter[str] = Counter()
    for seed in range(TRACES):
        trace = random_transactions(random.Random(seed), stamped=bool(seed % 2))
        cyclic, expected = brute_force(trace)
        found = judge_levels(memory.labelled(trace))
        if not found.named:
            continue
        for level in Level:
            cycles = found.levels[level].cycles
            assert bool(cycles) == bool(expected[level]), f"seed {seed}, {level.name}"
            if not cyclic:
                assert cycles == expected[level], f"seed {seed}, {level.name}"
            assert bool(found.levels[level].chain) == bool(cycles)
            seen[level.name] += bool(cycles)
        assert [bool(level.cycles) for level in found.levels] == sorted(bool(level.cycles) for level in found.levels), seed
        seen["clean"] += not any(expected.values())
    assert min(seen.values()) > TRACES / 100, seen


def explained(history: list[dict[str, Any]]) -> bool:
    """Whether some order of the transactions, one after the other, gives exactly what each of them read."""
    done = [entry["value"] for entry in history if entry["type"] == "ok"]
    return any(_replays(order) for order in permutations(done))


def _replays(order: Iterable[list[list[Any]]]) -> bool:
    state: dict[str, list[Any]] = {}
    for steps in order:
        for did, key, value in steps:
            if did == "r":
                now = state.get(key, [])
                if value != (now if isinstance(value, list) else now[-1] if now else None):
                    return False
            else:
                state[key] = [*state.get(key, []), value]
    return True


def random_history(rng: random.Random, write: str) -> list[dict[str, Any]]:
    """Transactions on a few keys that are carried out one after the other; now and then one of them reads what was there
    earlier, as if it had begun then."""
    state: dict[str, list[Any]] = {key: [] for key in "xy"[: rng.randint(1, 2)]}
    past = [state]
    stale = rng.choice((0.0, 0.6, 0.9))
    history: list[dict[str, Any]] = []
    values = count(1)
    for _ in range(rng.randint(2, 5)):
        seen = {key: list(values_) for key, values_ in (rng.choice(past) if rng.random() < stale else past[-1]).items()}
        new = {key: list(values_) for key, values_ in past[-1].items()}
        steps = []
        for _ in range(rng.randint(1, 3)):
            key = rng.choice(list(state))
            now, reads = seen[key], rng.random()
            if reads < 0.8:
                steps.append(["r", key, list(now) if write == "append" else now[-1] if now else None])
            if reads > 0.4:
                value = next(values)
                steps.append([write, key, value])
                seen[key].append(value)
                new[key].append(value)
        history.append({"process": len(history) % 3, "type": "ok", "value": steps})
        past.append(new)
    return history


@pytest.mark.parametrize("write", ["append", "w"])
def test_serialisable_is_what_some_order_explains(tmp_path: Path, write: str) -> None:
    """Lists tell all that is needed; registers may leave it open, but never say what is not so."""
    seen: Counter[str] = Counter()
    for seed in range(HISTORIES_TRIED):
        history = random_history(random.Random(seed), write)
        try:
            check = audited(tmp_path, history).checks[Guarantee.SERIALISABLE]
        except BadInput:
            assert not explained(history)  # Lists that contradict each other.
            seen["refused"] += 1
            continue
        seen[str(check.verdict)] += 1
        if check.verdict is Verdict.UNDECIDED:
            assert "the order of the versions" in check.because or "what a committed transaction read" in check.because
            assert write == "w" or "read" in check.because, history
        else:
            assert explained(history) == (check.verdict is Verdict.HOLDS), (seed, history, check.because)
    assert seen["holds"] >= 3, seen
    assert seen["violated"] >= 3, seen
    assert seen["undecided"] >= 3 or write == "append", seen


def ok(process: int, *steps: tuple[str, str, Any], type_: str = "ok") -> dict[str, Any]:
    return {"process": process, "type": type_, "value": [list(step) for step in steps]}


def audited(tmp_path: Path, history: list[dict[str, Any]] | str, name: str = "history.jsonl") -> Audit:
    text = history if isinstance(history, str) else "".join(json.dumps(entry) + "\n" for entry in history)
    (tmp_path / name).write_text(text)
    done = import_with(run_here(IMPORT), [tmp_path / name], tmp_path / "run", ImportRequest(), force=True)
    assert done.format == "history"
    return audit_with(run_here(audit_job()), tmp_path / "run", expect=LEVELS)


HISTORIES: dict[str, tuple[list[dict[str, Any]], list[str], str]] = {
    "serial": (
        [ok(0, ("append", "x", 1)), ok(1, ("r", "x", [1]), ("append", "x", 2)), ok(0, ("r", "x", [1, 2]))],
        ["holds", "holds", "holds", "holds"], "",
    ),
    "write skew": (
        [
            ok(0, ("r", "x", []), ("append", "y", 1)), ok(1, ("r", "y", []), ("append", "x", 1)),
            ok(2, ("r", "x", [1]), ("r", "y", [1])),
        ],
        ["holds", "holds", "holds", "violated"], "(G2)",
    ),
    "lost update": (
        [ok(0, ("r", "x", []), ("append", "x", 1)), ok(1, ("r", "x", []), ("append", "x", 2)), ok(2, ("r", "x", [1, 2]))],
        ["holds", "holds", "holds", "violated"], "(G-single)",
    ),
    "fractured read": (
        [ok(0, ("append", "x", 1), ("append", "y", 1)), ok(1, ("r", "x", []), ("r", "y", [1])), ok(2, ("r", "x", [1]))],
        ["holds", "violated", "violated", "violated"], "(G-single)",
    ),
    "a cause that is not seen": (
        [ok(0, ("append", "x", 1)), ok(1, ("r", "x", [1]), ("append", "y", 1)), ok(2, ("r", "y", [1]), ("r", "x", []))],
        ["holds", "holds", "violated", "violated"], "(G-single)",
    ),
    "an aborted read": (
        [ok(0, ("append", "x", 1), type_="fail"), ok(1, ("r", "x", [1]))],
        ["violated", "violated", "violated", "violated"], "(G1a)",
    ),
    "an intermediate read": (
        [ok(0, ("append", "x", 1), ("append", "x", 2)), ok(1, ("r", "x", [1])), ok(1, ("r", "x", [1, 2]))],
        ["violated", "violated", "violated", "violated"], "(G1b)",
    ),
    "an aborted write inside a list": (
        [ok(0, ("append", "x", 1), type_="fail"), ok(1, ("append", "x", 2)), ok(1, ("r", "x", [1, 2]))],
        ["violated", "violated", "violated", "violated"], "(G1a)",
    ),
    "a lost update of a register": (
        [ok(0, ("r", "x", None), ("w", "x", 1)), ok(1, ("r", "x", None), ("w", "x", 2)), ok(2, ("r", "x", 1))],
        ["holds", "holds", "holds", "violated"], "(G2)",
    ),
    "a chain of registers": (
        [ok(0, ("r", "x", None), ("w", "x", 1)), ok(1, ("r", "x", 1), ("w", "x", 2)), ok(2, ("r", "x", 2))],
        ["holds", "holds", "holds", "holds"], "",
    ),
    "appends that nobody read": (
        [ok(0, ("append", "x", 1)), ok(1, ("append", "x", 2)), ok(2, ("append", "x", 3)), ok(2, ("r", "x", [1]))],
        ["holds", "holds", "holds", "holds"], "",
    ),
    "a circle of reads": (
        [ok(0, ("append", "x", 1), ("r", "y", [1])), ok(1, ("append", "y", 1), ("r", "x", [1]))],
        ["violated", "violated", "violated", "violated"], "(G1c)",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", HISTORIES)
def test_anomalies_tell_the_levels_apart(tmp_path: Path, name: str) -> None:
    history, verdicts, word = HISTORIES[name]

    checks = audited(tmp_path, history).checks

    assert [str(checks[level].verdict) for level in LEVELS] == verdicts, checks
    assert word in checks[Guarantee.SERIALISABLE].because
    as_edn = "".join(
        f"{{:index {index}, :type :{entry['type']}, :process {entry['process']}, :f :txn, :value "
        + "[" + " ".join(f"[:{did} {key} {edn(value)}]" for did, key, value in entry["value"]) + "]}\n"
        for index, entry in enumerate(history)
    )  # fmt: skip
    again = audited(tmp_path, as_edn, "history.edn").checks
    assert [again[level] for level in LEVELS] == [checks[level] for level in LEVELS]


def edn(value: Any) -> str:
    return f"[{' '.join(map(str, value))}]" if isinstance(value, list) else "nil" if value is None else str(value)


def test_the_example_of_the_docs_is_judged_as_they_say(tmp_path: Path) -> None:
    said = (Path(__file__).parents[2] / "docs" / "import.md").read_text(encoding="utf-8").split("## Histories of databases")[1]
    history = "\n".join(line for line in said.split("```")[1].splitlines() if line.startswith("{"))

    checks = audited(tmp_path, history, "history.edn").checks

    assert [str(checks[level].verdict) for level in LEVELS] == ["holds", "violated", "violated", "violated"]
    as_json = said.split("the first line is\n`")[1].split("`")[0]
    assert json.loads(as_json) == next(read_edn(history))


def test_a_value_that_two_transactions_write_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"operations 1 and 2 both write x=1: each value of a key may be written only once"):
        audited(tmp_path, [ok(0, ("w", "x", 1)), ok(1, ("w", "x", 1))])


def test_registers_do_not_tell_the_order_of_versions(tmp_path: Path) -> None:
    history = [ok(0, ("w", "x", 1)), ok(1, ("w", "x", 2)), ok(2, ("r", "x", 1)), ok(2, ("r", "x", 2)), ok(2, ("r", "y", None))]

    checks = audited(tmp_path, history).checks

    assert checks[Guarantee.TRANSACTIONAL_CAUSAL].verdict is Verdict.HOLDS
    assert checks[Guarantee.SERIALISABLE].verdict is Verdict.UNDECIDED
    assert checks[Guarantee.SERIALISABLE].because == "the order of the versions of 1 objects is not known"


def test_all_versions_of_a_register_come_after_its_initial_state(tmp_path: Path) -> None:
    history = [ok(0, ("r", "y", None), ("w", "x", 1)), ok(1, ("r", "x", None), ("w", "y", 2))]

    check = audited(tmp_path, history).checks[Guarantee.SERIALISABLE]

    assert check.verdict is Verdict.VIOLATED


def test_many_versions_of_a_register_that_nobody_read_before_take_few_hosts(tmp_path: Path) -> None:
    history = [ok(0, ("r", "x", None)), *(ok(1, ("w", "x", value)) for value in range(100))]

    check = audited(tmp_path, history).checks[Guarantee.SERIALISABLE]

    assert check.verdict in (Verdict.HOLDS, Verdict.UNDECIDED)
    assert len(list((tmp_path / "run" / "trace").glob("*.parquet"))) < 20


def test_what_nobody_knows_committed_if_somebody_read_it(tmp_path: Path) -> None:
    seen = [ok(0, ("append", "x", 1), type_="info"), ok(1, ("r", "x", [1]))]
    unseen = [ok(0, ("append", "x", 1), type_="info"), ok(1, ("r", "x", [])), {"process": 1, "type": "invoke", "value": None}]

    for history in (seen, unseen):
        assert audited(tmp_path, history).verdict is Verdict.HOLDS


def test_a_read_of_what_nobody_wrote_is_violated(tmp_path: Path) -> None:
    found = audited(tmp_path, [ok(0, ("append", "x", 1)), ok(1, ("r", "x", [7]))])

    assert "there is no such write" in found.checks[Guarantee.READ_COMMITTED].because


def test_lists_that_contradict_each_other_and_broken_notation_are_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="read lists of x of which neither begins the other"):
        audited(tmp_path, [ok(0, ("r", "x", [1, 2])), ok(0, ("r", "x", [2]))])
    with pytest.raises(BadInput, match="operation 2: '}' closes nothing"):
        audited(tmp_path, "{:type :ok :process 0 :value [[:r x nil]]}\n}", "h.edn")
    with pytest.raises(BadInput, match="'dance' is none of r, w and append"):
        audited(tmp_path, [ok(0, ("dance", "x", 1))])
    for text in ("{:a", "[1 2)", "{:a}", '"open', "[" * 999):
        with pytest.raises(NotJson):
            list(read_edn(text))
    assert list(read_edn('#jepsen.history.Op{:a [1 -2N "x\\n" nil true], ; note\n :b #{1} :c (x)}')) == [
        {"a": [1, -2, "x\n", None, True], "b": [1], "c": ["x"]}
    ]


def test_orders_of_messages_are_not_asked_of_a_history(tmp_path: Path) -> None:
    history = "{:type :ok, :process 0, :value [[:append x 1] [:append y 1]]}\n{:type :ok, :process 0, :value [[:append x 2]]}\n"

    found = audited(tmp_path, history, "history.edn")

    orders = ("agreement", "fifo", "causal", "total", "acyclic")
    because = "the trace is a history of a database, which tells of versions, not of messages"
    assert found.not_applicable == dict.fromkeys(orders, because)
    assert not set(orders) & found.checks.keys()
    asked = audit_with(run_here(audit_job()), tmp_path / "run", expect=["causal"])
    assert (asked.checks["causal"].verdict, asked.checks["causal"].because) == (Verdict.UNDECIDED, because)
