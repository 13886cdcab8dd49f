"""Fast crash detection: whether a connection ended because the process at the other end has ended, or may come back.

Most connections that end are made again: the network broke them, or something on the way did. When a process has ended, its
host closes its connections and refuses new ones: a member that sees a connection closed by the other end, and whose attempts to
reconnect are then refused for half a second, knows that the process is gone and need not wait for the timeout. That holds only
without intermediaries: a proxy, too, closes connections and refuses others while it restarts. So each side says which address
its end of a connection has; where the other side sees a different one, only silence counts. A different process that comes
back under the same number, after the connection to the first one ended, proves the same.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine

from quire.live import clock
from quire.live.network.connection import Connection
from quire.live.network.liveness import Liveness
from quire.live.network.peers import Peer
from quire.live.network.transports.contract import Transport
from quire.live.settings import Address

PROBE_S = 0.1
"""How often to probe a process whose connection has ended; one that is alive reconnects sooner."""
REFUSED_S = 0.5
"""For how long it must refuse connections to count as ended."""

ENDED = "its connection was closed and its address refuses new ones: its process has ended"
ANOTHER = "it was restarted, and a restarted process cannot rejoin a fixed group"


class Losses:
    def __init__(self, liveness: Liveness, transport: Transport) -> None:
        self._liveness = liveness
        self._transport = transport
        self._tasks: set[asyncio.Task[None]] = set()

    def connection_ended(self, peer: Peer, connection: Connection) -> None:
        """The peer has no connection any more; find out whether its process has ended."""
        if connection.deserted and connection.beyond is not None:
            self._start(self._probe(peer, connection.beyond))

    def another_process(self, peer: Peer) -> None:
        """A process that has authenticated as the peer is not the same process as before."""
        if peer.connection is None:
            self._start(self._wait_for_the_first(peer))

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _start(self, search: Coroutine[None, None, None]) -> None:
        task = asyncio.get_running_loop().create_task(search)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _probe(self, peer: Peer, where: Address) -> None:
        if await has_ended(self._transport, where):
            self._is_gone(peer, ENDED)

    async def _wait_for_the_first(self, peer: Peer) -> None:
        await asyncio.sleep(REFUSED_S)
        self._is_gone(peer, ANOTHER)

    def _is_gone(self, peer: Peer, why: str) -> None:
        if peer.connection is None and not peer.done:
            peer.why_down = why
            peer.ended = True
            self._liveness.lose(peer)


async def has_ended(transport: Transport, where: Address) -> bool:
    """Whether nobody listens there: all connections are refused for some time."""
    refused_at: float | None = None
    while refused_at is None or clock.now() - refused_at < REFUSED_S:
        await asyncio.sleep(PROBE_S)
        try:
            async with asyncio.timeout(REFUSED_S):
                await transport.say(b"", where)
        except ConnectionRefusedError:
            refused_at = clock.now() if refused_at is None else refused_at
        except OSError:
            return False
        else:
            return False
    return True
