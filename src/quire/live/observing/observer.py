"""The HTTP pages of a running process: metrics, status, events, and the most recent part of its trace.

GET /metrics   counters and gauges, in the text format of Prometheus
GET /status    the present status, as JSON
GET /events    server-sent events, beginning with the oldest that is kept, or with ?since=NUMBER
GET /trace     the records of its trace from ?since=NUMBER on, as MessagePack (`quire.trace.tail`), without payloads
"""

from __future__ import annotations

from collections.abc import AsyncGenerator

import msgspec

from quire.http.addresses import HttpAddress, read_http_address
from quire.http.guard import Refusal
from quire.http.server import Answer, Request, Server
from quire.live.events import Event, Listener, log
from quire.live.network_options import Network
from quire.live.observing.feed import Feed
from quire.live.observing.status import Observed
from quire.trace.tail import TraceTail

_JSON = "application/json"
_PROMETHEUS = "text/plain; version=0.0.4; charset=utf-8"


class Observer:
    """The HTTP server of one process. Raises BadInput for an address that other machines can reach, if there is no token."""

    def __init__(self, address: HttpAddress, token: str | None = None, on_event: Listener | None = None) -> None:
        self.tail = TraceTail()
        self.feed = Feed()
        self._on_event = on_event
        self._server = Server(address, self._answer, token)
        self._observed: Observed | None = None

    @property
    def address(self) -> HttpAddress:
        """Where it answers, once it has started."""
        return self._server.address

    async def start(self, observed: Observed, name: str) -> None:
        """Serve the pages of this process; raises BadInput where it cannot listen at the address."""
        self._observed = observed
        await self._server.start()
        log.info("member=%s event=observed at=%s", name, self.address)

    async def stop(self) -> None:
        self.feed.tell("ended")
        await self._server.stop()

    def listen(self, event: Event) -> None:
        """Add an operational event to the feed, and pass it on to the application's listener."""
        self.feed.tell(event.kind, tuple(map(str, event.peers)), for_s=event.for_s, why=event.why)
        if self._on_event is not None:
            self._on_event(event)

    async def _answer(self, request: Request) -> Answer:
        assert self._observed is not None
        match request.path:
            case "/metrics":
                return Answer(self._observed.metrics().encode(), _PROMETHEUS)
            case "/status":
                return Answer(msgspec.json.encode(self._observed.status()), _JSON)
            case "/events":
                return Answer(self._events(_number(request, "since")), "text/event-stream")
            case "/trace":
                return Answer(msgspec.msgpack.encode(self.tail.excerpt(_number(request, "since"))), "application/msgpack")
            case _:
                raise Refusal(404, "there are /metrics, /status, /events and /trace")

    async def _events(self, since: int) -> AsyncGenerator[bytes, None]:
        async for found in self.feed.listen(since):
            if not found:
                yield b": nothing new\n\n"
            for each in found:
                # JSON has no line breaks of its own, so that one line holds it.
                yield b"id: %d\nevent: %b\ndata: %b\n\n" % (each.number, each.kind.encode(), msgspec.json.encode(each))


def observer_of(network: Network) -> Observer | None:
    """The observer that the options ask for, if any; raises BadInput where they are invalid."""
    if network.observe is None:
        return None
    return Observer(read_http_address(network.observe), network.observe_token, network.on_event)


def _number(request: Request, name: str) -> int:
    text = request.query.get(name, "0")
    if not (text.isascii() and text.isdecimal() and len(text) < 19):
        raise Refusal(400, f"{name} is a number, not {text!r}")
    return int(text)
