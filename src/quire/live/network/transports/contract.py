"""What a member needs of whatever carries its bytes: to listen, to accept, to connect.

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
"""How long a peer may take to receive the last words, and to agree to the end of a connection."""


class Stranger(Protocol):
    """Somebody who has connected, and with whom nobody talks yet."""

    address: str
    """Where it is, for people to read."""

    async def talk(self, protocol: asyncio.BufferedProtocol) -> bool:
        """Begin to talk; False where the stranger has gone again without a word. Raises OSError where that fails, and
        TimeoutError where the stranger takes too long."""

    def close(self) -> None:
        """Send it away before anybody talks to it."""


class Endpoint(Protocol):
    """Where strangers arrive."""

    address: str
    """Where that is, for people to read."""
    port: int

    async def accept(self) -> Stranger:
        """The next stranger; raises OSError while there is no room for one."""

    def close(self) -> None:
        """Accept nobody more."""


class Transport(Protocol):
    """One member's way to others. All of it belongs to one event loop."""

    async def listen(self, address: Address) -> Sequence[Endpoint]:
        """Raises OSError where that is impossible. Port 0 is any port that is free."""

    async def connect(self, protocol: asyncio.BufferedProtocol, member: int, address: Address) -> None:
        """Connect to this member there; raises OSError where that fails. Whoever calls it gives it so much time."""

    async def say(self, words: bytes, address: Address) -> None:
        """Say this to whoever is there, without any security, and close."""


TransportFactory: TypeAlias = Callable[[Settings], Transport]
"""Raises BadInput where the settings ask for what the transport does not have."""


def shown(address: tuple[object, ...]) -> str:
    """A host and its port for people to read."""
    if len(address) < 2:
        return "?"
    host, port = str(address[0]), address[1]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
