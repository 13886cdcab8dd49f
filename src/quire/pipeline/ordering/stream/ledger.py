"""The ledger of a streaming order: commits its state atomically, one micro-batch at a time.

One file holds the whole state: how far each source was heard, which events wait in which rows of which files, and which files
the micro-batch has written. Renaming that file is the commit. Before the commit, output files have temporary names that nobody
reads, so a process that dies leaves only files that the next one removes. After the commit, the output files only need their
final names, in order; if the process dies meanwhile, the next one renames the rest. So the readable files are a prefix of the
order at every moment, and if Spark repeats a micro-batch because it does not know that it was done, it is found to be done.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

import msgspec

from quire.model.errors import BadInput
from quire.pipeline.fingerprints import new_secret
from quire.pipeline.ordering.reading import Format
from quire.pipeline.ordering.stream.departed import Names
from quire.pipeline.ordering.stream.frontier import NEVER_HEARD
from quire.pipeline.ordering.stream.intake import Open, Waiting
from quire.pipeline.ordering.stream.options import FollowingOrder, OrderOptions, TotalOrder

REJECTED = "_rejected"
"""The directory of rejected events, in the output directory. Spark ignores it when it reads the events."""
_CHECKPOINT = "_checkpoint"


class Written(msgspec.Struct, frozen=True):
    """A file of events: its temporary and its final name in the output directory."""

    staged: str
    final: str


class State(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that a micro-batch passes on to the next."""

    batch: int
    options: OrderOptions
    form: Format
    marks: tuple[int, ...]
    """Total order: the latest clock of each source. Causal order: how many events of each source have left."""
    open: tuple[Open | None, ...]
    left: int = 0
    """How many events have left in total, which is the next position."""
    rejected: int = 0
    omitted: int = 0
    """How many superseded writes were omitted."""
    missing: int = 0
    """How many references to events that never arrived were ignored at the end."""
    names: tuple[Names, ...] = ()
    """Where events name what they follow: the names of all that have left."""
    secret: int = 0
    """Of the fingerprints of these names."""
    waiting: tuple[Waiting, ...] = ()
    written: tuple[Written, ...] = ()
    """The files that this micro-batch wrote, events first."""

    def waiting_events(self) -> int:
        return sum(part.rows - part.start for part in self.waiting)


def first_state(options: OrderOptions, form: Format) -> State:
    start = NEVER_HEARD if isinstance(options, TotalOrder) else 0
    count = len(options.sources)
    secret = new_secret() if isinstance(options, FollowingOrder) else 0
    return State(batch=-1, options=options, form=form, marks=(start,) * count, open=(None,) * count, secret=secret)


class Ledger:
    """Reads and commits the states of one output directory."""

    def __init__(self, out: Path) -> None:
        self.out = out
        self.spark_checkpoint = out / _CHECKPOINT / "spark"
        self.waiting = out / _CHECKPOINT / "waiting"
        self._states = out / _CHECKPOINT / "states"

    def check_target(self) -> None:
        """Raise BadInput if an order can neither start nor continue in this directory."""
        if self.out.exists() and not self.out.is_dir():
            raise BadInput(f"{self.out} is not a directory")
        if self.out.is_dir() and any(self.out.iterdir()) and not self._states.is_dir():
            raise BadInput(f"{self.out} exists already and holds no order to continue; choose another name")

    def prepare(self, options: OrderOptions, form: Format) -> None:
        """Create the directory, or find the order to be continued in it; raises BadInput if it holds a different one."""
        self.check_target()
        last = self.last()
        if last is not None and (last.form, _essence(last.options)) != (form, _essence(options)):
            raise BadInput(f"{self.out} holds another order, begun with other options; choose another name")
        try:
            for directory in (self.waiting, self._states, self.out / REJECTED):
                directory.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise BadInput(f"cannot write {self.out}: {error.strerror}") from error

    def last(self) -> State | None:
        """The last committed state."""
        names = sorted(self._states.glob("[0-9]*.json"))
        return self._read(names[-1]) if names else None

    def commit(self, state: State) -> None:
        path = self._states / f"{state.batch:010d}.json"
        partial = path.with_suffix(".partial")
        partial.write_bytes(msgspec.json.encode(state))
        os.replace(partial, path)

    def publish(self, state: State) -> None:
        """Give the files of a committed state their final names, in order. Idempotent."""
        for file in state.written:
            staged = self.out / file.staged
            if staged.exists():
                os.replace(staged, self.out / file.final)

    def tidy(self, state: State) -> None:
        """Remove the files that no later micro-batch needs, once this state is committed and published."""
        needed = {part.file for part in state.waiting} | {names.file for names in state.names}
        _remove(path for path in self.waiting.iterdir() if path.name not in needed)
        _remove(path for path in self._states.glob("*") if path.name < f"{state.batch:010d}.json")
        _remove(self.out.glob(".part-*"))
        _remove((self.out / REJECTED).glob(".part-*"))

    def _read(self, path: Path) -> State:
        try:
            return msgspec.json.decode(path.read_bytes(), type=State)
        except (OSError, msgspec.DecodeError) as error:
            raise BadInput(f"{path} cannot be read: {error}") from error


def _essence(options: OrderOptions) -> OrderOptions:
    """The options that must not change when an order is continued; the idle timeout may."""
    if not isinstance(options, TotalOrder) or options.idle == "wait":
        return options
    return msgspec.structs.replace(options, idle=1.0)


def _remove(paths: Iterable[Path]) -> None:
    for path in paths:
        path.unlink(missing_ok=True)
