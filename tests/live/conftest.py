"""Live groups in one process: every member has sockets of its own on loopback."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from quire.live.runs.fleet import free_addresses


@pytest.fixture
def addresses() -> Callable[[int], list[str]]:
    return lambda count: list(free_addresses(count))
