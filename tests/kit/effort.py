"""How much work the tests do: a share of it in `make test`, all of it in `make test-long`, more by hand."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TypeVar

T = TypeVar("T")

LONG = os.environ.get("QUIRE_TEST") == "long"


def runs(quick: int, long: int) -> int:
    """How many random runs a test makes. QUIRE_SWARM_RUNS says it for all of them."""
    return int(os.environ.get("QUIRE_SWARM_RUNS", long if LONG else quick))


def cases(quick: Iterable[T], more: Iterable[T]) -> list[T]:
    """With what a test is tried: something for every rule that it is about, and in `make test-long` all the rest, too."""
    return [*quick, *(more if LONG else ())]
