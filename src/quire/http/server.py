"""HTTP server for read-only pages, with limits on everything: connections, headers, time, and unsent data.

A handler returns an answer, or a stream: pieces that are sent as they come, until the client disconnects. A client that does
not read is disconnected when its small send buffer has been full for too long; otherwise the handler never waits for it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import aclosing, suppress
from typing import NamedTuple
from urllib.parse import parse_qsl, urlsplit

import h11

from quire.http.addresses import HttpAddress
from quire.http.guard import Guard, Refusal
from quire.model.errors import BadInput

CONNECTIONS_MAX = 64
HEADER_BYTES_MAX = 1 << 14
REQUEST_S = 10.0
"""How long a request may take to come, and how long a connection may be idle."""
UNREAD_S = 5.0
"""How long a client may read nothing of what is sent to it."""
UNREAD_BYTES_MAX = 1 << 16
_READ_BYTES = 1 << 14

_ALWAYS = (
    ("Cache-Control", "no-store"),
    ("X-Content-Type-Options", "nosniff"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
    ("X-Frame-Options", "DENY"),
    ("Referrer-Policy", "no-referrer"),
)


class Request(NamedTuple):
    path: str
    query: Mapping[str, str]


class Answer(NamedTuple):
    body: bytes | AsyncIterator[bytes]
    kind: str = "text/plain; charset=utf-8"
    status: int = 200


Handler = Callable[[Request], Awaitable[Answer]]
"""Answers a request that the guard has allowed; raises Refusal where there is no such page."""


class Server:
    def __init__(self, address: HttpAddress, handler: Handler, token: str | None = None) -> None:
        """Raises BadInput where the address needs a token, or the token is too short."""
        self.address = address
        self._guard = Guard(address, token)
        self._handler = handler
        self._server: asyncio.Server | None = None
        self._connections: dict[asyncio.Task[None], asyncio.StreamWriter] = {}

    async def start(self) -> None:
        """Listen; `address` then says where. Raises BadInput where that is impossible."""
        try:
            self._server = await asyncio.start_server(
                self._accept, self.address.host, self.address.port, limit=HEADER_BYTES_MAX, backlog=CONNECTIONS_MAX
            )
        except OSError as error:
            raise BadInput(f"cannot listen at {self.address}: {error.strerror or error}") from error
        self.address = HttpAddress(self.address.host, self._server.sockets[0].getsockname()[1])

    async def stop(self) -> None:
        if self._server is None:
            return
        self._server.close()
        for task in tuple(self._connections):
            task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)
        self._server = None

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(self._connections) >= CONNECTIONS_MAX:
            writer.transport.abort()
            return
        writer.transport.set_write_buffer_limits(high=UNREAD_BYTES_MAX)
        task = asyncio.get_running_loop().create_task(self._converse(reader, writer))
        self._connections[task] = writer
        task.add_done_callback(self._forget)

    def _forget(self, task: asyncio.Task[None]) -> None:
        self._connections.pop(task).transport.abort()
        if not task.cancelled():
            task.exception()

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = h11.Connection(h11.SERVER, max_incomplete_event_size=HEADER_BYTES_MAX)
        with suppress(OSError, TimeoutError, h11.ProtocolError):
            while True:
                async with asyncio.timeout(REQUEST_S):
                    request = await _next_request(connection, reader)
                if request is None:
                    break
                await self._answer(connection, writer, request)
                if connection.our_state is not h11.DONE or connection.their_state is not h11.DONE:
                    break
                connection.start_next_cycle()
            writer.close()
            await writer.wait_closed()

    async def _answer(self, connection: h11.Connection, writer: asyncio.StreamWriter, request: h11.Request) -> None:
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in request.headers}
        try:
            self._guard.check(request.method.decode("latin-1"), headers)
            target = urlsplit(request.target.decode("latin-1"))
            answer = await self._handler(Request(target.path, dict(parse_qsl(target.query))))
        except (Refusal, ValueError) as refused:
            status = refused.status if isinstance(refused, Refusal) else 400
            answer = Answer(f"{refused}\n".encode(), status=status)
        if isinstance(answer.body, bytes):
            await _send(connection, writer, answer, answer.body, request.method == b"HEAD")
        elif request.method == b"HEAD":
            await _send(connection, writer, answer, b"", True)
        else:
            await _stream(connection, writer, answer, answer.body)


async def _next_request(connection: h11.Connection, reader: asyncio.StreamReader) -> h11.Request | None:
    """The next request, once all of it has come; None at the end of the connection. The body of a request is dropped."""
    request: h11.Request | None = None
    while True:
        event = connection.next_event()
        if event is h11.NEED_DATA:
            connection.receive_data(await reader.read(_READ_BYTES))
        elif isinstance(event, h11.Request):
            request = event
        elif isinstance(event, h11.EndOfMessage):
            return request
        elif event is h11.PAUSED or isinstance(event, h11.ConnectionClosed):
            return None


async def _send(connection: h11.Connection, writer: asyncio.StreamWriter, answer: Answer, body: bytes, bare: bool) -> None:
    headers = [("Content-Type", answer.kind), ("Content-Length", str(len(body))), *_ALWAYS]
    head = connection.send(h11.Response(status_code=answer.status, headers=headers))
    data = b"" if bare or not body else connection.send(h11.Data(data=body))
    end = connection.send(h11.EndOfMessage())
    await _write(writer, b"".join(filter(None, (head, data, end))))


async def _stream(
    connection: h11.Connection, writer: asyncio.StreamWriter, answer: Answer, pieces: AsyncIterator[bytes]
) -> None:
    headers = [("Content-Type", answer.kind), *_ALWAYS]
    await _write(writer, connection.send(h11.Response(status_code=answer.status, headers=headers)) or b"")
    async with aclosing(pieces):  # type: ignore[type-var]
        async for piece in pieces:
            await _write(writer, connection.send(h11.Data(data=piece)) or b"")
    await _write(writer, connection.send(h11.EndOfMessage()) or b"")


async def _write(writer: asyncio.StreamWriter, data: bytes) -> None:
    writer.write(data)
    async with asyncio.timeout(UNREAD_S):
        await writer.drain()
