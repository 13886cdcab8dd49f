"""The schema of a trace: its columns, how they are stored in Parquet, and the description of a run.

The rows of a process are in local order, so readers never have to sort; row groups are small and numbers are delta-encoded, so
readers can skip most of a file by its statistics and decode the rest fast.
"""

from __future__ import annotations

import msgspec
import pyarrow as pa

from quire.model.moments import Happened
from quire.model.orders import Guarantee

FORMAT = 1
"""The version of the format; incremented when a reader of older traces would misread newer ones."""

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
"""Columns that only imported traces have. If an event is known to follow others, but not by which messages, deliveries marked
`implied` precede it at its process: they are rows, but no events. `event` numbers the events of a process; an implied delivery
has the number of the event that it belongs to. The other columns are the log's text, its line and file, and its name for the
message."""

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

LOCAL_ORDER, BY_TIMES = "local_order", "times"
"""What the settings of an imported run say if its log orders the events of a host only in part, and times order the rest."""

WORD_COLUMNS = ("group", "object", "op", "txn")
"""Of which there may be as many words as rows."""

DELTA_COLUMNS = ("pos", "seq", "lamport", "time_ns")
DICTIONARY_COLUMNS = (
    "run", "process", "kind", "origin", "group", "dests.list.element", "packet", "fanout", "header_bytes", "payload_bytes",
    "object", "op", "txn",
)  # fmt: skip


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """How a run ended. `complete`: whether every message reached all its destinations."""

    complete: bool
    messages: int
    deliveries: int
    crashed: tuple[int, ...] = ()
    """Processes that are exempt from agreement: they crashed, or their records do not reach the end."""
    notes: tuple[str, ...] = ()
    """Notes for readers about how the trace was made."""
    happened: tuple[Happened, ...] = ()
    """The faults during the run, and what resulted: views, or who took over."""


class RunInfo(msgspec.Struct, frozen=True, kw_only=True):
    """The content of run.json: what ran, and what it promised. It depends only on the command that made the run, so that the
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
