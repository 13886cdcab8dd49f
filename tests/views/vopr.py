"""`make vopr`: random runs of groups that change, of every configuration in turn, until somebody interrupts it or one fails.

A run is known by its configuration and its seed. When one fails, the search ends and says how to make it again:
`make vopr VOPR="'closing, journal' 12345"`, with the sources of the same commit.
"""

from __future__ import annotations

import os
import secrets
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from itertools import count, islice
from pathlib import Path
from threading import Event
from time import monotonic

import msgspec

from quire.simulation.membership.chaos import Chaos, ChaosResult
from tests.views.test_swarm import CONFIGURATIONS

ROOT = Path(__file__).parents[2]
BATCH = 20
"""A worker makes so many runs before it says what came of them."""
PROGRESS_S = 60.0
LOOKS_AT_INTERRUPTS_S = 0.5

Make = Callable[[str, int], ChaosResult]


class Tally(msgspec.Struct):
    runs: int = 0
    live: int = 0
    views: int = 0
    deliveries: int = 0
    failure: str = ""

    def add(self, other: Tally) -> None:
        self.runs += other.runs
        self.live += other.live
        self.views += other.views
        self.deliveries += other.deliveries
        self.failure = self.failure or other.failure

    def __str__(self) -> str:
        return f"{self.runs:,} runs ({self.live:,} came to rest), {self.views:,} views, {self.deliveries:,} deliveries"


def make(configuration: str, seed: int) -> ChaosResult:
    return Chaos(CONFIGURATIONS[configuration], seed).run()


def batch(run: Make, configuration: str, first: int) -> Tally:
    """Some runs of one configuration, up to the first that fails."""
    tally = Tally()
    for seed in range(first, first + BATCH):
        try:
            result = run(configuration, seed)
        except Exception as error:  # noqa: BLE001 - Whatever it is, it should not have happened.
            tally.failure = describe(configuration, seed, error)
            break
        tally.add(Tally(1, result.live, result.views, result.deliveries))
    return tally


def describe(configuration: str, seed: int, error: Exception) -> str:
    return (
        f"FAILED: configuration {configuration!r}, seed {seed}, commit {commit()}\n"
        f"  {type(error).__name__}: {error}\n"
        f"  make it again: make vopr VOPR=\"'{configuration}' {seed}\""
    )


def commit() -> str:
    def git(*words: str) -> str:
        done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=False)
        return done.stdout.strip() if done.returncode == 0 else "unknown"

    return git("rev-parse", "HEAD") + (" with changes" if git("status", "--porcelain") not in ("", "unknown") else "")


def search(run: Make, *, workers: int, first: int, stop: Event) -> Tally:
    """Make runs until one fails, or until it is told to stop; then finish those that have begun."""
    total, began = Tally(), monotonic()
    told, work = began, batches(first)
    with ProcessPoolExecutor(workers, initializer=_leave_interrupts_to_the_parent) as pool:
        open_: set[Future[Tally]] = set()
        while not (total.failure or stop.is_set()):
            open_ |= {pool.submit(batch, run, *one) for one in islice(work, 2 * workers - len(open_))}
            done, open_ = wait(open_, timeout=LOOKS_AT_INTERRUPTS_S, return_when=FIRST_COMPLETED)
            for one in done:
                total.add(one.result())
            if monotonic() - told >= PROGRESS_S:
                told = monotonic()
                print(f"{(told - began) / 60:.0f} min: {total}", flush=True)
        pool.shutdown(cancel_futures=True)
        for one in open_:
            if not one.cancelled():
                total.add(one.result())
    return total


def batches(first: int) -> Iterator[tuple[str, int]]:
    """Every configuration in turn, each time with the next seeds."""
    return ((name, first + BATCH * turn) for turn in count() for name in CONFIGURATIONS)


def _leave_interrupts_to_the_parent() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def main(words: Sequence[str]) -> int:
    if words:
        configuration, seed = words[0], int(words[1])
        result = make(configuration, seed)
        print(f"configuration {configuration!r}, seed {seed}: every promise was kept; {result}")
        return 0
    first, workers, stop = secrets.randbits(40), os.cpu_count() or 1, Event()
    # An exception in the middle of something else could be lost there.
    signal.signal(signal.SIGINT, lambda *_: stop.set())
    print(f"searching in commit {commit()}, from seed {first}, with {workers} workers; Ctrl-C ends it", flush=True)
    total = search(make, workers=workers, first=first, stop=stop)
    print(total.failure or "no run failed")
    print(total)
    return 1 if total.failure else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
