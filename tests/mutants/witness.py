"""Loaded into the pytest that runs with a planted rule: tells whoever planted it which tests failed, and how."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec
import pytest

import quire
from quire.model.errors import QuireError

FAILURES = "QUIRE_MUTANTS_FAILURES"
"""The file to write."""
SOURCES = "QUIRE_MUTANTS_SOURCES"
"""The folder from which the sources must come."""


class Failure(msgspec.Struct, frozen=True):
    test: str
    judged: bool
    """An assertion failed, or the sources refused by an error of their own what they should take; otherwise something else
    went wrong, which shows nothing about the rule."""
    error: str

    def __str__(self) -> str:
        return f"{self.test}: {self.error}"

    def concerns(self, test: str) -> bool:
        """Whether it is a failure of this test or of one in it, or of collecting the file in which it is."""
        return self.test == test or self.test.startswith((f"{test}::", f"{test}[")) or test.startswith(f"{self.test}::")


_failures: list[Failure] = []


def pytest_configure() -> None:
    if Path(os.environ[SOURCES]) not in Path(quire.__file__).parents:
        raise pytest.UsageError(f"the sources are those of {quire.__file__}, without the planted rule")


def pytest_exception_interact(node: pytest.Item | pytest.Collector, call: pytest.CallInfo[object]) -> None:
    if call.excinfo is not None:
        error = call.excinfo.value
        judged = call.when == "call" and isinstance(error, AssertionError | pytest.fail.Exception | QuireError)
        lines = str(error).splitlines() or [""]
        _failures.append(Failure(node.nodeid, judged, f"{type(error).__name__}: {lines[0]}"))


def pytest_unconfigure() -> None:
    Path(os.environ[FAILURES]).write_bytes(msgspec.json.encode(_failures))
