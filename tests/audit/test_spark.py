"""The same checks through real files and real Spark, with witnesses."""

from __future__ import annotations

import random
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import pytest

from quire.model.orders import Guarantee
from quire.pipeline import Audit, Verdict, audit
from quire.pipeline.auditing.auditor import audit_with
from quire.pipeline.auditing.registry import audit_job
from quire.pipeline.tasks import run_here
from tests.audit import oracle
from tests.audit.traces import Trace, plain, random_trace, timed, write
from tests.kit.effort import runs

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HERE = run_here(audit_job())
TRACES = runs(80, 160)


def said(result: Audit) -> dict[str, object]:
    """All that an audit says but how long it took and in how many pieces."""
    everything = msgspec.to_builtins(result)
    for name in ("wall_s", "events_per_s", "segments"):
        del everything[name]
    return dict(everything)


def because(tmp_path: Path, trace: Trace, check: Guarantee) -> str:
    return audit_with(HERE, write(tmp_path / "run", trace)).checks[check].because


def test_random_traces_on_spark_equal_brute_force(spark: SparkSession, tmp_path: Path) -> None:
    for seed in range(6):
        rng = random.Random(seed)
        trace = random_trace(rng)
        expected = oracle.judge(trace.logs, trace.crashed)
        directory = write(tmp_path / str(seed), trace, rows_per_append=rng.choice((2, 5, 100)))

        result = audit(spark, directory, segments=rng.randint(1, 4))

        found = oracle.Expected(*(check.violations for check in result.checks.values()))
        assert found == expected._replace(causal=expected.causal or 0), f"seed {seed}"
        assert (result.checks[Guarantee.CAUSAL].verdict is Verdict.UNDECIDED) >= (expected.causal is None)


@pytest.mark.parametrize("part", range(4))
def test_what_is_said_does_not_depend_on_the_number_of_segments(tmp_path: Path, part: int) -> None:
    for seed in range(part, TRACES, 4):
        trace = random_trace(random.Random(seed))
        if not any(trace.logs):
            continue
        directory = write(tmp_path / str(seed), trace, rows_per_append=3)
        whole = audit_with(HERE, directory, segments=1)
        for check in whole.checks.values():
            assert (check.witness is not None) == (check.violations > 0) == (check.verdict is Verdict.VIOLATED)
            assert check.because
        for pieces in (2 + seed % 2, 4 + seed % 3):
            assert said(audit_with(HERE, directory, segments=pieces)) == said(whole), f"seed {seed}, {pieces} segments"


def test_spark_and_this_process_tell_the_same(spark: SparkSession, tmp_path: Path) -> None:
    directory = write(tmp_path / "run", plain("s0>13", "d0:0 s0>2", "d1:0 s0>3", "d2:0 d0:0"))

    assert said(audit(spark, directory, segments=3)) == said(audit_with(HERE, directory))


def test_a_direct_cause_is_explained(tmp_path: Path) -> None:
    trace = plain("s0>12", "d0:0 s0>2", "d1:0 d0:0")

    assert because(tmp_path, trace, Guarantee.CAUSAL) == (
        "member 2 delivered 1:0 before 0:0, though member 1 had delivered 0:0 before it sent 1:0"
    )


def test_an_indirect_cause_is_explained_link_by_link(tmp_path: Path) -> None:
    directory = write(tmp_path / "run", plain("s0>13", "d0:0 s0>2", "d1:0 s0>3", "d2:0 d0:0"))

    check = audit_with(HERE, directory).checks[Guarantee.CAUSAL]

    assert check.because == (
        "member 3 delivered 2:0 before 0:0, though member 1 had delivered 0:0 before it sent 1:0, "
        "and member 2 had delivered 1:0 before it sent 2:0"
    )
    assert check.witness is not None
    assert check.witness.messages == ("0:0", "1:0", "2:0")
    assert check.witness.members == (3, 1, 2)
    assert [(place.member, place.event, place.message, place.pos) for place in check.witness.positions] == [
        (0, "send", "0:0", 0), (2, "send", "2:0", 1), (3, "deliver", "2:0", 0), (3, "deliver", "0:0", 1),
    ]  # fmt: skip
    assert check.witness.chain == (
        "member 1 delivered 0:0 at position 0, then sent 1:0 at position 1",
        "member 2 delivered 1:0 at position 0, then sent 2:0 at position 1",
    )


