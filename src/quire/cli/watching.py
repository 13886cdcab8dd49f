"""Shows a live page about a run while it goes on: starts `quire watch` in its own process, which ends with the run."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec

from quire.cli.planning import RATE
from quire.live.ports import free_ports
from quire.live.runs.plan import Plan
from quire.model.errors import BadInput
from quire.model.faults import Disconnection, Fault

_END_S = 10.0


def observable(plan: Plan, hosts: Path | None, faults: Sequence[Fault]) -> Plan:
    """The plan of a run that can be watched: it lasts, and its processes can be looked at. Members that will be cut off have a
    network of their own, which the page is not on: it shows what they record."""
    if hosts is not None:
        raise BadInput("--watch is for members that are all started here; leave out --hosts, or use quire watch --group")
    apart = any(isinstance(fault, Disconnection) for fault in faults)
    observe = () if apart else tuple(f"127.0.0.1:{port}" for port in free_ports(len(plan.members)))
    return msgspec.structs.replace(plan, observe=observe, rate=RATE if plan.rate is None else plan.rate)


@contextmanager
def watching(plan: Plan, out: Path) -> Iterator[None]:
    """Watch the members, or the parts that they write on the way to `out`."""
    command = [sys.executable, "-c", "from quire.cli.main import main; main()", "watch", *(plan.observe or (str(out),))]
    page = subprocess.Popen(command, stdin=subprocess.DEVNULL)  # noqa: S603 - This very program.
    try:
        yield
    finally:
        page.terminate()
        try:
            page.wait(_END_S)
        except subprocess.TimeoutExpired:
            page.kill()
            page.wait()
