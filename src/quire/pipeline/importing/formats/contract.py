"""The interface of an import format: recognise files, choose the settings to read them, and read the events of a piece."""

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
"""Line, label of the execution, host, and the known columns of `RECORDS`."""


_ROWS_MAX = 1 << 16
"""How many events are kept as objects, which take many times the memory of columns."""


class Likeness(IntEnum):
    """How much a file looks like a format; the format with the highest value is chosen."""

    NONE = 0
    POSSIBLE = 1
    LIKELY = 2
    CERTAIN = 3


class Log(NamedTuple):
    """A file, and its beginning."""

    file: Input
    head: bytes


class Piece(NamedTuple):
    """The input of a format's reader: some bytes of a file, from the beginning of a line on."""

    chunk: Chunk
    name: str
    """The name of the file in messages."""
    first_line: int
    inside_quotes: bool
    """Whether an odd number of quotes precedes it in the file."""
    first: int | None
    """Where in the file to start searching for events, if not at the beginning of the piece."""


class SetApart(msgspec.Struct, frozen=True):
    """A line that could not be read, and why."""

    file: str
    line: int
    reason: str
    text: str


class Found:
    """Collects the events of a piece, and what else the reader finds out."""

    def __init__(self) -> None:
        self._hosts: list[str] = []
        self._rows: list[dict[str, Any]] = []
        self._blocks: list[Block] = []
        self.executions: list[str] = []
        """The labels of the executions."""
        self._numbers: dict[str, int] = {}
        self.dests: set[tuple[int, str]] = set()
        """Hosts that are named as destinations, by execution."""
        self.clocked = False
        """Whether there are vector clocks."""
        self.caused = False
        """Whether there are records that name others as their causes, instead of messages."""
        self.apart: list[SetApart] = []
        """Lines that could not be read, if the import goes on without them."""
        self.untimed: list[tuple[int, str, str]] = []
        """Times that could not be parsed, as (line, host, time)."""
        self.used: set[str] = set()
        """The mapped fields whose columns exist; for formats with columns."""
        self.unused: set[str] = set()
        """Columns that are not mapped."""
        self.first = self.resume = 0
        """Where in the file the first event begins (or the piece ends), and where the search for the next one continues."""

    def execution(self, label: str) -> int:
        number = self._numbers.setdefault(label, len(self._numbers))
        if number == len(self.executions):
            self.executions.append(label)
        return number

    def add(self, execution: int, host: str, line: int, record: dict[str, Any]) -> None:
        """Add one event."""
        record["line"], record["execution"] = line, execution
        if (text := record.pop("untimed", None)) is not None:
            self.untimed.append((line, host, text))
        self._hosts.append(host)
        self._rows.append(record)
        if dests := record.get("dests"):
            self.dests.update((execution, dest) for dest in dests)
        self.clocked = self.clocked or "clock_hosts" in record
        self.caused = self.caused or (record["kind"] == LOCAL and "key" in record)
        if len(self._rows) == _ROWS_MAX:
            self._close()

    def add_block(self, block: Block) -> None:
        """Add many events, in columns. The caller must set the attributes that `add` derives from an event."""
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
    """The type of the settings with which all files of an import are read."""
    delimited: ClassVar[bool] = False
    """Whether executions follow one another in a file. Then the first of a piece continues the one before it."""

    @abstractmethod
    def recognise(self, log: Log) -> Likeness:
        """How much a file looks like this format."""

    @abstractmethod
    def settle(self, logs: Sequence[Log], request: ImportRequest) -> Settings:
        """The settings to read all the files; raises BadInput if the files, or they and the request, do not fit together."""

    def unit(self, settings: Settings) -> str:  # noqa: ARG002
        """The unit of line numbers in messages."""
        return "line"

    def in_one_piece(self, settings: Settings) -> bool:  # noqa: ARG002
        """Whether a file must be read whole, because it cannot be cut at line ends."""
        return False

    @abstractmethod
    def read(self, piece: Piece, settings: Settings, found: Found) -> None:
        """Add the events that begin in the piece; raises BadInput, with file and line, for anything that is not an event."""


class LineFormat(Format[Settings]):
    """A format whose events consist of whole lines, so that none extends beyond the end of a piece."""

    @abstractmethod
    def events(self, piece: Piece, settings: Settings, found: Found) -> Iterator[Event]:
        """The events of the piece. Anything else is recorded in `found`."""

    def read(self, piece: Piece, settings: Settings, found: Found) -> None:
        for line, execution, host, record in self.events(piece, settings, found):
            found.add(found.execution(execution), host, line, record)
        found.first = found.resume = piece.chunk.end


def compile_where(where: str | None) -> Any:
    """Compile the expression that selects lines; None if all lines are wanted."""
    import re2  # Here, because this module is loaded for the help of the command, too.

    options = re2.Options()
    options.log_errors = False
    try:
        return None if where is None else re2.compile(where.encode(), options)
    except re2.error as error:
        raise BadInput(f"--where is not a regular expression of RE2 (no look-around, no back-references): {where}") from error


def starts_like_json(log: Log) -> bool:
    return log.head.lstrip()[:1] == b"{"


def starts_like_objects(log: Log) -> bool:
    """Whether an array of JSON objects begins, perhaps over several lines."""
    head = log.head.lstrip()
    return head[:1] == b"[" and head[1:].lstrip()[:1] == b"{"


def first_line(head: bytes) -> bytes:
    return head.split(b"\n", 1)[0].rstrip(b"\r")
