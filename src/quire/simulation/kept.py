"""A simulated node with a journal on a virtual disk: effects that depend on durable records wait until these are synced.

Records saved while the disk is busy are synced together, as by the writer of a live journal. A crash loses some or all unsynced
records, and all effects that waited for them; the next incarnation reads what the journal holds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import Any

from quire.journal.journal import Journal, Point, Recovered
from quire.journal.records import Entry
from quire.protocols.gate import Gate
from quire.protocols.node import Effect, Effects, Node, Save
from quire.simulation.disk import VirtualDisk
from quire.simulation.world import OnNotice, SimulatedHost, World


class KeptHost(SimulatedHost):
    """A node with a journal. `entry` converts a record to a journal entry; `sync_ns` is the duration of a sync."""

    def __init__(
        self,
        world: World,
        node: Node,
        on_notice: OnNotice,
        entry: Callable[[Any], Entry],
        random: Random,
        sync_ns: Callable[[], int],
    ) -> None:
        super().__init__(world, node, on_notice)
        self.syncs = self.checkpoints = 0
        self._entry = entry
        self._random = random
        self._sync_ns = sync_ns
        self._life = 0
        self._new_disk()

    def _new_disk(self) -> None:
        self._disk = VirtualDisk(self._random)
        self._open()

    def _open(self) -> Recovered:
        """Begin a new incarnation of the process; returns what the journal of the earlier one holds."""
        self._life += 1
        self._gate = Gate()
        self._unwritten: list[Entry] = []
        self._syncing = self._in_checkpoint = False
        self._journal, found = Journal.open(self._disk)
        return found

    def act(self, effects: Effects) -> None:
        super().act(self._gate.admit(effects))

    def perform(self, effect: Effect) -> None:
        if not isinstance(effect, Save):
            super().perform(effect)
            return
        self._unwritten.append(self._entry(effect.record))
        if not self._syncing:
            self._write()

    def _write(self) -> None:
        """Write all waiting records to the disk."""
        entries, self._unwritten = self._unwritten, []
        self._syncing = True
        self._journal.append(entries)
        self.world.at(self.world.now + self._sync_ns(), self._synced, (self._life, self._gate.saved))

    def _synced(self, synced: tuple[int, int]) -> None:
        life, number = synced
        if self.gone or life != self._life:
            return
        self._syncing = False
        self.syncs += 1
        self._journal.sync()
        super().act(self._gate.synced(number))
        if self._unwritten and not self._syncing:
            self._write()

    def checkpoint(self, head: Sequence[Entry], chunks: Iterator[bytes]) -> None:
        """Replace the journal by a snapshot, which is read in chunks while the node goes on."""
        if self.gone or self._in_checkpoint:
            return
        self._in_checkpoint = True
        self._read_on((self._life, self._journal.begin(head), chunks, []))

    def _read_on(self, reading: tuple[int, Point, Iterator[bytes], list[bytes]]) -> None:
        life, point, chunks, read = reading
        if self.gone or life != self._life:
            return
        chunk = next(chunks, None)
        if chunk is not None:
            read.append(chunk)
            self.world.at(self.world.now + self._sync_ns(), self._read_on, reading)
            return
        self._journal.keep(point, read)
        self._in_checkpoint = False
        self.checkpoints += 1

    def is_quiet(self) -> bool:
        """Whether no writes are pending."""
        return not self._syncing and not self._unwritten and not self._in_checkpoint

    def on_disk(self) -> Recovered:
        """What a process started now would recover. No writes may be pending."""
        return Journal.open(self._disk)[1]

    def durable(self) -> Recovered:
        """What a process would recover at least that is started after a crash."""
        return Journal.open(self._disk.durable())[1]

    def come_back(self, make: Callable[[Recovered], Node]) -> None:
        """Restart a crashed node with what is left on its disk."""
        self._journal.close()
        self._disk.crash()
        self.begin_again(make(self._open()))

    def come_back_without_disk(self, node: Node) -> None:
        """Restart a crashed node with an empty disk."""
        self._new_disk()
        self.begin_again(node)
