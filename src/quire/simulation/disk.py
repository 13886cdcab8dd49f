"""A simulated disk for journals: it loses and tears unsynced data in a crash, fills up, and fails.

What a crash leaves is drawn from a seeded random stream, so it can be replayed. Synced data is never lost, and a truncated file
stays truncated: nobody can survive a disk that lies about that.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

_SECTOR_BYTES = 512


class PowerFailed(BaseException):
    """The machine stopped in the middle of an operation. Not an Exception, so that no handler on the way catches it."""


@dataclass
class _Content:
    data: bytearray = field(default_factory=bytearray)
    synced: int = 0


_Names = dict[str, _Content]
_Change = Callable[[_Names], object]


class VirtualDisk:
    """One directory, as a journal needs it (`quire.journal.disk.Disk`)."""

    def __init__(self, random: Random, path: Path = Path("disk"), *, reorders: bool = False) -> None:
        self.path = path
        self.capacity: int | None = None
        """How many bytes there is room for."""
        self.failing: int | None = None
        """The error number with which everything that changes something fails from now on."""
        self.steps = 0
        """How many operations have changed something, or tried."""
        self.power_fails_at: int | None = None
        """The step during which power fails; nothing works afterwards, until `crash`."""
        self._random = random
        self._reorders = reorders
        """Whether a crash may keep later unsynced sectors and lose earlier ones."""
        self._names: _Names = {}
        self._synced_names: _Names = {}
        self._changes: list[_Change] = []
        """The changes to the directory since it was last synced."""

    def crash(self) -> None:
        """The machine loses power and comes back: synced data is there, and some of the rest."""
        names = dict(self._synced_names)
        for change in self._changes:
            if self._random.random() < 0.5:
                change(names)
        for content in {id(content): content for content in names.values()}.values():
            self._tear(content)
        self._names, self._synced_names, self._changes = names, dict(names), []
        self.power_fails_at = None

    def durable(self) -> VirtualDisk:
        """Another disk with what a crash would leave at least."""
        names = {name: _Content(content.data[: content.synced], content.synced) for name, content in self._synced_names.items()}
        other = VirtualDisk(self._random, self.path)
        other._names, other._synced_names = names, dict(names)
        return other

    def _tear(self, content: _Content) -> None:
        tail = bytes(content.data[content.synced :])
        kept = bytearray(tail[: self._random.choice((0, len(tail), self._random.randint(0, len(tail))))])
        torn = self._random.randint(0, min(len(kept), _SECTOR_BYTES))
        if torn and self._random.random() < 0.5:
            kept[-torn:] = self._random.choice((bytes, self._random.randbytes))(torn)
        if tail and self._random.random() < 0.2:
            kept += bytes(self._random.randint(1, _SECTOR_BYTES))
        if self._reorders and kept:
            lost = _SECTOR_BYTES * self._random.randrange(-(-len(kept) // _SECTOR_BYTES))
            kept[lost : lost + _SECTOR_BYTES] = bytes(len(kept[lost : lost + _SECTOR_BYTES]))
        content.data[content.synced :] = kept
        content.synced = len(content.data)

    def names(self) -> list[str]:
        return sorted(self._names)

    def size(self, name: str) -> int:
        return len(self._content(name).data)

    def read(self, name: str, offset: int, size: int) -> bytes:
        return bytes(self._content(name).data[offset : offset + size])

    def open(self, name: str) -> VirtualFile:
        if name not in self._names:
            self._step()
            content = _Content()
            self._change(lambda names: names.update({name: content}))
        return VirtualFile(self, self._names[name])

    def truncate(self, name: str, size: int) -> None:
        self._step()
        content = self._content(name)
        del content.data[size:]
        content.synced = len(content.data)

    def rename(self, old: str, new: str) -> None:
        self._step()
        content = self._content(old)

        def renamed(names: _Names) -> None:
            names.pop(old, None)
            names[new] = content

        self._change(renamed)

    def unlink(self, name: str) -> None:
        self._step()
        self._content(name)
        self._change(lambda names: names.pop(name, None))

    def sync_names(self) -> None:
        self._step()
        self._synced_names, self._changes = dict(self._names), []

    def _change(self, change: _Change) -> None:
        change(self._names)
        self._changes.append(change)

    def _content(self, name: str) -> _Content:
        if name not in self._names:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), name)
        return self._names[name]

    def _step(self) -> None:
        if self.power_fails_at is not None and self.steps >= self.power_fails_at:
            raise PowerFailed
        self.steps += 1
        if self.failing is not None:
            raise OSError(self.failing, os.strerror(self.failing))

    def _room(self) -> int | None:
        return None if self.capacity is None else self.capacity - sum(len(content.data) for content in self._names.values())


class VirtualFile:
    def __init__(self, disk: VirtualDisk, content: _Content) -> None:
        self._disk = disk
        self._content = content

    def write(self, data: bytes) -> None:
        disk = self._disk
        try:
            disk._step()
        except PowerFailed:
            self._content.data += data[: disk._random.randint(0, len(data))]
            raise
        room = disk._room()
        if room is not None and len(data) > room:
            self._content.data += data[: max(room, 0)]
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self._content.data += data

    def sync(self) -> None:
        self._disk._step()
        self._content.synced = len(self._content.data)

    def close(self) -> None:
        """Closing does not make anything durable."""
