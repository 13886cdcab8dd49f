"""Plants a wrong rule in a copy of the sources, never in the sources themselves, and runs the tests that must notice."""

from __future__ import annotations

import compileall
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from py_compile import PycInvalidationMode
from time import monotonic

import msgspec

from tests.kit.effort import LONG
from tests.mutants.mutation import ROOT, SOURCES, Mutation
from tests.mutants.witness import FAILURES, Failure
from tests.mutants.witness import SOURCES as FROM

# Hypothesis works without its plugin, which takes longer to load than most of the tests take.
PLUGINS = ("-p", "no:cacheprovider", "-p", "no:hypothesispytest", "-p", "tests.mutants.witness")
PASSED = "all tests passed"
PATIENCE_S = 300
"""A test that takes longer has not caught anything: it hangs."""


class Outcome(msgspec.Struct, frozen=True):
    caught: bool
    """By each of the tests."""
    seconds: float
    why: str
    """What the first test said that caught it, or what the one that did not did."""
    failures: tuple[Failure, ...] = ()


def tests_of(mutation: Mutation) -> tuple[str, ...]:
    """The tests that must catch it: random runs only where everything that takes long is asked for."""
    return (*mutation.tests, *mutation.swarms) if LONG else mutation.tests


class Copy:
    """A copy of the sources in a folder of its own, in which one rule at a time is wrong."""

    def __init__(self, folder: Path) -> None:
        self.sources = folder / "src"
        self._failures = folder / "failures.json"
        shutil.copytree(SOURCES, self.sources, ignore=shutil.ignore_patterns("__pycache__"))
        # Compiled code that is compared with its source by content: of a module with a planted rule it is not used.
        compileall.compile_dir(str(self.sources), quiet=1, invalidation_mode=PycInvalidationMode.CHECKED_HASH)

    def try_out(self, mutation: Mutation, patience_s: float = PATIENCE_S) -> Outcome:
        """Whether each of the mutation's tests fails by an assertion when it is planted."""
        module = self.sources / mutation.path
        right = module.read_text()
        module.write_text(mutation.planted_in(right))
        try:
            return self.run(tests_of(mutation), patience_s)
        finally:
            module.write_text(right)

    def run(self, tests: Sequence[str], patience_s: float | None) -> Outcome:
        """Run tests with the sources as they are in the copy."""
        self._failures.unlink(missing_ok=True)
        began = monotonic()
        command = [sys.executable, "-m", "pytest", "-q", *PLUGINS, *tests]
        try:
            done = subprocess.run(
                command, cwd=ROOT, env=self._environment(), capture_output=True, text=True, timeout=patience_s, check=False
            )
        except subprocess.TimeoutExpired:
            return Outcome(False, monotonic() - began, f"the tests did not end within {patience_s} s")
        return self._read(done, tests, monotonic() - began)

    def _environment(self) -> dict[str, str]:
        return {
            **os.environ,
            "PYTHONPATH": str(self.sources),
            # Random runs must meet the rule, however seldom that is.
            "QUIRE_TEST": "long",
            # Whatever is compiled for speed is run as it is written: it would have to be compiled anew for each rule.
            "NUMBA_DISABLE_JIT": "1",
            FAILURES: str(self._failures),
            FROM: str(self.sources),
        }

    def _read(self, done: subprocess.CompletedProcess[str], tests: Sequence[str], seconds: float) -> Outcome:
        said = (done.stderr or done.stdout).strip()[-2000:]
        if not self._failures.exists():
            return Outcome(False, seconds, f"the tests could not be run: {said}")
        failures = msgspec.json.decode(self._failures.read_bytes(), type=tuple[Failure, ...])
        if not failures:
            return Outcome(False, seconds, f"the tests could not be run: {said}" if done.returncode else PASSED)
        for test in tests:
            failed = [failure for failure in failures if failure.concerns(test)]
            if not failed:
                return Outcome(False, seconds, f"{test} passed", failures)
            if not any(failure.judged for failure in failed):
                return Outcome(False, seconds, f"no assertion failed, but {failed[0]}", failures)
        return Outcome(True, seconds, str(next(failure for failure in failures if failure.judged)), failures)
