"""The files of a journal, by their names.

000002.log        a segment: records, one after the other
000002.snapshot   the application's state where segment 2 begins, in chunks
000003.log        the next segment, whose snapshot is not complete yet
lock              held by the process that writes
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Literal

LOCK = "lock"

NEW = ".new"
"""At the end of the name of a snapshot that is not complete."""

_NAME = re.compile(r"(\d{6,})\.(log|snapshot)")


def log_name(serial: int) -> str:
    return f"{serial:06}.log"


def snapshot_name(serial: int) -> str:
    return f"{serial:06}.snapshot"


def serials(names: Iterable[str], kind: Literal["log", "snapshot"]) -> list[int]:
    """Which segments or snapshots there are, by their serial numbers."""
    found = [_NAME.fullmatch(name) for name in names]
    return sorted(int(match[1]) for match in found if match is not None and match[2] == kind)


def incomplete(names: Iterable[str]) -> list[str]:
    """Snapshots that were being written."""
    return [name for name in names if name.endswith(NEW) and _NAME.fullmatch(name.removesuffix(NEW))]


def is_journal(names: Iterable[str]) -> bool:
    """Whether a directory that holds these is a journal; a new one may have nothing but its lock."""
    return any(name == LOCK or _NAME.fullmatch(name) for name in names)
