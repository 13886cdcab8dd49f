"""Every wrong rule can still be planted where it says, and planting tells a rule that is caught from one that is not."""

from __future__ import annotations

import ast
from collections import Counter
from functools import cache
from pathlib import Path

import pytest
from msgspec.structs import replace

from tests.mutants.ablations import SERVICES, VIEWS
from tests.mutants.catalogue import MUTATIONS
from tests.mutants.mutation import ROOT, SOURCES, Moved, Mutation
from tests.mutants.planting import PASSED, Copy


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.name)
def test_a_wrong_rule_replaces_what_is_there_once_by_something_else_that_compiles(mutation: Mutation) -> None:
    wrong = ast.parse(mutation.planted_in((SOURCES / mutation.path).read_text()))
    assert ast.dump(wrong) != understood(SOURCES / mutation.path)
    compile(wrong, mutation.module, "exec")


@cache
def understood(file: Path) -> str:
    return ast.dump(ast.parse(file.read_text()))


@cache
def functions(file: Path) -> frozenset[str]:
    return frozenset(node.name for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.FunctionDef))


def test_the_tests_that_must_catch_them_are_there() -> None:
    assert all(mutation.tests for mutation in MUTATIONS)
    for test in {test for mutation in MUTATIONS for test in (*mutation.tests, *mutation.swarms)}:
        file, *names = test.partition("[")[0].split("::")
        assert (ROOT / file).is_file()
        assert not names or names[-1] in functions(ROOT / file), test


def test_no_two_wrong_rules_are_one() -> None:
    for key in (lambda one: one.name, lambda one: (one.module, one.right, one.wrong)):
        counts = Counter(map(key, MUTATIONS))
        assert [found for found, count in counts.items() if count > 1] == []


# Four rows of the second table of views repeat rows of the first: closure, voting before holding, and what is told too early.
@pytest.mark.parametrize(("ablations", "rows"), [(VIEWS, 33 + 30 - 4), (SERVICES, 43)], ids=["views", "services"])
def test_every_rule_that_a_specification_shows_to_be_needed_is_taken_away(
    ablations: dict[str, tuple[str, ...]], rows: int
) -> None:
    names = {mutation.name for mutation in MUTATIONS if not mutation.harmless}
    assert {name for planted in ablations.values() for name in planted} <= names
    assert len(ablations) == rows


RANK = Mutation(
    name="members rank the other way round",
    module="protocols/single_phase/positions.py",
    right="if rotating else member\n",
    wrong="if rotating else -member\n",
    tests=("tests/protocols/test_single_phase.py::TestEndOfAView::test_what_is_left_is_delivered_in_the_order_of_positions",),
)


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Copy:
    return Copy(tmp_path_factory.mktemp("mutants"))


def test_a_wrong_rule_is_caught_by_an_assertion_and_leaves_nothing_behind(copy: Copy) -> None:
    outcome = copy.try_out(RANK)
    assert outcome.caught
    assert RANK.tests[0] in outcome.why
    assert (copy.sources / RANK.path).read_text() == (SOURCES / RANK.path).read_text()


def test_what_one_of_its_tests_does_not_notice_is_not_caught(copy: Copy) -> None:
    unaware = "tests/protocols/test_single_phase.py::test_one_member_alone_delivers_at_once"
    outcome = copy.try_out(replace(RANK, tests=(*RANK.tests, unaware)))
    assert (outcome.caught, outcome.why) == (False, f"{unaware} passed")


def test_what_no_test_notices_is_not_caught(copy: Copy) -> None:
    outcome = copy.try_out(replace(RANK, wrong="if rotating else 0 + member\n"))
    assert (outcome.caught, outcome.why) == (False, PASSED)


@pytest.mark.parametrize("wrong", ["if rotating else membre\n", "if rotating else member\nimport nowhere\n"])
def test_a_rule_that_only_breaks_the_module_is_not_caught(copy: Copy, wrong: str) -> None:
    outcome = copy.try_out(replace(RANK, wrong=wrong))
    assert not outcome.caught
    assert outcome.why.startswith("no assertion failed, but")


def test_a_test_that_hangs_has_caught_nothing(copy: Copy) -> None:
    outcome = copy.try_out(replace(RANK, wrong="if rotating else -member\nwhile True:\n    pass\n"), patience_s=1)
    assert (outcome.caught, outcome.why) == (False, "the tests did not end within 1 s")


def test_a_rule_that_is_no_longer_there_is_said_to_be_gone() -> None:
    with pytest.raises(Moved, match="occurs 0 times"):
        RANK.planted_in("")
