"""Ports of this machine for members that will listen there in a moment.

Between the choice of a port and the moment in which its member listens, nobody else may take it. Connections do not,
because the ports are below those that systems hand out to them. Neither do others that choose ports in the same way at the
same time: whoever chooses one holds the UDP port of the same number, which nobody here uses for anything else, as its
claim, and takes only what nobody has claimed. A claim ends with its process, however that ends.
"""

from __future__ import annotations

import os
import socket
from collections import deque
from secrets import SystemRandom

from quire.model.errors import BadInput

_PORTS = range(10_000, 32_000)
_CLAIMS_MAX = 256
"""So many of the latest claims are kept: who chose so many ports since has long listened at the older ones, or never will."""

_claims: deque[int] = deque()
"""Open file descriptors."""


def free_ports(count: int) -> list[int]:
    """So many ports of the loopback interface at which nobody listens, and which nobody else is given for now."""
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
    """Whether somebody can listen at this host name or address on this machine, and at this port (0: at any)."""
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
