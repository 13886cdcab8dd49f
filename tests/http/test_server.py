"""Pages that change nothing: who is refused, and that whoever misbehaves costs a bounded amount."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing

import pytest

from quire.http import server as serving
from quire.http.addresses import HttpAddress, read_http_address
from quire.http.client import Client, Unanswered
from quire.http.server import CONNECTIONS_MAX, Answer, Request, Server
from quire.model.errors import BadInput
from tests.kit.patience import PATIENCE_S

TOKEN = "correct horse battery staple"
ANY = HttpAddress("127.0.0.1", 0)


async def page(request: Request) -> Answer:
    if request.path == "/endless":
        return Answer(endless(), "text/event-stream")
    return Answer(f"{request.path} {dict(request.query)}".encode())


async def endless() -> AsyncIterator[bytes]:
    while True:
        yield b"x" * 100_000
        await asyncio.sleep(0)


def with_server(check: Callable[[Server], Awaitable[None]], token: str | None = None) -> None:
    async def main() -> None:
        server = Server(ANY, page, token)
        await server.start()
        try:
            await asyncio.wait_for(check(server), PATIENCE_S)
        finally:
            await server.stop()

    asyncio.run(main())


async def ask(server: Server, path: str = "/", token: str | None = None) -> bytes:
    client = Client(server.address, token)
    try:
        return await client.get(path)
    finally:
        client.close()


async def raw(server: Server, *lines: str) -> str:
    """The first line of the answer to a request of these lines; empty where the connection ends instead."""
    reader, writer = await asyncio.open_connection(*server.address)
    writer.write("\r\n".join((*lines, "Connection: close", "", "")).encode())
    first = await reader.readline()
    writer.transport.abort()
    return first.decode().strip()


def test_a_page_is_answered_again_and_again_over_one_connection() -> None:
    async def check(server: Server) -> None:
        client = Client(server.address)
        assert await client.get("/a?since=3") == b"/a {'since': '3'}"
        assert await client.get("/b") == b"/b {}"
        client.close()

    with_server(check)


def test_a_client_that_comes_back_after_its_connection_was_closed_is_answered() -> None:
    async def check(server: Server) -> None:
        client = Client(server.address)
        await client.get("/a")
        for task in tuple(server._connections):
            task.cancel()
        assert await client.get("/b") == b"/b {}"
        client.close()

    with_server(check)


@pytest.mark.parametrize(
    ("given", "status"),
    [
        (["GET / HTTP/1.1", "Host: 127.0.0.1:9400"], "200"),
        (["GET / HTTP/1.1", "Host: localhost"], "200"),
        (["GET / HTTP/1.1", "Host: [::1]:80"], "200"),
        (["GET / HTTP/1.1", "Host: evil.example"], "421"),
        (["GET / HTTP/1.1", "Host: 127.0.0.1.evil.example:9400"], "421"),
        (["GET / HTTP/1.1", "Host: localhost:9400", "Origin: http://evil.example"], "403"),
        (["GET / HTTP/1.1", "Host: localhost:9400", "Origin: null"], "403"),
        (["GET / HTTP/1.1", "Host: localhost:9400", "Origin: http://localhost:9400"], "200"),
        (["GET / HTTP/1.1", "Host: localhost", "Sec-Fetch-Site: cross-site"], "403"),
        (["POST / HTTP/1.1", "Host: localhost", "Content-Length: 0"], "405"),
        (["DELETE / HTTP/1.1", "Host: localhost"], "405"),
    ],
)
def test_what_other_sites_send_is_refused(given: list[str], status: str) -> None:
    async def check(server: Server) -> None:
        assert (await raw(server, *given)).split()[1] == status

    with_server(check)


@pytest.mark.parametrize("lines", [["GARBAGE"], ["GET / HTTP/1.1", "Host: localhost", f"X: {'y' * 100_000}"], ["\0\0\0\0"]])
def test_what_is_no_request_ends_its_connection_and_nothing_else(lines: list[str]) -> None:
    async def check(server: Server) -> None:
        assert (await raw(server, *lines)) == ""
        assert await ask(server) == b"/ {}"

    with_server(check)


def test_without_the_token_nothing_is_answered() -> None:
    async def check(server: Server) -> None:
        for token in (None, "another token of enough bytes", TOKEN + "x"):
            with pytest.raises(Unanswered, match="token"):
                await ask(server, token=token)
        assert await ask(server, token=TOKEN) == b"/ {}"

    with_server(check, TOKEN)


def test_beyond_loopback_a_token_is_required() -> None:
    with pytest.raises(BadInput, match="give a token"):
        Server(read_http_address("0.0.0.0:9400"), page)
    with pytest.raises(BadInput, match="16 bytes"):
        Server(read_http_address("0.0.0.0:9400"), page, "short")
    Server(read_http_address("0.0.0.0:9400"), page, TOKEN)


@pytest.mark.parametrize("text", ["9400", "127.0.0.1", ":9400", "127.0.0.1:99999", "127.0.0.1:-1", "host:١"])
def test_what_is_no_address_is_refused_in_one_sentence(text: str) -> None:
    with pytest.raises(BadInput, match="HOST:PORT"):
        read_http_address(text)


def test_a_thousand_connections_are_refused_and_later_ones_are_served() -> None:
    async def check(server: Server) -> None:
        many = [await asyncio.open_connection(*server.address) for _ in range(1000)]
        assert len(server._connections) <= CONNECTIONS_MAX
        for _, writer in many:
            writer.transport.abort()
        while server._connections:
            await asyncio.sleep(0)
        assert await ask(server) == b"/ {}"

    with_server(check)


def test_whoever_does_not_read_is_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serving, "UNREAD_S", 0.05)

    async def check(server: Server) -> None:
        _, writer = await asyncio.open_connection(*server.address)
        writer.write(b"GET /endless HTTP/1.1\r\nHost: localhost\r\n\r\n")
        await writer.drain()
        while not server._connections:
            await asyncio.sleep(0)
        while server._connections:
            await asyncio.sleep(0.001)
        writer.transport.abort()

    with_server(check)


def test_whoever_sends_nothing_is_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serving, "REQUEST_S", 0.05)

    async def check(server: Server) -> None:
        reader, writer = await asyncio.open_connection(*server.address)
        assert await reader.read() == b""
        writer.transport.abort()

    with_server(check)


def test_a_stream_comes_piece_by_piece() -> None:
    async def check(server: Server) -> None:
        async with aclosing(Client(server.address).stream("/endless")) as pieces:
            assert set(await anext(pieces)) == {ord("x")}

    with_server(check)


def test_an_address_in_use_is_refused_in_one_sentence() -> None:
    async def check(server: Server) -> None:
        with pytest.raises(BadInput, match="cannot listen"):
            await Server(server.address, page).start()

    with_server(check)