@pytest.mark.parametrize(
    ("trace", "check", "sentence"),
    [
        (plain("s0>01 d0:0", "d0:0 d0:0"), "integrity", "member 1 delivered 0:0 twice, at positions 0 and 1"),
        (plain("s0>01 d0:0", "d0:0 d0:7"), "integrity", "member 1 delivered 0:7 at position 1, though it was never sent"),
        (
            plain("s0>0 d0:0", "d0:0"),
            "integrity",
            "member 1 delivered 0:0 at position 0, though it was addressed only to member 0",
        ),
        (plain("s0>01 d0:0", "s0>1 d1:0"), "agreement", "member 1 never delivered 0:0, which member 0 had sent to it"),
        (
            timed(plain("s0>012 d0:0", "d0:0", "s0>2 d2:0").logs, frozenset({0})),
            "agreement",
            "member 2 never delivered 0:0, which member 0 had sent to it and member 1 delivered",
        ),
        (plain("s0>1 s1>1", "d0:1 d0:0"), "fifo", "member 1 delivered 0:1 before 0:0, though member 0 had sent 0:0 before 0:1"),
        (
            plain("s0>1 s1>1", "d0:1"),
            "fifo",
            "member 1 delivered 0:1 and never 0:0, which was addressed to it, though member 0 had sent 0:0 before 0:1",
        ),
        (
            plain("s0>01 d0:0 d1:0", "s0>01 d1:0 d0:0"),
            "total",
            "member 0 delivered 0:0 before 1:0, but member 1 the other way round",
        ),
        (
            plain("s0>02 d0:0 d1:0", "s0>01 d1:0 d2:0", "s0>12 d2:0 d0:0"),
            "acyclic",
            "member 0 delivered 0:0 before 1:0, member 1 1:0 before 2:0, member 2 2:0 before 0:0",
        ),
    ],
)
def test_a_violation_is_explained_in_one_sentence(tmp_path: Path, trace: Trace, check: str, sentence: str) -> None:
    assert because(tmp_path, trace, Guarantee(check)) == sentence


def test_missing_logical_times_are_rebuilt(tmp_path: Path) -> None:
    trace = plain("s0>12", "d0:0 s0>2", "d1:0 d0:0")
    untimed = trace._replace(clocks=[[None] * len(log) for log in trace.logs])

    assert said(audit_with(HERE, write(tmp_path / "a", trace))) == said(
        audit_with(HERE, write(tmp_path / "b", untimed), segments=4)
    )


def test_logs_that_contradict_each_other_leave_causal_order_undecided(tmp_path: Path) -> None:
    logs = plain("s0>01 d1:0", "s0>01 d0:0").logs
    contradictory = Trace([list(reversed(log)) for log in logs], [[1, 2], [1, 2]])

    checks = audit_with(HERE, write(tmp_path / "run", contradictory)).checks

    assert checks[Guarantee.CAUSAL].verdict is Verdict.UNDECIDED
    assert checks[Guarantee.CAUSAL].because == ("the logs contradict each other: a delivery of 1:0 happened before it was sent")
    assert checks[Guarantee.FIFO].verdict is Verdict.HOLDS


def without_destinations(*logs: str) -> Trace:
    trace = plain(*logs)
    return trace._replace(logs=[[event._replace(dests=None) for event in log] for log in trace.logs])


