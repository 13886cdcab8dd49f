"""A batch of records that arrived from a process."""

from __future__ import annotations

from typing import NamedTuple

from quire.trace.log import Names
from quire.trace.tables import Integers


class ProcessUpdate(NamedTuple):
    """A process's next records."""

    process: int
    incarnation: int
    records: Integers
    names: Names
    reached: int
    """All later events of the process have a greater logical time."""
    from_the_start: bool
