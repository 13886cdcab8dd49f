"""Live groups in one process: every member has sockets of its own on loopback, at ports that were free a moment ago."""

from __future__ import annotations

import socket
from collections.abc import Callable

import pytest


def free_ports(count: int) -> list[int]:
    sockets = [socket.socket() for _ in range(count)]
    try:
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [int(one.getsockname()[1]) for one in sockets]
    finally:
        for one in sockets:
            one.close()


@pytest.fixture
def addresses() -> Callable[[int], list[str]]:
    return lambda count: [f"127.0.0.1:{port}" for port in free_ports(count)]
