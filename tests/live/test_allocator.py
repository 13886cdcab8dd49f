"""Memory of long packets is used again, and not fetched from the system for each of them."""

from __future__ import annotations

import platform
import subprocess
import sys

import pytest

SCRIPT = """
import asyncio, resource
from quire.live import Group
from quire.live.network_options import Network
from quire.live.runs.fleet import free_addresses
from quire.live.settings import read_settings

def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt

async def main():
    settings = read_settings("test", 0, free_addresses(1), protocol="two-phase", network=Network())
    async with Group(settings):
        for number in range(60):
            if number == 10:
                before = faults()
            runs = [b"x" * (1 << 20) for _ in range(3)]
            del runs
        print((faults() - before) / 50)

asyncio.run(main())
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other C libraries go about it in their own way")
def test_runs_that_are_let_go_of_together_leave_their_memory_to_the_next() -> None:
    # In a process of its own, because whatever else was freed in this one counts.
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, timeout=120, check=True)
    assert float(done.stdout) < 100, "three runs have 768 pages"
