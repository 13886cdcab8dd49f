"""New output in a directory: whole or not at all, and in the place of nothing but earlier output of the same kind.

What is made here is made beside its target, and moved there when it is complete. Where there is something already, `--force`
replaces the files that it consists of, by its own description; every other file in the directory stays. If the process is
interrupted or dies meanwhile, the old output is there or the new one, and what is under way is settled by whoever writes
to the directory next.
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
"""The files of which the output in a directory consists, by their names in it: first the one that describes it, without which
nobody takes it for output. Raises BadInput, in one sentence, where the directory holds no output of this kind."""


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
    # Inside of a directory that is there: it may be a volume of its own, which nothing can be moved into.
    home = target if target.is_dir() else target.parent
    home.mkdir(parents=True, exist_ok=True)
    return Scratch(home, f".{target.name}.")


class Staging:
    """Where new output is made: write its files under `path`, then `publish` it. Used in `with`, it leaves nothing else."""

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
    """Put what is in `NEW` of a scratch directory into its home, in the place of the old files, which go with the scratch
    directory. What describes them goes first and comes last, so that nobody reads half of either."""
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
    """Only one process at a time changes what is in a directory."""
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
