"""What a streaming order has done, committed one micro-batch at a time.

One file says everything: how far each source was heard, which events wait in which rows of which files, and which files the
micro-batch has written. Its renaming is the commit. Before it, files lie under names that nobody reads, so a process that
dies leaves nothing behind but what the next one removes. After it, the written files only have to get their final names,
in their order, which whoever comes next does if the process dies meanwhile. So at every moment the files that can be read
are a beginning of the order, and Spark, which repeats a micro-batch of which it does not know that it was done, finds it
done.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

import msgspec

from quire.model.errors import BadInput
from quire.pipeline.ordering.reading import Format
from quire.pipeline.ordering.stream.frontier import NEVER_HEARD
from quire.pipeline.ordering.stream.intake import Open, Waiting
from quire.pipeline.ordering.stream.options import CausalOrder, OrderOptions, TotalOrder

REJECTED = "_rejected"
"""Where rejected events go, in the output's directory. Spark overlooks it when it reads the events."""
_CHECKPOINT = "_checkpoint"


class Written(msgspec.Struct, frozen=True):
    """A file of events under its passing and its final name, in the output's directory."""

    staged: str
    final: str


class State(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that a micro-batch leaves to the next."""

    batch: int
    options: OrderOptions
    form: Format
    marks: tuple[int, ...]
    """Total order: the latest clock of each source. Causal order: how many of its events have left."""
    open: tuple[Open | None, ...]
    left: int = 0
    """How many events have left in all, which is the next position."""
    rejected: int = 0
    omitted: int = 0
    """How many superseded writes were left out."""
    waiting: tuple[Waiting, ...] = ()
    written: tuple[Written, ...] = ()
    """What this micro-batch wrote, events first."""

    def waiting_events(self) -> int:
        return sum(part.rows - part.start for part in self.waiting)


def first_state(options: OrderOptions, form: Format) -> State:
    start = NEVER_HEARD if isinstance(options, TotalOrder) else 0
    count = len(options.sources)
    return State(batch=-1, options=options, form=form, marks=(start,) * count, open=(None,) * count)


class Ledger:
    """The states of one output directory."""

    def __init__(self, out: Path) -> None:
        self.out = out
        self.spark_checkpoint = out / _CHECKPOINT / "spark"
        self.waiting = out / _CHECKPOINT / "waiting"
        self._states = out / _CHECKPOINT / "states"

    def check_target(self) -> None:
        """Raise BadInput where an order can neither begin nor go on."""
        if self.out.exists() and not self.out.is_dir():
            raise BadInput(f"{self.out} is not a directory")
        if self.out.is_dir() and any(self.out.iterdir()) and not self._states.is_dir():
            raise BadInput(f"{self.out} exists already and holds no order to continue; choose another name")

    def prepare(self, options: OrderOptions, form: Format) -> None:
        """Make the directory, or find in it the order that is to be continued; raises BadInput if it is another one."""
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
        """The latest state that was committed."""
        names = sorted(self._states.glob("[0-9]*.json"))
        return self._read(names[-1]) if names else None

    def commit(self, state: State) -> None:
        path = self._states / f"{state.batch:010d}.json"
        partial = path.with_suffix(".partial")
        partial.write_bytes(msgspec.json.encode(state))
        os.replace(partial, path)

    def publish(self, state: State) -> None:
        """Give the files of a committed state their final names, in their order. Doing it again does nothing."""
        for file in state.written:
            staged = self.out / file.staged
            if staged.exists():
                os.replace(staged, self.out / file.final)

    def tidy(self, state: State) -> None:
        """Remove what no later micro-batch can need once this state is committed and published."""
        needed = {part.file for part in state.waiting}
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
    """What must not change while an order goes on; how many seconds to wait may."""
    if isinstance(options, CausalOrder) or options.idle == "wait":
        return options
    return msgspec.structs.replace(options, idle=1.0)


def _remove(paths: Iterable[Path]) -> None:
    for path in paths:
        path.unlink(missing_ok=True)
