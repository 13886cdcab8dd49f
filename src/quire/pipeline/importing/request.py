"""The options of an import, for all formats."""

from __future__ import annotations

import msgspec

from quire.pipeline.importing.chunks import CHUNK_BYTES

TASKS_MAX = 16
"""The most tasks of a stage that works host by host."""

SEPARATE_MAX = 1_000
"""If there are more executions than this, they share one run."""

BUCKET_EVENTS = 1 << 17
"""About how many events' names are joined at once."""

AUTO = "auto"


class ImportRequest(msgspec.Struct, frozen=True, kw_only=True):
    """How to read the logs. The format `auto` is chosen by looking at their beginnings; a format's registry entry says which
    options it takes."""

    format: str = AUTO
    regex: str | None = None
    parser: str | None = None
    delimiter: str | None = None
    columns: dict[str, str] = {}
    where: str | None = None
    """If given, only lines that match this expression, in RE2's syntax, are events."""
    lenient: bool = False
    """Set unreadable lines aside instead of failing."""
    lanes: bool | None = None
    """Whether events of a host that do not follow each other are concurrent, or in the order of their times. If it is not said,
    they are concurrent if that takes few lanes."""
    skip_lines: int = 0
    """How many lines to skip at the beginning of each file."""
    chunk_bytes: int = CHUNK_BYTES
    tasks_max: int = TASKS_MAX
    bucket_events: int = BUCKET_EVENTS
    separate_max: int = SEPARATE_MAX


OPTIONS = {
    "regex": "--regex", "parser": "--parser", "delimiter": "--delimiter", "columns": "--map", "where": "--where",
    "lenient": "--set-apart",
}  # fmt: skip
"""The options that only some formats take, with their names on the command line."""
