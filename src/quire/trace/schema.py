"""The columns of a trace, how they are stored, and the description of a run.

Rows of one process are in local order, so a reader never has to sort; row groups are small and the numbers are
delta-encoded, so it can skip most of a file by its statistics and decode the rest fast.
"""

from __future__ import annotations

import msgspec
import pyarrow as pa

from quire.model.orders import Guarantee

FORMAT = 1
"""Raised when a reader of older traces would misread newer ones."""

ROW_GROUP_ROWS = 65_536

_word = pa.dictionary(pa.int8(), pa.string())
_name = pa.dictionary(pa.int32(), pa.string())

SCHEMA = pa.schema(
    [
        pa.field("run", _word, nullable=False),
        pa.field("process", pa.int32(), nullable=False),
        pa.field("pos", pa.int64(), nullable=False),
        pa.field("kind", _word, nullable=False),
        pa.field("origin", pa.int32()),
        pa.field("seq", pa.int64()),
        pa.field("group", _name),
        pa.field("dests", pa.list_(pa.field("element", pa.int32(), nullable=False))),
        pa.field("lamport", pa.int64()),
        pa.field("time_ns", pa.int64()),
        pa.field("packet", _word),
        pa.field("fanout", pa.int32()),
        pa.field("header_bytes", pa.int32()),
        pa.field("payload_bytes", pa.int32()),
        pa.field("object", _name),
        pa.field("op", _name),
        pa.field("txn", _name),
    ]
)

EVENT, IMPLIED, TEXT, LINE, FILE, MESSAGE = "event", "implied", "text", "line", "file", "message"
"""Columns that only imported traces have. Where an event is known to have followed others, but not by which messages, its
process has deliveries in front of it that are `implied`: they are rows, but no events. `event` numbers the events of a
process, and an implied delivery has the number of the event that it belongs to. The others are what the log said, where it
said so, and what it calls the message."""

IMPORTED = pa.schema(
    [
        *SCHEMA,
        pa.field(EVENT, pa.int64()),
        pa.field(IMPLIED, pa.bool_()),
        pa.field(TEXT, pa.string()),
        pa.field(LINE, pa.int64()),
        pa.field(FILE, pa.dictionary(pa.int32(), pa.string())),
        pa.field(MESSAGE, pa.string()),
    ]
)

WORD_COLUMNS = ("group", "object", "op", "txn")
"""Of which there may be as many words as rows."""

DELTA_COLUMNS = ("pos", "seq", "lamport", "time_ns")
DICTIONARY_COLUMNS = (
    "run", "process", "kind", "origin", "group", "dests.list.element", "packet", "fanout", "header_bytes", "payload_bytes",
    "object", "op", "txn",
)  # fmt: skip


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """How a run ended. `complete`: every message reached every member that was to deliver it."""

    complete: bool
    messages: int
    deliveries: int
    crashed: tuple[int, ...] = ()
    """Processes whose deliveries need not agree with the others': they crashed, or what they did is not known to the end."""
    notes: tuple[str, ...] = ()
    """What a reader should know of how the trace came about."""


class RunInfo(msgspec.Struct, frozen=True, kw_only=True):
    """run.json: what ran, and what it promised. Only what follows from the command that made the run, so that the
    same command gives the same bytes."""

    format: int = FORMAT
    run: str
    source: str
    protocol: str
    options: dict[str, object]
    members: int
    groups: dict[str, tuple[int, ...]]
    promises: tuple[Guarantee, ...]
    seed: int | None = None
    settings: dict[str, object] = {}
    versions: dict[str, str] = {}
    outcome: Outcome
