"""Recording: how a live process writes its part of a run's trace, from the start of its group to its end.

The caller provides the identity of the run, and what a service reports at its end. The part is begun when the group has
started, because only then is it known which processes this one is linked with, which distinguishes the parts of one run from
those of another. It ends with the reason if the process left early or its group failed. Of a process that crashes, the part has
what was written by then: at most SPILL_S seconds are missing.

If the disk is full, the group goes on without being recorded, and the application is told.

Where the process can be observed while it runs, the most recent events stay in memory too, whether or not there is a part.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path

import msgspec

from quire.live import clock
from quire.live.events import Event, Reporter
from quire.live.spool import Spool
from quire.model.errors import BadInput
from quire.trace.log import Address, EventLog
from quire.trace.parts.description import PartEnd, RunIdentity, describe_part, read_clock
from quire.trace.parts.writer import PartWriter
from quire.trace.relay_load import RelayLoad
from quire.trace.tail import TraceTail

LEFT_EARLY = "the process left before its group was closed"

SPILL_S = 0.2
"""How long it may take until an event is in the file, where others follow it."""
SPILL_RECORDS = 1 << 14
"""How many records may wait for that."""


class Recording:
    """Used once. `log` takes events from the beginning; they are written from `begin` on."""

    def __init__(
        self,
        directory: Path | None,
        identity: RunIdentity,
        process: int,
        addresses: Iterable[Address] = (),
        wall_ns: Callable[[], int] = clock.wall_ns,
        *,
        name: str = "",
        at_once: bool = False,
        tail: TraceTail | None = None,
    ) -> None:
        """`directory`: where the part goes; None: there is none. `wall_ns`: the clock for the times of events. `name`: the name
        of this process in the group, if it is not known by its number. `at_once`: whether `keep_up` writes everything, so that
        nothing is missing when the process is killed. `tail`: where the most recent events are kept for observers. Raises
        BadInput where the directory cannot be written to."""
        self.log = EventLog(process, addresses)
        self.wall_ns = wall_ns
        self.details: Callable[[], Mapping[str, object]] = dict
        """Returns what only this process can report about the run; called at its end."""
        self.relay_load: Callable[[], RelayLoad | None] = lambda: None
        self.failure = ""
        """Why some of the events are not in the part; empty if all are."""
        self._directory = directory
        self._identity = identity
        self._name = name
        self._at_once = at_once and directory is not None
        self._tail = tail
        self._part: PartWriter | None = None
        self._spool: Spool | None = None
        self._regularly: asyncio.Task[None] | None = None
        self._report: Reporter | None = None
        if directory is None:
            return
        try:
            directory.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise BadInput(f"cannot write a trace to {directory}: {error.strerror}") from error
        if not os.access(directory, os.W_OK | os.X_OK):
            raise BadInput(f"cannot write a trace to {directory}: permission denied")

    def begin(self, incarnation: int, peers: Mapping[int, int], report: Reporter) -> None:
        """The group has started, and this process is linked to these incarnations of others."""
        self._report = report
        description = describe_part(self._identity, self.log.process, incarnation, peers, self._name)
        if self._directory is not None:
            try:
                self._part = PartWriter(self._directory, description)
            except OSError as error:
                self._failed(error)
                if self._tail is None:
                    return
        if self._tail is not None:
            self._tail.begin(description)
            self._tail.flush = self._spill
        self._spool = Spool(self.log, self._part, tail=self._tail, at_once=self._at_once)
        self._regularly = asyncio.get_running_loop().create_task(self._spill_regularly())

    def meet(self, met: Iterable[tuple[int, int]]) -> None:
        """This process communicates with these incarnations of others."""
        if self._part is not None and not self.failure:
            try:
                self._part.meet(met)
            except OSError as error:
                self._failed(error)

    def keep_up(self) -> None:
        """To be called when something was recorded, so that little of it waits in memory."""
        if self._at_once or self.log.pending() > SPILL_RECORDS:
            self._spill()

    async def end(self, failure: str = "") -> None:
        """Nothing more happens; return when all is written. `failure`: why the process ends before its group, or its group
        before everything was delivered. Calling it again does nothing."""
        if self._regularly is None or self._spool is None:
            return
        self._regularly.cancel()
        with suppress(asyncio.CancelledError):
            await self._regularly
        self._regularly = None
        self.log.settle_rest()
        self._spill()
        details = msgspec.to_builtins(dict(self.details()))
        end = PartEnd(clock=read_clock(), failure=failure, details=details, relay_load=self.relay_load())
        await asyncio.get_running_loop().run_in_executor(None, self._spool.finish, end)
        self._check()

    def _spill(self) -> None:
        if self._spool is None:
            self.log.take()
        else:
            self._spool.spill()
            self._check()

    def _check(self) -> None:
        if self._spool is not None and self._spool.error is not None and not self.failure:
            self._failed(self._spool.error)

    def _failed(self, error: OSError) -> None:
        self.failure = f"the trace in {self._directory} is not complete: {error.strerror or error}"
        if self._report is not None:
            self._report(Event("unrecorded", (), why=self.failure))

    async def _spill_regularly(self) -> None:
        while True:
            await asyncio.sleep(SPILL_S)
            self._spill()
