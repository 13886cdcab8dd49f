"""What applications name is where people look: in `quire`, in `dir(quire)`, and on one page of the documentation."""

from __future__ import annotations

import ast
import inspect
import re
import subprocess
import sys
import typing
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import quire
import quire.pipeline

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "api.md").read_text()

INSIDE = {
    "WindowFull": "drivers of protocols wait and submit again",
    "Overload": "as WindowFull: a client of the sequencing service waits for room",
    "HoldBackFull": "drivers leave the packet on its link",
    "JournalFull": "drivers take no more input until there is room",
    "BufferOverflow": "as HoldBackFull, in a hierarchy",
    "ProtocolViolation": "an application is told PeerMisbehaved",
    "StaleIncarnation": "as ProtocolViolation, in a hierarchy",
    "UnknownSite": "groups with destinations are fixed, and check them themselves",
    "UnknownDestination": "as UnknownSite",
    "ChangeUnderWay": "the simulator alone changes hierarchies without a view",
    "FrameError": "the connection is closed",
    "SealBroken": "as FrameError",
    "Dismissed": "an application is told Evicted",
    "Refused": "the connection is closed; joining raises BadInput or MemberUnreachable",
    "Misfit": "the connection is closed; joining raises BadInput",
    "FleetFailed": "`quire run` prints it",
    "BenchFailed": "`quire bench` prints it",
    "Unanswered": "`quire watch` shows the process as unreachable",
    "Stopped": "a method that runs for a caller that is gone ends, and nobody waits for it",
    "Unusable": "`quire import` prints it, and else it is a BadInput",
}
"""Errors that never reach an application, and what happens instead."""


NAMES: list[str] = vars(quire)["__all__"]
PIPELINE_NAMES: list[str] = vars(quire.pipeline)["__all__"]


@cache
def errors_in_the_code() -> dict[str, str]:
    """Every class in the source whose bases lead to QuireError, and its module."""
    bases: dict[str, set[str]] = {}
    homes: dict[str, str] = {}
    for path in (ROOT / "src" / "quire").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef):
                bases.setdefault(node.name, set()).update(ast.unparse(base).rpartition(".")[2] for base in node.bases)
                homes[node.name] = str(path.relative_to(ROOT))
    found = {"QuireError"}
    while more := {name for name, above in bases.items() if above & found} - found:
        found |= more
    return {name: homes[name] for name in found}


def named_on_the_page(section: str | None = None) -> set[str]:
    """The names in the first columns of its tables, of one section or of all but that of `quire.pipeline`."""
    before, _, pipeline = PAGE.partition("\n## `quire.pipeline`")
    text = pipeline if section == "quire.pipeline" else before
    first_columns = [line.split("|")[1] for line in text.splitlines() if line.startswith("| `")]
    return {name for column in first_columns for name in re.findall(r"`(\w+)`", column)}


def test_every_error_that_reaches_an_application_is_in_quire() -> None:
    missing = {name: home for name, home in errors_in_the_code().items() if name not in NAMES and name not in INSIDE}
    assert not missing, "add these to quire/__init__.py and docs/api.md, or to INSIDE with what happens instead"


def test_errors_that_stay_inside_exist_and_are_not_offered() -> None:
    assert set(INSIDE) <= errors_in_the_code().keys()
    assert not set(INSIDE) & set(NAMES)


def test_the_page_lists_exactly_the_public_names() -> None:
    assert named_on_the_page() == set(NAMES)
    assert named_on_the_page("quire.pipeline") == set(PIPELINE_NAMES)


def test_every_error_on_the_page_says_when_and_what_to_do() -> None:
    errors = PAGE.partition("\n## Errors")[2].partition("\n## `quire.pipeline`")[0]
    rows = [line.strip("|").split("|") for line in errors.splitlines() if line.startswith("| `")]
    assert {row[0].strip(" `") for row in rows} == {name for name in NAMES if name in errors_in_the_code()}
    for name, when, *what_to_do in rows:
        assert when.strip(), name
        assert any(map(str.strip, what_to_do)) or "the base of" in when, name


def test_dir_lists_every_name_and_each_can_be_imported() -> None:
    for package, names in ((quire, NAMES), (quire.pipeline, PIPELINE_NAMES)):
        assert set(names) <= set(dir(package))
        for name in names:
            value = getattr(package, name)
            assert getattr(value, "__name__", name) == name
    with pytest.raises(AttributeError, match="module 'quire' has no attribute 'nonsense'"):
        quire.nonsense  # type: ignore[attr-defined]  # noqa: B018


DECORATORS_AND_SPARK = ("operation", "audit")
"""What has no class of ours to return, or names classes that are loaded with Spark only."""


def results() -> Iterator[tuple[str, type]]:
    """What the public functions, and the public methods of public classes, return: each class of ours among it."""
    for name in NAMES:
        offered = getattr(quire, name)
        functions: dict[str, object] = {name: offered}
        if isinstance(offered, type):
            functions = {
                f"{name}.{key}": getattr(value, "fget", None) or getattr(value, "__func__", value)
                for key, value in vars(offered).items()
                if not key.startswith("_") or key in ("__aenter__", "__aiter__")
            }
        for function_name, function in functions.items():
            if inspect.isfunction(function) and function_name not in DECORATORS_AND_SPARK:
                for result in classes_in(typing.get_type_hints(function).get("return")):
                    yield function_name, result


def classes_in(hint: object) -> Iterator[type]:
    if isinstance(hint, type) and hint.__module__.startswith("quire."):
        yield hint
    for part in typing.get_args(hint):
        yield from classes_in(part)


def test_whatever_public_calls_return_is_public_too() -> None:
    public = {getattr(quire, name) for name in NAMES if isinstance(getattr(quire, name), type)}
    missing = {(function, result.__name__) for function, result in results() if result not in public}
    assert not missing
    assert ("Group.waiting", quire.Held) in set(results()), "a search that finds nothing proves nothing"


def test_importing_quire_loads_neither_spark_nor_any_part_of_itself() -> None:
    heavy = ("quire.", "pyspark", "numpy", "msgspec")
    code = f"import sys, quire; print(*(name for name in sys.modules if name.startswith({heavy})))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert loaded == ["quire.lazy"]


def test_a_member_starts_without_numpy() -> None:
    code = "import sys, quire; quire.join, quire.connect, quire.join_store, quire.join_objects; print('numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"


def test_a_caller_can_catch_and_compare_by_the_names_in_quire() -> None:
    with pytest.raises(quire.BadInput):
        quire.join("board", me=7, members=["127.0.0.1:7000"], order="total")
    assert quire.GroupMessage("room", 0, 3, b"x") == quire.GroupMessage("room", 0, 3, b"x")
    assert issubclass(quire.MemberUnreachable, quire.GroupFailed)


@pytest.mark.parametrize("module", [quire, quire.pipeline], ids=["quire", "quire.pipeline"])
def test_every_public_class_says_what_it_is(module: object) -> None:
    """Without words of its own, `help` shows those of what it is made of: a manual of structs, or of enumerations."""
    classes = [each for each in (getattr(module, name) for name in vars(module)["__all__"]) if inspect.isclass(each)]
    silent = [each.__name__ for each in classes if each.__module__.startswith("quire") and not vars(each).get("__doc__")]
    assert len(classes) >= 5
    assert not silent
