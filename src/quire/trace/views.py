"""How a trace encodes views and sessions: formats and parses `view` rows and the operation words of messages.

A view is a numbered set of members that its members agree on. A process that comes back after a crash or an exclusion has a
later *incarnation*. Views are few and messages are many: so a view is described in text columns of its own row, and the
operations that messages carry share one word as long as the session's operation numbers and the sender's message numbers
advance together.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from enum import StrEnum
from typing import NamedTuple

VIEW_BITS = 32
"""Members number their messages from 0 in each view. In a log, a message has the number `view << VIEW_BITS | number`; when a
run is made from the logs, each process's messages are numbered consecutively instead."""


class ViewEvent(StrEnum):
    """What a `view` row says about its process: the value of the column `op`."""

    INSTALL = "install"
    """It installed a view."""
    RESUME = "resume"
    """It was restarted, and continues in a view with the state from its journal."""
    EXCLUDED = "excluded"
    """It learned that the others continue without it."""
    LEFT = "left"
    """It left voluntarily, and the others know."""
    CRASH = "crash"
    """It stopped at once."""
    BLOCKED = "blocked"
    """It waits for a majority."""
    UNBLOCKED = "unblocked"
    """It no longer waits."""
    CUT = "cut"
    """From now on it cannot reach some others."""
    HEALED = "healed"
    """It can reach them again."""


class ViewMember(NamedTuple):
    """A member of a view: a process, and which of its incarnations."""

    process: int
    incarnation: int


class Operation(NamedTuple):
    """An operation that a message carries: its session, and its number in the session, from 1 on."""

    session: str
    number: int


def members_word(members: Iterable[ViewMember]) -> str:
    """The members of a view, in order of seniority, as the text in a trace: `0.1 1.1 2.4`."""
    return " ".join(f"{process}.{incarnation}" for process, incarnation in members)


def parse_members(word: str) -> tuple[ViewMember, ...]:
    """Parse the members of a view. Raises ValueError if the text is invalid."""
    found = [re.fullmatch(r"(\d+)\.(\d+)", each, re.ASCII) for each in word.split()]
    if None in found:
        raise ValueError(f"{word!r} does not name the members of a view, like '0.1 1.1 2.4'")
    return tuple(ViewMember(int(each[1]), int(each[2])) for each in found if each is not None)


def operation_word(operation: Operation, seq: int) -> str:
    """The word of a message with this number that carries the operation: `alice+1` is operation `seq` + 1 of alice.

    It is the same for all messages of a run that carries consecutive operations.
    """
    return f"{operation.session}{operation.number - seq:+d}"


def parse_operation_word(word: str) -> Operation | None:
    """The session, and the number of the operation that the sender's message 0 would carry; None if it is no such word."""
    found = re.fullmatch(r"(.*)([+-]\d{1,18})", word, re.ASCII | re.DOTALL)
    return None if found is None else Operation(found[1], int(found[2]))
