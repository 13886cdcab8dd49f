"""Virtual hosts on this machine: network namespaces on one bridge, each with an IPv4 and an IPv6 address.

They need root and the command `ip`. Everything that is made is removed again, and nothing else is touched; what a killed
command has left behind is removed by the next one.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress

from quire.model.errors import BadInput

_NOBODY = "02:00:00:00:00:fe"
"""An unused hardware address on the bridge, so that what is sent there is lost silently."""


class Hosts:
    def __init__(self, name: str, count: int) -> None:
        self.name = name
        self.namespaces = [f"{name}h{number}" for number in range(count)]
        self.ipv4 = [f"10.213.77.{number + 1}" for number in range(count)]
        self.ipv6 = [f"fd77:213::{number + 1:x}" for number in range(count)]
        self._cut: Counter[tuple[int, int]] = Counter()

    def on(self, host: int) -> list[str]:
        """The prefix of a command that is to run on this host."""
        return ["ip", "netns", "exec", self.namespaces[host]]

    def cable(self, host: int, state: str) -> None:
        """Pull the cable of a host (`down`), or plug it in again (`up`)."""
        ip("-n", f"{self.name}sw", "link", "set", f"port{host}", state)

    def cut(self, pairs: Iterable[tuple[int, int]]) -> None:
        """Drop all IPv4 traffic from the first host of each pair to the second."""
        pairs = list(pairs)
        self._redirect([pair for pair in pairs if not self._cut[pair]], f"replace {{}} lladdr {_NOBODY} nud permanent dev net")
        self._cut.update(pairs)

    def heal(self, pairs: Iterable[tuple[int, int]]) -> None:
        """Undo a cut. What was cut twice has to be healed twice."""
        pairs = list(pairs)
        self._cut.subtract(pairs)
        self._redirect([pair for pair in pairs if not self._cut[pair]], "del {} dev net")

    def heal_all(self) -> None:
        self.heal(self._cut.elements())

    def _redirect(self, pairs: Sequence[tuple[int, int]], command: str) -> None:
        for source in sorted({source for source, _ in pairs}):
            commands = [f"neigh {command.format(self.ipv4[target])}\n" for one, target in pairs if one == source]
            ip("-n", self.namespaces[source], "-batch", "-", said="".join(commands))


def ip(*arguments: str, said: str | None = None) -> str:
    """What the command prints. Raises CalledProcessError."""
    command = [shutil.which("ip") or "ip", *arguments]
    return subprocess.run(command, input=said, check=True, capture_output=True, text=True).stdout  # noqa: S603 - our own words.


@contextmanager
def hosts(count: int) -> Iterator[Hosts]:
    """So many hosts, connected by a switch that is a namespace too. Raises BadInput where they cannot be made."""
    if os.geteuid() != 0 or shutil.which("ip") is None:
        raise BadInput("network namespaces need root and the command ip")
    made = Hosts(f"quire{os.getpid()}", count)
    switch = f"{made.name}sw"
    with ExitStack() as stack:
        try:
            _remove_left_behind()
            for namespace in (switch, *made.namespaces):
                ip("netns", "add", namespace)
                stack.callback(_remove, namespace)
            _connect(made, switch)
        except subprocess.CalledProcessError as error:
            raise BadInput(f"this machine does not allow network namespaces: {error.stderr.strip()}") from error
        yield made


def _connect(made: Hosts, switch: str) -> None:
    ip("-n", switch, "link", "add", "switch", "type", "bridge")
    ip("-n", switch, "link", "set", "switch", "up")
    for number, namespace in enumerate(made.namespaces):
        ip("link", "add", f"port{number}", "netns", switch, "type", "veth", "peer", "name", "net", "netns", namespace)
        ip("-n", switch, "link", "set", f"port{number}", "master", "switch", "up")
        ip("-n", namespace, "address", "add", f"{made.ipv4[number]}/24", "dev", "net")
        ip("-n", namespace, "address", "add", f"{made.ipv6[number]}/64", "dev", "net", "nodad")
        ip("-n", namespace, "link", "set", "net", "up")
        ip("-n", namespace, "link", "set", "lo", "up")


def _remove_left_behind() -> None:
    """Namespaces carry the id of the process that made them."""
    for namespace, maker in re.findall(r"^(quire(\d+)(?:sw|h\d+))\b", ip("netns", "list"), re.MULTILINE):
        try:
            os.kill(int(maker), 0)
        except ProcessLookupError:
            _remove(namespace)


def _remove(namespace: str) -> None:
    with suppress(subprocess.CalledProcessError):
        ip("netns", "del", namespace)
