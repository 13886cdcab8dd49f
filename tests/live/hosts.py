"""Hosts of their own on this machine: network namespaces on one bridge, each with an address of both families.

They need root and `ip`; where these are not to be had, the tests that use them say so and are skipped. Whatever is
made is removed again, and nothing outside of it is touched.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest


class Hosts:
    def __init__(self, name: str, count: int) -> None:
        self.name = name
        self.namespaces = [f"{name}h{number}" for number in range(count)]
        self.ipv4 = [f"10.213.77.{number + 1}" for number in range(count)]
        self.ipv6 = [f"fd77:213::{number + 1:x}" for number in range(count)]

    def on(self, host: int) -> list[str]:
        """What comes before a command that is to run on this host."""
        return ["ip", "netns", "exec", self.namespaces[host]]

    def cable(self, host: int, state: str) -> None:
        """Pull the cable of a host (`down`), or plug it in again (`up`)."""
        ip("-n", f"{self.name}sw", "link", "set", f"port{host}", state)


def ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, capture_output=True, text=True)


@contextmanager
def hosts(count: int) -> Iterator[Hosts]:
    """So many hosts, connected by a switch that is a namespace too."""
    if os.geteuid() != 0 or shutil.which("ip") is None:
        pytest.skip("hosts of their own need root and the command ip")
    made = Hosts(f"quire{os.getpid()}", count)
    switch = f"{made.name}sw"
    with ExitStack() as stack:
        for namespace in (switch, *made.namespaces):
            try:
                ip("netns", "add", namespace)
            except subprocess.CalledProcessError as error:
                pytest.skip(f"this machine lets nobody make network namespaces: {error.stderr.strip()}")
            stack.callback(subprocess.run, ["ip", "netns", "del", namespace], check=False)
        ip("-n", switch, "link", "add", "switch", "type", "bridge")
        ip("-n", switch, "link", "set", "switch", "up")
        for number, namespace in enumerate(made.namespaces):
            ip("link", "add", f"port{number}", "netns", switch, "type", "veth", "peer", "name", "net", "netns", namespace)
            ip("-n", switch, "link", "set", f"port{number}", "master", "switch", "up")
            ip("-n", namespace, "address", "add", f"{made.ipv4[number]}/24", "dev", "net")
            ip("-n", namespace, "address", "add", f"{made.ipv6[number]}/64", "dev", "net", "nodad")
            ip("-n", namespace, "link", "set", "net", "up")
            ip("-n", namespace, "link", "set", "lo", "up")
        yield made