@pytest.mark.parametrize(
    ("logs", "crashed", "verdict"),
    [
        (("s0>0", "", ""), (0,), Verdict.HOLDS),
        (("s0>0", "d0:0", ""), (0, 1), Verdict.HOLDS),
        (("s0>0", "d0:0", ""), (0,), Verdict.UNDECIDED),
        (("s0>0", "", ""), (1,), Verdict.UNDECIDED),
    ],
)
def test_what_a_crashed_member_sent_and_nobody_correct_delivered_needs_no_destinations(
    tmp_path: Path, logs: tuple[str, ...], crashed: tuple[int, ...], verdict: Verdict
) -> None:
    trace = without_destinations(*logs)._replace(crashed=frozenset(crashed))
    assert audit_with(HERE, write(tmp_path / "run", trace)).checks[Guarantee.AGREEMENT].verdict is verdict


def test_without_destinations_only_agreement_is_undecided(tmp_path: Path) -> None:
    run = write(tmp_path / "run", without_destinations("s0>01 d0:0", "d0:0"), promises=())

    found = audit_with(HERE, run)

    why = "the trace does not say to whom 1 of its 1 messages were addressed"
    assert {name for name, check in found.checks.items() if check.verdict is Verdict.UNDECIDED} == {Guarantee.AGREEMENT}
    assert found.checks[Guarantee.AGREEMENT].because == why
    assert found.checks[Guarantee.CAUSAL].because == (
        "no member delivered a message before one that had happened before it; "
        f"whether every destination got everything is not known, because {why}"
    )
    assert found.checks[Guarantee.INTEGRITY].because == (
        "every delivery was of a message that had been sent, and happened once; "
        f"whether it was for that member is not known, because {why}"
    )
    assert found.verdict is Verdict.HOLDS
    assert found.expected == (Guarantee.INTEGRITY,)
    assert found.expectation == f"the run promises no order, and {why}, so only integrity is expected"
    assert audit_with(HERE, run, expect=[Guarantee.AGREEMENT]).verdict is Verdict.UNDECIDED


def test_without_destinations_what_was_delivered_is_still_judged(tmp_path: Path) -> None:
    overtaken = write(tmp_path / "overtaken", without_destinations("s0>01 s1>01", "d0:1 d0:0"))
    caused = write(tmp_path / "caused", without_destinations("s0>012", "d0:0 s0>012", "d1:0 d0:0"))
    twice = write(tmp_path / "twice", without_destinations("s0>01", "d0:0 d0:0"))
    unsent = write(tmp_path / "unsent", without_destinations("s0>01", "d0:7"))

    assert audit_with(HERE, overtaken).checks[Guarantee.FIFO].because == (
        "member 1 delivered 0:1 before 0:0, though member 0 had sent 0:0 before 0:1"
    )
    assert audit_with(HERE, caused).checks[Guarantee.CAUSAL].verdict is Verdict.VIOLATED
    assert audit_with(HERE, twice, expect=[Guarantee.INTEGRITY]).verdict is Verdict.VIOLATED
    assert audit_with(HERE, unsent, expect=[Guarantee.INTEGRITY]).verdict is Verdict.VIOLATED


def test_only_what_is_expected_decides(tmp_path: Path) -> None:
    disagreement = plain("s0>01 d0:0 d1:0", "s0>01 d1:0 d0:0")
    silent = write(tmp_path / "silent", disagreement, promises=())
    promising = write(tmp_path / "promising", disagreement, promises=(Guarantee.ACYCLIC,))

    assert audit_with(HERE, silent).verdict is Verdict.HOLDS
    assert audit_with(HERE, silent).expected == (Guarantee.INTEGRITY, Guarantee.AGREEMENT)
    assert audit_with(HERE, silent, expect=[Guarantee.CAUSAL]).expected == (Guarantee.FIFO, Guarantee.CAUSAL)
    assert audit_with(HERE, promising).verdict is Verdict.VIOLATED
    assert audit_with(HERE, promising).expected == (Guarantee.TOTAL, Guarantee.ACYCLIC)
