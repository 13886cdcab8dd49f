"""The interface of a transport: to listen, to accept, to connect.

A connection that was made is an `asyncio.Transport` (write, pause, resume, close, abort), which reports to the protocol that it
was made for. `get_extra_info` knows "sockname" and "peername", the addresses of both ends as this one sees them; where it is
secured by certificates, "ssl_object" is not None and "peercert" is the peer's.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Protocol, TypeAlias

from quire.live.settings import Address, Settings

CLOSE_S = 2.0
"""How long a peer may take to receive the last bytes, and to acknowledge the end of a connection."""


class Stranger(Protocol):
    """An accepted connection over which nothing was sent yet."""

    address: str
    """Where it is, for people to read."""

    async def talk(self, protocol: asyncio.BufferedProtocol) -> bool:
        """Start the protocol on it; returns False if the stranger closed it without sending anything. Raises OSError if that
        fails, and TimeoutError if the stranger takes too long."""

    def close(self) -> None:
        """Close it before anything is sent over it."""


class Endpoint(Protocol):
    """A listening endpoint."""

    address: str
    """Where that is, for people to read."""
    port: int

    async def accept(self) -> Stranger:
        """The next connection; raises OSError while the machine has no room for one."""

    def close(self) -> None:
        """Accept no more connections."""


class Transport(Protocol):
    """One member's transport. All of it belongs to one event loop."""

    async def listen(self, address: Address) -> Sequence[Endpoint]:
        """Raises OSError where that is impossible. Port 0 is any port that is free."""

    async def connect(self, protocol: asyncio.BufferedProtocol, member: int, address: Address) -> None:
        """Connect to this member at this address; raises OSError where that fails. The caller limits the time."""

    async def say(self, words: bytes, address: Address) -> None:
        """Send this to the process at this address, without any security, and close."""


TransportFactory: TypeAlias = Callable[[Settings], Transport]
"""Raises BadInput where the settings ask for what the transport does not have."""


def shown(address: tuple[object, ...]) -> str:
    """A host and its port for people to read."""
    if len(address) < 2:
        return "?"
    host, port = str(address[0]), address[1]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
