"""The file operations that a journal needs, as an interface, and their implementation on a directory of this machine.

Everything else here works on a `Disk`, so that the simulator can provide one that loses power, tears writes or is full. Only
the contents of a file when it was synced, and the names when those were synced, are sure to survive a crash.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Protocol, Self

from quire.files.errors import writing
from quire.journal.layout import is_journal
from quire.journal.lock import Lock
from quire.model.errors import BadInput

_DIRECTORY_MODE, _FILE_MODE = 0o700, 0o600
"""A journal holds messages, so no other user may read it."""

# fdatasync, where it exists, is enough: it syncs the data and the length of the file.
_sync = getattr(os, "fdatasync", os.fsync)


class File(Protocol):
    """A file that grows."""

    def write(self, data: bytes) -> None:
        """Append all of these bytes. If it raises OSError, any number of them may have been written."""

    def sync(self) -> None:
        """Return when everything that was written is durable. If this fails, it is unknown what is: write no more."""

    def close(self) -> None: ...


class Disk(Protocol):
    """One directory. Everything raises OSError where the system refuses."""

    @property
    def path(self) -> Path:
        """The path, for people."""

    def names(self) -> list[str]: ...

    def size(self, name: str) -> int: ...

    def read(self, name: str, offset: int, size: int) -> bytes:
        """`size` bytes from `offset` on; fewer at the end of the file."""

    def open(self, name: str) -> File:
        """A file to be written at its end; it is made if there is none."""

    def truncate(self, name: str, size: int) -> None:
        """Cut the file to this size, durably."""

    def rename(self, old: str, new: str) -> None: ...

    def unlink(self, name: str) -> None: ...

    def sync_names(self) -> None:
        """Return when the set of files and their names is durable."""


class Directory:
    """A directory of this machine, to be read."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def names(self) -> list[str]:
        return sorted(os.listdir(self.path))

    def size(self, name: str) -> int:
        return (self.path / name).stat().st_size

    def read(self, name: str, offset: int, size: int) -> bytes:
        with (self.path / name).open("rb") as file:
            file.seek(offset)
            return file.read(size)

    def open(self, name: str) -> File:
        return _GrowingFile(self.path / name)

    def truncate(self, name: str, size: int) -> None:
        with (self.path / name).open("r+b") as file:
            file.truncate(size)
            os.fsync(file.fileno())

    def rename(self, old: str, new: str) -> None:
        os.rename(self.path / old, self.path / new)

    def unlink(self, name: str) -> None:
        os.unlink(self.path / name)

    def sync_names(self) -> None:
        sync_directory(self.path)


class OwnDirectory(Directory):
    """A directory of this machine, locked against other writers until it is closed. It is made if there is none. Raises
    BadInput where another process has it, or it holds anything but a journal."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        with writing(path):
            if not path.is_dir():
                made = [each for each in (path.absolute(), *path.absolute().parents) if not each.exists()]
                path.mkdir(mode=_DIRECTORY_MODE, parents=True)
                for each in made:
                    sync_directory(each.parent)
            if (names := self.names()) and not is_journal(names):
                raise BadInput(f"{path} is not a journal, because it holds other files; name a new directory")
            self._lock = Lock(path)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._lock.release()


class _GrowingFile:
    def __init__(self, path: Path) -> None:
        self._descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, _FILE_MODE)

    def write(self, data: bytes) -> None:
        left = memoryview(data)
        while left:
            left = left[os.write(self._descriptor, left) :]

    def sync(self) -> None:
        _sync(self._descriptor)

    def close(self) -> None:
        os.close(self._descriptor)


def sync_directory(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
