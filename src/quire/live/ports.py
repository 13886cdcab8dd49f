"""Free ports of this machine, reserved for members that are about to listen on them.

Nobody else may take a port between its choice and the moment when its member listens. Outgoing connections do not, because
these ports are below the ephemeral range. Other processes that choose ports with this module do not either: each claims a port
by binding the UDP port of the same number, which Quire uses for nothing else, and chooses only unclaimed ones. A claim ends
with its process, however that ends.
"""

from __future__ import annotations

import os
import socket
from collections import deque
from secrets import SystemRandom

from quire.model.errors import BadInput

_PORTS = range(10_000, 32_000)
_CLAIMS_MAX = 256
"""How many of the latest claims are kept. By the time that so many more ports were chosen, the older ones are in use, or never
will be."""

_claims: deque[int] = deque()
"""Open file descriptors."""


def free_ports(count: int) -> list[int]:
    """So many ports of the loopback interface on which nobody listens, and which no other caller is given for now."""
    found: list[int] = []
    candidates = SystemRandom().sample(_PORTS, len(_PORTS))
    while candidates and len(found) < count:
        port = candidates.pop()
        if _claim(port):
            found.append(port)
    if len(found) == count:
        return found
    raise BadInput(f"this machine has fewer than {count} free ports")


def can_bind(host: str, port: int) -> bool:
    """Whether a process can listen at this host name or address on this machine, and on this port (0: any)."""
    try:
        family, kind, protocol, _, where = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        with socket.socket(family, kind, protocol) as one:
            one.bind(where)
    except OSError:
        return False
    return True


def _claim(port: int) -> bool:
    with socket.socket(type=socket.SOCK_DGRAM) as claim:
        try:
            claim.bind(("127.0.0.1", port))
        except OSError:
            return False
        if not can_bind("127.0.0.1", port):
            return False
        _claims.append(claim.detach())
    if len(_claims) > _CLAIMS_MAX:
        os.close(_claims.popleft())
    return True
