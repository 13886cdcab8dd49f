"""Scratch directories for work in progress, removed when it ends or, after a crash, when the next process begins.

Each has a file that is locked for as long as its process lives. So leftovers are told from work in progress by a lock that
nobody holds, and not by a name or a process id, which can both be reused.

A scratch directory inside a directory that is being changed may hold files that were moved out of it. None of them is lost if
the process dies: files in `MOVING` are to be moved back, and once it is renamed to `OLD`, all files in `NEW` are to be moved
into place.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

MARK = ".quire-scratch"
NEW, MOVING, OLD = "new", "moving", "old"

_NAMES = (".", "quire-")
"""How the names of scratch directories begin, so that not all of a large directory has to be checked."""


class Scratch:
    """A new scratch directory at `path`, until it is removed. Leftovers in the same home are removed first."""

    def __init__(self, home: Path, prefix: str) -> None:
        assert prefix.startswith(_NAMES), "nobody would find it when it is left behind"
        sweep(home)
        self.home = home
        self.path = Path(tempfile.mkdtemp(prefix=prefix, dir=home))
        # Also cleans up if the process is interrupted before `with` is entered: this runs at the end of the process.
        self._end = weakref.finalize(self, _remove_own, self.path, os.getpid())
        try:
            unlocked = self.path / f"{MARK}.unlocked"
            self._lock = unlocked.open("w")
            fcntl.flock(self._lock, fcntl.LOCK_EX)
            unlocked.rename(self.path / MARK)  # The mark is never visible without its lock.
        except BaseException:
            self._end()
            raise

    @classmethod
    def temporary(cls, what: str) -> Scratch:
        """A scratch directory in this machine's directory for temporary files."""
        return cls(Path(tempfile.gettempdir()), f"quire-{what}-")

    def __enter__(self) -> Scratch:
        return self

    def __exit__(self, *_: object) -> None:
        self.remove()

    def remove(self) -> None:
        """Remove it, after the files that were moved out of its home are back. If that fails, it stays, with its contents."""
        self._end()
        self._lock.close()


def _remove_own(path: Path, process: int) -> None:
    if process != os.getpid():
        return  # This is a forked copy of the process that made it, which still uses it.
    with suppress(OSError):
        settle(path)
        _remove_directory(path)


def sweep(home: Path) -> None:
    """Remove the scratch directories that killed processes have left in a directory. What cannot be removed stays."""
    with suppress(OSError), os.scandir(home) as entries:
        names = [entry.name for entry in entries if entry.name.startswith(_NAMES) and entry.is_dir(follow_symlinks=False)]
        for name in names:
            with suppress(OSError), _left_behind(home / name) as mine:
                if mine:
                    settle(home / name)
                    _remove_directory(home / name)


@contextmanager
def _left_behind(path: Path) -> Iterator[bool]:
    """Whether this is a scratch directory of ours whose process is gone; while this is checked, nobody else claims it."""
    try:
        descriptor = os.open(path / MARK, os.O_RDWR | os.O_NOFOLLOW)
    except OSError:
        yield False
        return
    with os.fdopen(descriptor) as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            yield False
            return
        # Another user might have prepared it, to make us move or remove files that they have no rights to.
        owners = {os.fstat(file.fileno()).st_uid, path.lstat().st_uid}
        yield owners == {os.geteuid()} and (path / MARK).exists()


def settle(scratch: Path) -> None:
    """Move files that were moved out of the scratch directory's home to where they belong."""
    home = scratch.parent
    if (scratch / OLD).is_dir():
        move_files(scratch / NEW, home)
    elif (scratch / MOVING).is_dir():
        move_files(scratch / MOVING, home)


def move_files(source: Path, target: Path, names: list[str] | None = None) -> None:
    """Move files, by their names under `source`, to the same names under `target`. If no names are given, all of them, those at
    the top level last, because the file that describes the others is there. Directories that become empty are removed."""
    for name in reversed(files_under(source)) if names is None else names:
        for folder in reversed(Path(name).parents):
            if not (target / folder).is_dir():
                (target / folder).mkdir(mode=(source / folder).stat().st_mode & 0o777)
        os.rename(source / name, target / name)
        _prune(source, Path(name).parent)


def files_under(root: Path) -> list[str]:
    """Everything in a directory tree that is not a directory, by its name under the root, from the top."""
    found: list[str] = []
    for directory, folders, files in os.walk(root):
        folders.sort()
        linked = [name for name in folders if Path(directory, name).is_symlink()]
        found += [str(Path(directory, name).relative_to(root)) for name in sorted([*files, *linked])]
    return found


def _prune(root: Path, folder: Path) -> None:
    with suppress(OSError):
        while folder.parts:
            (root / folder).rmdir()
            folder = folder.parent


def _remove_directory(path: Path) -> None:
    """Remove a scratch directory, its mark last, so that it can be found if this is interrupted."""
    for child in path.iterdir():
        if child.name == MARK:
            continue
        if child.is_dir() and not child.is_symlink():
            shutil.rmtree(child, ignore_errors=True)
        else:
            child.unlink(missing_ok=True)
    (path / MARK).unlink(missing_ok=True)
    path.rmdir()
