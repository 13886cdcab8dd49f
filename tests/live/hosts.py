"""Hosts of their own for tests, which say so and are skipped where there can be none."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from quire.live.runs import hosts as runs
from quire.live.runs.hosts import Hosts
from quire.model.errors import BadInput

__all__ = ["Hosts", "hosts"]


@contextmanager
def hosts(count: int) -> Iterator[Hosts]:
    making = runs.hosts(count)
    try:
        made = making.__enter__()
    except BadInput as error:
        pytest.skip(str(error))
    try:
        yield made
    finally:
        making.__exit__(None, None, None)
