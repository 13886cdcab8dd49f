"""Writes a journal: appended records are durable once they are synced, and not before.

A checkpoint is made in two steps, so that nothing has to wait while a large state is written. First a new segment is begun,
with those of the earlier records that are still needed; appending goes on there. Then the state of that moment is written next
to it: to a new file, which is synced and renamed. Only then are the earlier segments and snapshot deleted. Whenever the process
dies, the journal reads as before the checkpoint or as after it, and both mean the same.

Nothing is retried here: after a failed write or sync it is unknown what is on the disk, so a journal that failed once refuses
everything. Opening it again finds out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import NamedTuple

from quire.files.errors import reason_of, writing
from quire.journal.disk import Disk
from quire.journal.layout import NEW, log_name, serials, snapshot_name
from quire.journal.reading import Contents, Snapshot, Torn, read_journal
from quire.journal.records import SNAPSHOT, Entry, Record, check_types, encode, encoded_pieces, put_together
from quire.model.errors import CannotWrite

_CHUNK_BYTES = 1 << 20
_UNSYNCED_BYTES_MAX = 8 << 20
"""How much of a snapshot may be unsynced. A sync of the log waits for everything that the disk still has to write, so this is
kept small."""


class Recovered(NamedTuple):
    """What a journal held when it was opened."""

    snapshot: Snapshot | None
    """The application's state; read its `chunks()` before the next checkpoint."""
    records: list[Record]
    """All records since then. Numbers are missing where a checkpoint was not completed: its head only repeated earlier ones."""
    torn: Torn | None
    """What was being written when the process or the machine stopped. It is cut off, because it was never reported as durable.
    A disk that damages the last durable record, which is rare, looks the same."""


class Point(NamedTuple):
    """The beginning of a segment, to which a snapshot will belong."""

    serial: int
    first: int


class Journal:
    """Made by `Journal.open`. Calls block until the disk is done; `keep` may run concurrently with the others, in a thread."""

    def __init__(self, disk: Disk, contents: Contents) -> None:
        segments = contents.segments
        self.last = segments[-1].records[-1].number if segments and segments[-1].records else 0
        """The number of the last record that was appended."""
        self.synced = self.last
        """The number of the last record that is durable."""
        self._disk = disk
        self._serial = segments[-1].serial if segments else 1
        self._sizes = {segment.serial: segment.end for segment in segments} or {1: 0}
        self._failure: CannotWrite | None = None
        self._file = disk.open(log_name(self._serial))

    @classmethod
    def open(cls, disk: Disk) -> tuple[Journal, Recovered]:
        """Open or create a journal, and return what it holds. A torn tail is cut off. Raises JournalCorrupt, and changes
        nothing, if it is damaged before that."""
        contents = read_journal(disk)
        if contents.damage is not None:
            raise contents.damage
        with writing(disk.path):
            # A killed process leaves data that it had written but not synced. It is read now, so it must become durable: the
            # names first, before anything is deleted that they replace.
            disk.sync_names()
            _mend(disk, contents)
            journal = cls(disk, contents)
            journal.sync()
            disk.sync_names()
        return journal, Recovered(contents.snapshot, contents.records(), contents.torn)

    @property
    def size(self) -> int:
        """How many bytes would be read on recovery, besides the snapshot; a checkpoint reduces them."""
        return sum(self._sizes.values())

    def append(self, entries: Sequence[Entry]) -> int:
        """Write records, and return the number of the last. They are durable after the next `sync`."""
        check_types(entries)
        return self.append_encoded(encoded_pieces(self.last + 1, entries), len(entries))

    def append_encoded(self, pieces: Iterable[bytes], count: int) -> int:
        """The same for `count` records that are already encoded, with the next numbers."""
        for data in put_together(pieces):
            with self._writing():
                self._file.write(data)
            self._sizes[self._serial] += len(data)
        self.last += count
        return self.last

    def sync(self) -> int:
        """Return when all records are durable: the number of the last."""
        with self._writing():
            self._file.sync()
        self.synced = self.last
        return self.last

    def begin(self, head: Sequence[Entry]) -> Point:
        """Begin a new segment with these records, which repeat what is still needed of the earlier ones. All are durable
        afterwards. Then `keep` the application's state as of this moment."""
        check_types(head)
        self.sync()
        point = Point(self._serial + 1, self.last + 1)
        data = encode(point.first, [*head, (SNAPSHOT, b"")])
        self._serial = point.serial
        with self._writing():
            before, self._file = self._file, self._disk.open(log_name(point.serial))
            before.close()
            self._file.write(data)
            self._file.sync()
            self._disk.sync_names()
        self._sizes[point.serial] = len(data)
        self.last += len(head) + 1
        self.synced = self.last
        return point

    def keep(self, point: Point, chunks: Iterable[bytes]) -> None:
        """Write the application's state at the beginning of this segment, and delete everything before. Raises CannotWrite;
        then the journal goes on without this checkpoint."""
        name = snapshot_name(point.serial)
        try:
            self._write_snapshot(name + NEW, point.first, chunks)
            self._disk.rename(name + NEW, name)
            self._disk.sync_names()
            names = self._disk.names()
            for serial in serials(names, "snapshot"):
                if serial < point.serial:
                    self._disk.unlink(snapshot_name(serial))
            for serial in serials(names, "log"):
                if serial < point.serial:
                    self._disk.unlink(log_name(serial))
                    self._sizes.pop(serial, None)
        except OSError as error:
            raise CannotWrite(f"cannot write {self._disk.path / name}: {reason_of(error)}") from error

    def close(self) -> None:
        """Stop writing. What was not synced may be lost."""
        self._file.close()

    def _write_snapshot(self, name: str, first: int, chunks: Iterable[bytes]) -> None:
        if name in self._disk.names():
            self._disk.unlink(name)
        file = self._disk.open(name)
        try:
            unsynced = 0
            for number, piece in enumerate(_pieces(chunks), first):
                file.write(encode(number, [(SNAPSHOT, piece)]))
                unsynced += len(piece)
                if unsynced >= _UNSYNCED_BYTES_MAX or not piece:
                    file.sync()
                    unsynced = 0
        except BaseException:
            with suppress(OSError):
                self._disk.unlink(name)
            raise
        finally:
            file.close()

    @contextmanager
    def _writing(self) -> Iterator[None]:
        if self._failure is not None:
            raise self._failure
        try:
            yield
        except OSError as error:
            path = self._disk.path / log_name(self._serial)
            self._failure = CannotWrite(f"cannot write {path}: {reason_of(error)}")
            raise self._failure from error


def _mend(disk: Disk, contents: Contents) -> None:
    """Remove what was not completed, and what is no longer needed."""
    for name in contents.surplus:
        disk.unlink(name)
    if contents.torn is not None and contents.torn.name not in contents.surplus:
        disk.truncate(contents.torn.name, contents.torn.offset)


def _pieces(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """The same bytes in pieces of moderate size, and an empty one as their end."""
    for chunk in chunks:
        for start in range(0, len(chunk), _CHUNK_BYTES):
            yield bytes(chunk[start : start + _CHUNK_BYTES])
    yield b""
