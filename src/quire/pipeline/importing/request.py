"""What an import is asked for, whatever the format of the logs turns out to be."""

from __future__ import annotations

import msgspec

from quire.pipeline.importing.chunks import CHUNK_BYTES

TASKS_MAX = 16
"""Stages that go by host have at most so many tasks."""

SEPARATE_MAX = 1_000
"""More executions than this share a run."""

AUTO = "auto"


class ImportRequest(msgspec.Struct, frozen=True, kw_only=True):
    """How to read the logs; `auto` looks at their beginnings. Which of the others a format takes, its entry says."""

    format: str = AUTO
    regex: str | None = None
    parser: str | None = None
    delimiter: str | None = None
    columns: dict[str, str] = {}
    where: str | None = None
    """Only lines that this expression matches are events, in RE2's syntax."""
    lenient: bool = False
    """Set lines apart that cannot be read, and go on."""
    lanes: bool = False
    """Events of a host that do not follow each other are concurrent, whatever their times are."""
    skip_lines: int = 0
    """So many lines at the beginning of each file are none of the log."""
    chunk_bytes: int = CHUNK_BYTES
    tasks_max: int = TASKS_MAX
    separate_max: int = SEPARATE_MAX


OPTIONS = {
    "regex": "--regex", "parser": "--parser", "delimiter": "--delimiter", "columns": "--map", "where": "--where",
    "lenient": "--set-apart",
}  # fmt: skip
"""What only some formats take, and what the command line calls it."""
