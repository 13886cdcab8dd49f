"""`make mutants`: plants every wrong rule alone and requires that the tests named with it catch it.

Words after the command choose those whose names or modules have one of them. With QUIRE_TEST=long the random runs that are
named with a rule must meet it too.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from queue import SimpleQueue
from tempfile import TemporaryDirectory
from time import monotonic

from tests.mutants.catalogue import MUTATIONS
from tests.mutants.mutation import Mutation
from tests.mutants.planting import PASSED, Copy, Outcome, tests_of

WORKERS = int(os.environ.get("QUIRE_MUTANTS_WORKERS", os.cpu_count() or 1))
SLOWEST = 3
"""So many are named at the end."""


def chosen(words: Sequence[str]) -> list[Mutation]:
    return [one for one in MUTATIONS if not words or any(word in f"{one.module} {one.name}" for word in words)]


def outcomes(mutations: Sequence[Mutation], folder: Path) -> Iterator[tuple[Mutation, Outcome]]:
    """What became of each, as soon as it is known. Each worker has a copy of the sources."""
    copies: SimpleQueue[Copy] = SimpleQueue()
    for worker in range(min(WORKERS, len(mutations))):
        copies.put(Copy(folder / str(worker)))

    def try_out(mutation: Mutation) -> tuple[Mutation, Outcome]:
        copy = copies.get()
        try:
            return mutation, copy.try_out(mutation)
        finally:
            copies.put(copy)

    with ThreadPoolExecutor(WORKERS) as pool:
        for done in as_completed([pool.submit(try_out, mutation) for mutation in mutations]):
            yield done.result()


def verdict(mutation: Mutation, outcome: Outcome) -> tuple[str, str]:
    """In one word, and why, where that is not as it should be."""
    if mutation.harmless:
        return ("harmless", "") if outcome.why == PASSED else ("HARMFUL", f"it is said to be harmless, but {outcome.why}")
    return ("caught", "") if outcome.caught else ("SURVIVED", outcome.why)


def main(words: Sequence[str]) -> int:
    mutations, began = chosen(words), monotonic()
    if not mutations:
        print(f"no wrong rule is called {' or '.join(words)}")
        return 2
    verdicts: list[str] = []
    took: list[tuple[float, str]] = []
    with TemporaryDirectory(prefix="quire-mutants-") as temporary:
        folder = Path(temporary)
        # A test that fails without any wrong rule would seem to catch them all.
        tests = sorted({test for one in mutations for test in tests_of(one)})
        print(f"{len(mutations)} wrong rules, {len(tests)} tests; first the tests without any wrong rule", flush=True)
        right = Copy(folder / "right").run(tests, patience_s=None)
        if right.why != PASSED:
            print("without any wrong rule:", *(right.failures or [right.why]), sep="\n  ")
            return 1
        print(f"they pass, in {right.seconds:.0f} s\n{'':7}  {'':8}  seconds  rule", flush=True)
        for mutation, outcome in outcomes(mutations, folder):
            word, why = verdict(mutation, outcome)
            verdicts.append(word)
            took.append((outcome.seconds, mutation.name))
            progress = f"{len(verdicts)}/{len(mutations)}"
            print(f"{progress:>7}  {word:8}  {outcome.seconds:7.1f}  {mutation.module}: {mutation.name}", flush=True)
            if why:
                print(f"{'':28}{why}", flush=True)
    counts = ", ".join(f"{verdicts.count(word)} {word}" for word in sorted(set(verdicts), key=str.lower))
    minutes = (monotonic() - began) / 60
    slowest = "; ".join(f"{name} ({seconds:.0f} s)" for seconds, name in sorted(took, reverse=True)[:SLOWEST])
    print(f"{len(mutations)} wrong rules planted in {minutes:.1f} minutes: {counts}\nthe slowest: {slowest}")
    return 0 if {"caught", "harmless"}.issuperset(verdicts) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
