"""What a format must say of itself: how its files look, how they are to be read, and which events are in a piece of one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from enum import IntEnum
from typing import TYPE_CHECKING, Any, ClassVar, Generic, NamedTuple, TypeVar

import msgspec

from quire.model.errors import BadInput
from quire.pipeline.importing.chunks import Chunk
from quire.pipeline.importing.inputs import Input
from quire.pipeline.importing.request import ImportRequest
from quire.trace.kinds import LOCAL

if TYPE_CHECKING:
    from quire.pipeline.importing.records import Block

Settings = TypeVar("Settings", bound=msgspec.Struct)

Event = tuple[int, str, str, dict[str, Any]]
"""Line, label of the execution, host, and the columns of `RECORDS` that are known."""


class Likeness(IntEnum):
    """How much a file looks like a format; where it looks like several, the most counts."""

    NONE = 0
    POSSIBLE = 1
    LIKELY = 2
    CERTAIN = 3


class Log(NamedTuple):
    """A file, and its beginning."""

    file: Input
    head: bytes


class Piece(NamedTuple):
    """What a format is given to read: some bytes of a file, from the beginning of a line on."""

    chunk: Chunk
    name: str
    """What the file is called in sentences."""
    first_line: int
    inside_quotes: bool
    """Whether an odd number of quotes comes before it in the file."""
    first: int | None
    """Where in the file the first event is sought, if not at the beginning of the piece."""


class SetApart(msgspec.Struct, frozen=True):
    """A line that is no event, and why."""

    file: str
    line: int
    reason: str
    text: str


class Found:
    """The events of a piece, as they are found."""

    def __init__(self) -> None:
        self._hosts: list[str] = []
        self._rows: list[dict[str, Any]] = []
        self._blocks: list[Block] = []
        self.executions: list[str] = []
        """Their labels."""
        self._numbers: dict[str, int] = {}
        self.dests: set[tuple[int, str]] = set()
        """Hosts that are named as destinations, by execution."""
        self.clocked = False
        """Whether there are vector clocks."""
        self.caused = False
        """Whether there are records that name others as their causes, instead of messages."""
        self.apart: list[SetApart] = []
        """Lines that could not be read, if the others are wanted nevertheless."""
        self.untimed: list[tuple[int, str, str]] = []
        """Line, host, and a time that nobody understands."""
        self.used: set[str] = set()
        """What was mapped, and was there; for formats with columns."""
        self.unused: set[str] = set()
        """Columns that nobody asked for."""
        self.first = self.resume = 0
        """Where in the file the first event begins, or the piece ends; and where the search for the next goes on."""

    def execution(self, label: str) -> int:
        number = self._numbers.setdefault(label, len(self._numbers))
        if number == len(self.executions):
            self.executions.append(label)
        return number

    def add(self, execution: int, host: str, line: int, record: dict[str, Any]) -> None:
        """One event more."""
        record["line"], record["execution"] = line, execution
        if (text := record.pop("untimed", None)) is not None:
            self.untimed.append((line, host, text))
        self._hosts.append(host)
        self._rows.append(record)
        self.dests.update((execution, dest) for dest in record.get("dests") or ())
        self.clocked = self.clocked or "clock_hosts" in record
        self.caused = self.caused or (record["kind"] == LOCAL and "key" in record)

    def add_block(self, block: Block) -> None:
        """Many events more, in columns. What `add` finds out about an event is for the caller to say."""
        self._close()
        if len(block.host):
            self._blocks.append(block)

    def block(self) -> Block:
        """All events, in the order in which they were added."""
        from quire.pipeline.importing.records import as_block, join_blocks

        self._close()
        return join_blocks(self._blocks or [as_block((), ())])

    def _close(self) -> None:
        from quire.pipeline.importing.records import (
            as_block,  # Here, as this module is loaded for the help of the command, too.
        )

        if self._rows:
            self._blocks.append(as_block(self._hosts, self._rows))
            self._hosts, self._rows = [], []


class Format(ABC, Generic[Settings]):
    """How logs of one format are recognised and read."""

    settings: type[Settings]
    """How files of this format are read, once that is known; the same for all of them."""
    delimited: ClassVar[bool] = False
    """Whether executions follow each other. Then the first of a piece is the one that was open when it began."""

    @abstractmethod
    def recognise(self, log: Log) -> Likeness:
        """How much a file looks like this format."""

    @abstractmethod
    def settle(self, logs: Sequence[Log], request: ImportRequest) -> Settings:
        """How all the files are to be read; raises BadInput where they do not fit together, or what was asked does not."""

    def unit(self, settings: Settings) -> str:  # noqa: ARG002
        """What the numbers of events count in sentences."""
        return "line"

    def in_one_piece(self, settings: Settings) -> bool:  # noqa: ARG002
        """Whether a file cannot be cut at the ends of lines."""
        return False

    @abstractmethod
    def read(self, piece: Piece, settings: Settings, found: Found) -> None:
        """Add the events that begin in the piece; raises BadInput, with file and line, for what is none."""


class LineFormat(Format[Settings]):
    """A format whose events each lie within lines of their own, so that none goes over the end of a piece."""

    @abstractmethod
    def events(self, piece: Piece, settings: Settings, found: Found) -> Iterator[Event]:
        """The events of the piece. What else is to be said of it goes to what was found."""

    def read(self, piece: Piece, settings: Settings, found: Found) -> None:
        for line, execution, host, record in self.events(piece, settings, found):
            found.add(found.execution(execution), host, line, record)
        found.first = found.resume = piece.chunk.end


def compile_where(where: str | None) -> Any:
    """An expression for the lines that are wanted, ready to be searched for; None where all are."""
    import re2  # Here, because this module is loaded for the help of the command, too.

    options = re2.Options()
    options.log_errors = False
    try:
        return None if where is None else re2.compile(where.encode(), options)
    except re2.error as error:
        raise BadInput(f"--where is not a regular expression of RE2 (no look-around, no back-references): {where}") from error


def starts_like_json(log: Log) -> bool:
    return log.head.lstrip()[:1] == b"{"


def first_line(head: bytes) -> bytes:
    return head.split(b"\n", 1)[0].rstrip(b"\r")
