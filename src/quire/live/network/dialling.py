"""Maintains the connections that a member makes: reconnects when one ends, with growing pauses while attempts fail."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress

from quire.live import clock
from quire.live.network.certificates import judged, why_not
from quire.live.network.connection import Connection
from quire.live.network.handshake import Answer, complaint
from quire.live.network.peers import Peer
from quire.live.network.transports.contract import Transport
from quire.live.settings import Address, Settings

RECONNECT_S = (0.02, 0.05, 0.1, 0.2, 0.5, 1.0)


class Dialling:
    """`make` creates the connection object for the peer with this number."""

    def __init__(self, settings: Settings, make: Callable[[int], Connection], transport: Transport) -> None:
        self._settings = settings
        self._make = make
        self._transport = transport

    async def keep_connected(self, peer: Peer, address: Address) -> None:
        """Connect, wait until the connection ends, and connect again, until the peer is given up and no other process can take
        its place."""
        in_vain = 0
        while not peer.gone or peer.member < self._settings.restartable:
            began, moved = clock.now(), peer.moved()
            connection = self._make(peer.member)
            try:
                await self._connect(connection, peer.member, address)
                await connection.ended.wait()
            except OSError as error:
                peer.why_down = f"cannot connect to it ({why_not(error)})"
                if (answer := judged(error)) is not None:
                    await self._complain(peer.member, address, answer)
            finally:
                connection.close("this member has left")
            # A connection that ends as soon as it is made, without having carried anything, counts as a failure.
            lasted = clock.now() - began > RECONNECT_S[-1]
            helped = connection.was_open and (lasted or peer.moved() > moved)
            in_vain = 0 if helped else in_vain + 1
            await asyncio.sleep(RECONNECT_S[min(in_vain, len(RECONNECT_S) - 1)])

    async def _connect(self, connection: Connection, member: int, address: Address) -> None:
        async with asyncio.timeout(self._settings.handshake_s):
            await self._transport.connect(connection, member, address)

    async def _complain(self, member: int, address: Address, answer: Answer) -> None:
        """Tell a member what is wrong with its certificate, which TLS does not tell it."""
        with suppress(OSError):
            async with asyncio.timeout(self._settings.handshake_s):
                await self._transport.say(complaint(self._settings.me, member, answer), address)
