"""The sources of the live view: processes that can be observed over HTTP, or the trace parts that they write.

A source never ends by itself: a process that does not answer may answer again later, also after a restart.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing, suppress
from pathlib import Path
from typing import Protocol

import msgspec

from quire.http.addresses import HttpAddress
from quire.http.client import Client, Unanswered
from quire.live.observing.feed import Observation
from quire.live.observing.status import Status
from quire.model.errors import BadInput
from quire.trace.parts.reader import Part, Piece, Reach
from quire.trace.parts.runs import live_logs, runs_in
from quire.trace.records import COUNT
from quire.trace.tail import Excerpt, numbered_anew
from quire.watch.scene import Scene

LOOK_S = 1.0
"""The interval at which processes are asked for their status, if they have nothing to tell: all at the same time, so that what
they answer fits together."""
PACES_S = (LOOK_S, 2.0, 4.0)
"""Longer intervals, which are multiples of each other, for where looking takes long: the members of a machine that is busy have
better things to do."""
_RESTS = 40
"""Looking takes no more than one part in so many of the time, as long as there is a longer interval."""
_PAUSE_S = 0.2
"""The least time between two such requests, and how long to wait before a connection is tried again."""
_AHEAD_MAX = 8
"""The most requests in a row for more of its trace."""


class Source(Protocol):
    async def follow(self, scene: Scene) -> None:
        """Feed the scene, forever."""


class ObservedProcess:
    """A process that can be observed over HTTP."""

    def __init__(self, address: HttpAddress, token: str | None = None) -> None:
        self._address, self._token = address, token
        self.key = str(address)
        self._told = asyncio.Event()
        """Set when the process tells of something, so that its status and its trace are asked for at once."""

    async def follow(self, scene: Scene) -> None:
        scene.add(self.key)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._look(scene))
            tasks.create_task(self._listen(scene))

    async def _look(self, scene: Scene) -> None:
        client = Client(self._address, self._token)
        loop = asyncio.get_running_loop()
        since = incarnation = 0
        try:
            while True:
                began, pace_s = loop.time(), LOOK_S
                try:
                    scene.stands(self.key, msgspec.json.decode(await client.get("/status"), type=Status))
                    for _ in range(_AHEAD_MAX):
                        body = await client.get(f"/trace?since={since}")
                        excerpt = msgspec.msgpack.decode(body, type=Excerpt)
                        if excerpt.description is not None and excerpt.description.incarnation != incarnation:
                            fresh = since == 0
                            since = 0
                            incarnation = excerpt.description.incarnation
                            scene.begin(self.key, excerpt.description)
                            if not fresh:
                                continue
                        scene.traced(self.key, excerpt, missed=excerpt.first > since)
                        since = excerpt.until
                        if not excerpt.ahead:
                            break
                    pace_s = pace_for(loop.time() - began)
                except Unanswered as error:
                    scene.missing(self.key, str(error))
                except msgspec.DecodeError:
                    scene.missing(self.key, f"{self.key} answers with something else than a process of Quire")
                scene.find(self.key).pace_s = pace_s
                await asyncio.sleep(_PAUSE_S)
                with suppress(TimeoutError):
                    # Not `asyncio.wait_for`, which may forget in Python 3.11 that it was cancelled.
                    async with asyncio.timeout(pace_s - loop.time() % pace_s):
                        await self._told.wait()
                self._told.clear()
        finally:
            client.close()

    async def _listen(self, scene: Scene) -> None:
        client, last_ns = Client(self._address, self._token), 0
        while True:
            try:
                async with aclosing(client.stream("/events")) as pieces:
                    async for event in _observations(pieces):
                        if event.time_ns > last_ns:
                            last_ns = event.time_ns
                            scene.told(self.key, event)
                            self._told.set()
            except (Unanswered, msgspec.DecodeError):
                pass  # Reported by `_look`.
            self._told.set()
            await asyncio.sleep(_PAUSE_S)


def pace_for(took_s: float) -> float:
    """How often to look where that takes so long."""
    return next((pace_s for pace_s in PACES_S if took_s * _RESTS <= pace_s), PACES_S[-1])


async def _observations(pieces: AsyncIterator[bytes]) -> AsyncIterator[Observation]:
    """Parse server-sent events; only their data is used."""
    rest = b""
    async for piece in pieces:
        *lines, rest = (rest + piece).split(b"\n")
        for line in lines:
            if line.startswith(b"data: "):
                yield msgspec.json.decode(line.removeprefix(b"data: "), type=Observation)


class RecordedRun:
    """The trace parts that the processes of a run write, in a directory, or where `quire run` is about to create the run."""

    def __init__(self, path: Path) -> None:
        """Raises BadInput if there is nothing to follow."""
        if (path / "run.json").exists():
            raise BadInput(f"the run in {path} has ended; `quire report {path}` shows it")
        if live_logs(path) is None and not path.parent.is_dir():
            raise BadInput(f"{path} is no directory in which a run is being recorded")
        self._path = path

    def has_begun(self) -> bool:
        return live_logs(self._path) is not None

    async def follow(self, scene: Scene) -> None:
        reached: dict[str, Reach] = {}
        records: dict[str, int] = {}
        while True:
            logs = live_logs(self._path)
            parts = [] if logs is None else await asyncio.to_thread(_parts, logs)
            for part in parts:
                if part.description.stem not in reached:
                    reached[part.description.stem], records[part.description.stem] = Reach(), 0
                    scene.add(_key(part))
                    scene.begin(_key(part), part.description)
            for part in parts:
                self._take(scene, part, reached, records)
            for key in dict.fromkeys(map(_key, parts)):
                scene.is_recorded(key)
            await asyncio.sleep(LOOK_S)

    def _take(self, scene: Scene, part: Part, reached: dict[str, Reach], counts: dict[str, int]) -> None:
        key, stem = _key(part), part.description.stem
        since = reached[stem]
        try:
            until = reached[stem] = part.reach(since)
            pieces = [each for each in part.read(since.bytes, until.bytes) if isinstance(each, Piece)]
        except OSError:
            return  # The run has ended meanwhile, and its parts were removed.
        rows = since.rows
        for piece in pieces:
            first = counts[stem]
            names, records = numbered_anew([(piece.records.tobytes(), piece.names)])
            counts[stem] += len(piece.records)
            excerpt = Excerpt(
                description=part.description, first=first, rows=rows, until=counts[stem], names=names, records=records
            )  # fmt: skip
            scene.traced(key, excerpt, missed=False)
            rows += int(piece.records[:, COUNT].sum())


def _key(part: Part) -> str:
    return part.description.name or str(part.process)


def _parts(logs: Path) -> list[Part]:
    try:
        return list(runs_in(logs)[-1].parts)
    except (OSError, BadInput, IndexError):
        return []
