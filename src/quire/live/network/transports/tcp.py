"""TCP, and TLS on it where a group is secured by certificates. The only module of live groups that makes sockets."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Sequence

from quire.live.network.certificates import check_in_date
from quire.live.network.handshake import HELLO_BEGINS
from quire.live.network.transports.contract import CLOSE_S, shown
from quire.live.network_options import Certificates
from quire.live.settings import Address, Settings
from quire.model.errors import BadInput


class TcpStranger:
    def __init__(self, connected: socket.socket, address: str, tls: ssl.SSLContext | None, handshake_s: float) -> None:
        self.address = address
        self._socket = connected
        self._tls = tls
        self._handshake_s = handshake_s

    async def talk(self, protocol: asyncio.BufferedProtocol) -> bool:
        loop = asyncio.get_running_loop()
        first = await self._first_byte() if self._tls is not None else HELLO_BEGINS
        if not first:
            self._socket.close()
            return False
        if self._tls is None or first == HELLO_BEGINS:
            # Members with another kind of security, or that rejected this one's certificate, say so without TLS: read that,
            # and refuse them.
            await loop.connect_accepted_socket(lambda: protocol, self._socket)
        else:
            await loop.connect_accepted_socket(
                lambda: protocol,
                self._socket,
                ssl=self._tls,
                ssl_handshake_timeout=self._handshake_s,
                ssl_shutdown_timeout=CLOSE_S,
            )
        return True

    def close(self) -> None:
        self._socket.close()

    async def _first_byte(self) -> bytes:
        """Peek at the first byte, without consuming it; empty if the stranger has closed the connection."""
        try:
            async with asyncio.timeout(self._handshake_s):
                await _readable(self._socket)
            return self._socket.recv(1, socket.MSG_PEEK)
        except BaseException:
            self._socket.close()
            raise


class TcpEndpoint:
    def __init__(self, listening: socket.socket, tls: ssl.SSLContext | None, handshake_s: float) -> None:
        self.port: int = listening.getsockname()[1]
        self.address = shown(listening.getsockname())
        self._socket = listening
        self._tls = tls
        self._handshake_s = handshake_s

    async def accept(self) -> TcpStranger:
        while True:
            # Not with the event loop's sock_accept: if that is cancelled just as a connection comes, it leaks the socket.
            try:
                connected, address = self._socket.accept()
            except BlockingIOError:
                await _readable(self._socket)
                continue
            connected.setblocking(False)
            connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return TcpStranger(connected, shown(address), self._tls, self._handshake_s)

    def close(self) -> None:
        self._socket.close()


class Tcp:
    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._accepting_tls: ssl.SSLContext | None = None
        self._connecting_tls: ssl.SSLContext | None = None
        if settings.certificates is not None:
            check_in_date(settings.certificates)
            self._accepting_tls, self._connecting_tls = tls_contexts(settings.certificates)

    async def listen(self, address: Address) -> Sequence[TcpEndpoint]:
        endpoints: list[TcpEndpoint] = []
        try:
            for family, _, _, _, where in await asyncio.get_running_loop().getaddrinfo(
                address.host, address.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
            ):
                listening = socket.create_server(where[:2], family=family)
                listening.setblocking(False)
                endpoints.append(TcpEndpoint(listening, self._accepting_tls, self._settings.handshake_s))
        except OSError:
            for endpoint in endpoints:
                endpoint.close()
            raise
        return endpoints

    async def connect(self, protocol: asyncio.BufferedProtocol, member: int, address: Address) -> None:
        loop, tls = asyncio.get_running_loop(), self._connecting_tls
        if tls is None:
            await loop.create_connection(lambda: protocol, address.host, address.port)
        else:
            await loop.create_connection(
                lambda: protocol,
                address.host,
                address.port,
                ssl=tls,
                server_hostname=self._settings.certificate_name(member),
                ssl_shutdown_timeout=CLOSE_S,
            )

    async def say(self, words: bytes, address: Address) -> None:
        _, writer = await asyncio.open_connection(address.host, address.port)
        try:
            writer.write(words)
            await writer.drain()
        finally:
            writer.close()


async def _readable(watched: socket.socket) -> None:
    """Wait until there is something to read, or a connection to accept."""
    loop, readable = asyncio.get_running_loop(), asyncio.Event()
    loop.add_reader(watched, readable.set)
    try:
        await readable.wait()
    finally:
        loop.remove_reader(watched)


def tls_contexts(certificates: Certificates) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """Contexts to accept and to connect with: TLS 1.3, both sides certified by the group's own authority."""
    contexts = []
    for role in (ssl.PROTOCOL_TLS_SERVER, ssl.PROTOCOL_TLS_CLIENT):
        context = ssl.SSLContext(role)
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        # Members are identified by the names in their certificates, which the connection checks, not by host names.
        context.check_hostname = False
        context.verify_mode = ssl.CERT_REQUIRED
        if role == ssl.PROTOCOL_TLS_SERVER:
            # A resumed session would be admitted without presenting its certificate again.
            context.num_tickets = 0
        try:
            context.load_verify_locations(certificates.authority)
            context.load_cert_chain(certificates.certificate, certificates.key)
        except (OSError, ssl.SSLError) as error:
            raise BadInput(f"the group's certificates cannot be used: {error}") from error
        contexts.append(context)
    return contexts[0], contexts[1]
