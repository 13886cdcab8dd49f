"""Live groups that run while something is done to them."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
import uvloop

from quire.cli.keys import write_certificates
from quire.live import Certificates, Group
from quire.live.network_options import Network
from quire.live.settings import Settings, read_settings
from quire.model.messages import Message
from quire.protocols.registry import PROTOCOLS
from quire.views.core import FIXED_UNLESS_ASKED, IN_VIEWS
from tests.kit.patience import PATIENCE_S

LOOPS: Mapping[str, Callable[[], asyncio.AbstractEventLoop]] = {
    "asyncio": asyncio.new_event_loop,
    "uvloop": uvloop.new_event_loop,
}
FIXED = [name for name in PROTOCOLS if name not in IN_VIEWS or name in FIXED_UNLESS_ASKED]
"""The protocols whose groups are fixed."""
SECRET = "correct horse battery staple"


def run(main: Coroutine[Any, Any, None], loop: str = "asyncio", seconds: float = PATIENCE_S) -> None:
    with asyncio.Runner(loop_factory=LOOPS[loop]) as runner:
        runner.run(asyncio.wait_for(main, seconds))


def made_of(addresses: Sequence[str], me: int, **chosen: Any) -> Settings:
    """The settings of one member of a fixed group, which waits for the others no longer than they may be silent. What `join`
    does not offer is replaced afterwards."""
    chosen = dict[str, Any](group="test", protocol="two-phase", timeout_s=5.0) | chosen
    chosen.setdefault("join_s", chosen["timeout_s"])
    extra = {name: chosen.pop(name) for name in ("handshake_s", "link_bytes_max", "inbox_messages_max") if name in chosen}
    network = Network(**{name: chosen.pop(name) for name in Network.__struct_fields__ if name in chosen})
    return msgspec.structs.replace(read_settings(chosen.pop("group"), me, addresses, network=network, **chosen), **extra)


def in_memory(me: int, **chosen: Any) -> Group:
    """One of two members that talk through memory, for virtual time: that passes only when nobody has anything to do."""
    where = ["127.0.0.1:7000", "127.0.0.1:7001"]
    return Group(made_of(where, me, transport="memory", **chosen))


class Chat:
    """Members that talk all the time, until it is over."""

    def __init__(self, groups: Sequence[Group]) -> None:
        self.groups = groups
        self.logs: list[list[Message]] = [[] for _ in groups]
        self._progress = asyncio.Event()
        self._tasks = [asyncio.ensure_future(self._listen(group, log)) for group, log in zip(groups, self.logs, strict=True)]
        self._talking = asyncio.ensure_future(self._talk())

    async def goes_on(self, more: int = 20) -> None:
        """Wait until every member has delivered so many more messages."""
        goals = [len(log) + more for log in self.logs]
        async with asyncio.timeout(PATIENCE_S):
            while any(len(log) < goal for log, goal in zip(self.logs, goals, strict=True)):
                for task in self._tasks:
                    if task.done():
                        task.result()
                self._progress.clear()
                await self._progress.wait()

    async def end(self) -> None:
        """Close all members; everything that was sent was delivered everywhere, in the same order."""
        self._talking.cancel()
        await asyncio.gather(*(group.close() for group in self.groups))
        await asyncio.gather(*self._tasks)
        first = self.logs[0]
        assert all(log == first for log in self.logs)
        for member in range(len(self.groups)):
            numbers = [message.seq for message in first if message.origin == member]
            assert numbers == list(range(len(numbers)))

    async def _talk(self) -> None:
        while True:
            for group in self.groups:
                await group.multicast(b"still here")
            await asyncio.sleep(0.001)

    async def _listen(self, group: Group, log: list[Message]) -> None:
        try:
            async for message in group:
                log.append(message)
                self._progress.set()
        finally:
            self._progress.set()


@asynccontextmanager
async def chatting(settings: Sequence[Settings]) -> AsyncIterator[Chat]:
    """A group of these members that goes on delivering until the end of the block, and still does then."""
    async with AsyncExitStack() as stack:
        groups = [Group(one) for one in settings]
        await asyncio.gather(*(stack.enter_async_context(group) for group in groups))
        chat = Chat(groups)
        await chat.goes_on()
        yield chat
        await chat.goes_on()
        await chat.end()


@pytest.fixture(scope="session")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Certificates for three members of the group `test`."""
    directory = tmp_path_factory.mktemp("certificates")
    write_certificates(directory, "test", range(3), 1)
    return directory


def trusted(kind: str, folders: Path, me: int) -> dict[str, Any]:
    """What a member is given to be secured in this way."""
    match kind:
        case "secret":
            return {"secret": SECRET}
        case "tls":
            return {"certificates": Certificates.of(folders / f"member-{me}")}
        case _:
            return {}


async def crash(group: Group) -> None:
    """Have a member end as a process does that is killed: its connections are closed, nobody listens, and nothing is said."""
    group._mesh._liveness.over = True
    await group._mesh.stop()


def events(caplog: pytest.LogCaptureFixture, event: str) -> list[str]:
    """The lines of the log about this kind of event."""
    return [record.getMessage() for record in caplog.records if re.search(rf"event={event}\b", record.getMessage())]
