"""HTTP client: one request at a time over a persistent connection, or a stream over a connection of its own."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import suppress

import h11

from quire.http.addresses import HttpAddress
from quire.model.errors import QuireError

ANSWER_BYTES_MAX = 1 << 26
_READ_BYTES = 1 << 16


class Unanswered(QuireError):
    """There was no answer, or an invalid one."""


class Client:
    """A client of one server, which sends one request after the other. An answer whose status is not 200 raises Unanswered,
    with the status in its text."""

    def __init__(self, address: HttpAddress, token: str | None = None, timeout_s: float = 5.0) -> None:
        self.address = address
        self._token = token
        self._timeout_s = timeout_s
        self._kept: tuple[h11.Connection, asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def get(self, path: str) -> bytes:
        """The body of the answer; raises Unanswered."""
        try:
            async with asyncio.timeout(self._timeout_s):
                try:
                    return await self._ask(path)
                except _Ended:
                    # The server may have closed an idle connection.
                    return await self._ask(path)
        except Unanswered:
            self.close()
            raise
        except TimeoutError:
            self.close()
            raise Unanswered(f"{self.address} does not answer") from None
        except (OSError, h11.ProtocolError, _Ended) as error:
            self.close()
            raise Unanswered(f"{self.address}: {_why(error)}") from error

    async def stream(self, path: str) -> AsyncGenerator[bytes, None]:
        """Pieces of an answer as they come, over a connection of its own; raises Unanswered when it breaks off."""
        writer: asyncio.StreamWriter | None = None
        try:
            async with asyncio.timeout(self._timeout_s):
                connection, reader, writer = await self._open()
                await _send(connection, writer, self._request(path))
            while not isinstance(event := await _next(connection, reader), h11.EndOfMessage):
                if isinstance(event, h11.Response):
                    _check(event, self.address)
                elif isinstance(event, h11.Data):
                    yield bytes(event.data)
        except (OSError, TimeoutError, h11.ProtocolError, _Ended) as error:
            raise Unanswered(f"{self.address}: {_why(error)}") from error
        finally:
            if writer is not None:
                writer.transport.abort()

    def close(self) -> None:
        if self._kept is not None:
            with suppress(RuntimeError):  # The loop may have ended.
                self._kept[2].transport.abort()
            self._kept = None

    async def _ask(self, path: str) -> bytes:
        kept = self._kept
        connection, reader, writer = kept if kept is not None else await self._open()
        self._kept = None
        body = bytearray()
        try:
            await _send(connection, writer, self._request(path))
            while not isinstance(event := await _next(connection, reader), h11.EndOfMessage):
                if isinstance(event, h11.Response):
                    _check(event, self.address)
                elif isinstance(event, h11.Data):
                    body += event.data
                    if len(body) > ANSWER_BYTES_MAX:
                        raise Unanswered(f"{self.address} answers with more than {ANSWER_BYTES_MAX} bytes")
        except BaseException as error:
            writer.transport.abort()
            if kept is not None and isinstance(error, OSError | h11.ProtocolError):
                raise _Ended from error
            raise
        if connection.our_state is h11.DONE and connection.their_state is h11.DONE:
            connection.start_next_cycle()
            self._kept = connection, reader, writer
        else:
            writer.transport.abort()
        return bytes(body)

    async def _open(self) -> tuple[h11.Connection, asyncio.StreamReader, asyncio.StreamWriter]:
        reader, writer = await asyncio.open_connection(self.address.host, self.address.port)
        return h11.Connection(h11.CLIENT), reader, writer

    def _request(self, path: str) -> h11.Request:
        headers = [("Host", str(self.address))]
        if self._token is not None:
            headers.append(("Authorization", f"Bearer {self._token}"))
        return h11.Request(method="GET", target=path, headers=headers)


class _Ended(Exception):
    """The other end closed the connection."""

    def __str__(self) -> str:
        return "the connection ended"


def _why(error: BaseException) -> str:
    return getattr(error, "strerror", None) or str(error) or "it does not answer"


def _check(response: h11.Response, address: HttpAddress) -> None:
    if response.status_code != 200:
        refused = {401: "it wants a token, or another one", 403: "it refuses this", 404: "it has no such page"}
        raise Unanswered(f"{address}: {refused.get(response.status_code, f'status {response.status_code}')}")


async def _send(connection: h11.Connection, writer: asyncio.StreamWriter, request: h11.Request) -> None:
    writer.write((connection.send(request) or b"") + (connection.send(h11.EndOfMessage()) or b""))
    await writer.drain()


async def _next(connection: h11.Connection, reader: asyncio.StreamReader) -> object:
    while (event := connection.next_event()) is h11.NEED_DATA:
        data = await reader.read(_READ_BYTES)
        if not data and connection.their_state in (h11.IDLE, h11.SEND_RESPONSE, h11.SEND_BODY):
            raise _Ended
        connection.receive_data(data)
    if event is h11.PAUSED or isinstance(event, h11.ConnectionClosed):
        raise _Ended
    return event
