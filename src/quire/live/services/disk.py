"""Write-ahead journal of a node: its records go to disk, and the effects that follow them wait until they are durable."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Generic, TypeVar

import msgspec

from quire.journal.journal import Recovered
from quire.journal.records import TYPES, Entry
from quire.live.events import log
from quire.live.journals import ProcessJournal
from quire.model.errors import CannotWrite, QuireError
from quire.protocols.gate import Gate
from quire.protocols.node import Effect, Effects, Save

Found = TypeVar("Found")
Checkpoint = tuple[Sequence[Entry], Iterator[bytes]]
"""The records with which a journal starts afresh, and the node's state in chunks."""


_CLOCK = 1 + TYPES.index("clock")
_CLOCK_STEP = 1 << 20
"""How far ahead the logical clock is saved: further than it advances between two inputs."""


class _Clock(msgspec.Struct, frozen=True):
    """An upper bound of the process's logical clock."""

    bound: int


_LIFE = 1 + TYPES.index("process")
_OWN = (_CLOCK, _LIFE)


class _Life(msgspec.Struct, frozen=True):
    """A new process, with this incarnation, writes from now on."""

    incarnation: int


class NodeDisk(Generic[Found]):
    """The disk of a node, opened in a running event loop; `read` turns what an earlier process wrote into `found`. `entry`
    encodes a record for the journal."""

    def __init__(self, path: Path, read: Callable[[Recovered], Found], entry: Callable[[Any], Entry]) -> None:
        self.clock = 0
        """A logical time that no earlier process has reached."""
        self._before: int | None = None
        """The incarnation of the last process that wrote here."""

        def split(recovered: Recovered) -> Found:
            found = {
                own: [int.from_bytes(each.body, "little") for each in recovered.records if each.type == own] for own in _OWN
            }
            self.clock = max(found[_CLOCK], default=0)
            self._before = max(found[_LIFE], default=None)
            return read(recovered._replace(records=[each for each in recovered.records if each.type not in _OWN]))

        self._journal = ProcessJournal(path, split)
        self.found = self._journal.found
        self.checkpoint: Callable[[], Checkpoint] | None = None
        """Called for a checkpoint when the journal has grown long."""
        self._entry = entry
        self._gate = Gate()
        self._life: _Life | None = None
        self._soon: asyncio.Handle | None = None

    def begin(self, incarnation: int, perform: Callable[[Effects], None], failed: Callable[[QuireError], None]) -> None:
        """Write from now on. `perform` is called with effects that waited until records were durable."""
        self._life = _Life(incarnation)
        self._journal.begin(lambda number: perform(self._gate.synced(number)), failed)

    def earlier(self, process: int) -> dict[int, int]:
        """The process that wrote here before, if there was one: if this one is killed before it meets another, that shows which
        run it belongs to."""
        return {} if self._before is None else {process: self._before}

    def admit(self, clock: int, effects: Effects) -> Effects:
        """Write the records among these effects; returns the effects that may be performed at once. `clock`: the process's
        logical clock."""
        if clock + _CLOCK_STEP > self.clock:
            self.clock = clock + 2 * _CLOCK_STEP
            effects = [*map(Save, self._own()), *effects]
        before = number = self._gate.saved
        now: list[Effect] = []
        for effect in self._gate.admit(effects):
            if isinstance(effect, Save):
                number += 1
                self._journal.keep(number, self._as_entry(effect))
            else:
                now.append(effect)
        if self._gate.saved > before and self._soon is None:
            # Group commit: all records of this turn of the loop are written together.
            self._soon = asyncio.get_running_loop().call_soon(self._write)
        return now

    def _write(self) -> None:
        self._soon = None
        self._journal.sync()
        if self.checkpoint is not None and self._journal.is_long():
            head, chunks = self.checkpoint()
            head = [*(self._as_entry(Save(record)) for record in self._own()), *head]
            self._journal.begin_anew(head, _now(chunks)).add_done_callback(self._kept)

    def _own(self) -> list[_Clock | _Life]:
        """The records of the process itself, besides those of its node."""
        return [_Clock(self.clock), *([] if self._life is None else [self._life])]

    def _as_entry(self, save: Save) -> Entry:
        match save.record:
            case _Clock(bound):
                return _CLOCK, bound.to_bytes(8, "little")
            case _Life(incarnation):
                return _LIFE, incarnation.to_bytes(8, "little")
            case record:
                return self._entry(record)

    def _kept(self, task: asyncio.Task[None]) -> None:
        """A checkpoint has ended. If the disk had no room for it, the node goes on: there may be room for records, and if not,
        writing them fails."""
        if not task.cancelled() and isinstance(error := task.exception(), CannotWrite):
            log.warning("event=unkept why=%r", str(error))

    @property
    def full(self) -> bool:
        """Whether so much waits for the disk that no more input should be taken."""
        return self._journal.full

    async def close(self) -> None:
        if self._soon is not None:
            self._soon.cancel()
        await self._journal.close()


async def _now(chunks: Iterator[bytes]) -> Iterator[bytes]:
    return chunks
