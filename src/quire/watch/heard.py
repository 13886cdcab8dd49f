"""What is heard of a process."""

from __future__ import annotations

from typing import NamedTuple

from quire.trace.log import Names
from quire.trace.tables import Integers


class Heard(NamedTuple):
    """What a process did next."""

    process: int
    incarnation: int
    records: Integers
    names: Names
    reached: int
    """Everything later has a greater logical time."""
    from_the_start: bool
