"""Ports that are chosen before somebody listens there: nobody else gets them in between."""

from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path

import pytest

from quire.live import ports
from quire.live.ports import can_bind, free_ports
from quire.model.errors import BadInput

HANDED_OUT = Path("/proc/sys/net/ipv4/ip_local_port_range")
CHOOSE = """
import sys
from quire.live.ports import free_ports
print(*free_ports(200), flush=True)
sys.stdin.read()
"""


def choosers(count: int) -> list[subprocess.Popen[str]]:
    """Processes that each say which ports they chose, and go on until their input ends."""
    command = [sys.executable, "-c", CHOOSE]
    return [subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(count)]


def said(chooser: subprocess.Popen[str]) -> list[int]:
    assert chooser.stdout is not None
    return [int(word) for word in chooser.stdout.readline().split()]


def test_processes_that_choose_at_the_same_time_choose_different_ports_below_those_of_connections() -> None:
    started = choosers(4)
    try:
        chosen = [port for chooser in started for port in said(chooser)]
    finally:
        for chooser in started:
            chooser.communicate("")
    assert len(chosen) == 800
    assert len(set(chosen)) == 800
    assert min(chosen) >= 10_000
    assert max(chosen) < (int(HANDED_OUT.read_text().split()[0]) if HANDED_OUT.exists() else 32_768)


def test_a_port_can_be_chosen_again_when_its_process_has_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    [chooser] = choosers(1)
    chosen = said(chooser)[:2]
    monkeypatch.setattr(ports, "_PORTS", chosen)
    with pytest.raises(BadInput, match="fewer than 1 free ports"):
        free_ports(1)
    chooser.communicate("")
    assert sorted(free_ports(2)) == sorted(chosen)


def test_a_port_is_not_chosen_where_somebody_listens_nor_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        monkeypatch.setattr(ports, "_PORTS", [port])
        assert not can_bind("127.0.0.1", port)
        with pytest.raises(BadInput):
            free_ports(1)
    assert free_ports(1) == [port]
    with pytest.raises(BadInput):
        free_ports(1)
