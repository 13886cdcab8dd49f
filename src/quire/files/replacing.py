"""Atomically writes output to a directory: whole or not at all, and replacing only earlier output of the same kind.

New output is made next to its target, and moved there when it is complete. Where there is output already, `--force` replaces
the files that it consists of, according to its own description; every other file in the directory stays. If the process is
interrupted or dies meanwhile, either the old output is there or the new one, and the next process that writes to the directory
cleans up.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from quire.files.errors import writing
from quire.files.scratch import MOVING, NEW, OLD, Scratch, files_under, move_files, settle, sweep
from quire.model.errors import BadInput

Parts = Callable[[Path], Sequence[str]]
"""Returns the names of the files that the output in a directory consists of: first the one that describes it, without which it
does not count as output. Raises BadInput, in one sentence, where the directory holds no output of this kind."""


def check_replaceable(target: Path, parts: Parts, what: str, *, force: bool) -> None:
    """Refuse a target that exists, unless it is to be replaced and holds output of this kind (or nothing)."""
    if not os.path.lexists(target):
        return
    if not force:
        raise BadInput(f"{target} exists already; choose another name, or use --force to replace it")
    if not target.is_dir():
        raise BadInput(f"{target} is not {what}, so it will not be replaced: it is not a directory")
    with writing(target):
        sweep(target)
        if any(target.iterdir()):
            _parts_of(target, parts, what)


def _parts_of(target: Path, parts: Parts, what: str) -> list[str]:
    try:
        names = list(parts(target))
    except BadInput as error:
        raise BadInput(f"{target} is not {what}, so it will not be replaced: {error}") from error
    for folder in {folder for name in names for folder in Path(name).parents}:
        if folder.parts and (target / folder).is_symlink():
            raise BadInput(f"{target} will not be replaced: {target / folder} is a link to files elsewhere")
    return names


def scratch_for(target: Path) -> Scratch:
    """A scratch directory for what is to become the target, on the same disk."""
    target = target.absolute()
    # Inside the target directory, if it exists: it may be on a volume of its own, to which nothing can be moved from outside.
    home = target if target.is_dir() else target.parent
    home.mkdir(parents=True, exist_ok=True)
    return Scratch(home, f".{target.name}.")


class Staging:
    """Where new output is made: write its files under `path`, then `publish` it. Used in `with`, it cleans up after itself."""

    def __init__(self, target: Path, parts: Parts, what: str, *, force: bool) -> None:
        check_replaceable(target, parts, what, force=force)
        self._shown, self._target = target, target.absolute()
        self._parts, self._what = parts, what
        with writing(target):
            self._scratch = scratch_for(target)
            self.path = self._scratch.path / NEW
            self.path.mkdir()

    def __enter__(self) -> Staging:
        return self

    def __exit__(self, *_: object) -> None:
        self._scratch.remove()

    def publish(self) -> None:
        """Put the complete output where it belongs."""
        with writing(self._shown):
            if self._scratch.home != self._target:
                os.rename(self.path, self._target)
                return
            with locked(self._target):
                exchange(self._scratch, self._old_parts())

    def _old_parts(self) -> list[str]:
        own = self._scratch.path.name
        old = (
            [] if [entry.name for entry in self._target.iterdir()] == [own] else _parts_of(self._shown, self._parts, self._what)
        )
        for name in files_under(self.path):
            if name not in old and os.path.lexists(self._target / name):
                raise BadInput(
                    f"{self._shown} will not be replaced: {name} in it is not part of {self._what}; move it elsewhere"
                )
        return old


def exchange(scratch: Scratch, old: list[str]) -> None:
    """Move the files in `NEW` of a scratch directory into its home, replacing the old files, which are deleted with the scratch
    directory. The describing file is removed first and added last, so that nobody reads half of either output."""
    moving = scratch.path / MOVING
    try:
        moving.mkdir()
        move_files(scratch.home, moving, old)
        moving.rename(scratch.path / OLD)
        move_files(scratch.path / NEW, scratch.home)
    except BaseException:
        settle(scratch.path)
        raise


@contextmanager
def locked(directory: Path) -> Iterator[None]:
    """Lock a directory, so that only one process at a time changes it."""
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
