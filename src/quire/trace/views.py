"""How a trace tells of views and sessions: rows of the kind `view` and words of messages, both ways.

A view is a numbered set of members that its members agree on. A process comes back after a crash or an exclusion under a
later *incarnation*. Views are few and messages are many: so what a view has to say is in words of its own row, and the
operation that a message carries costs one word for as long as a session's operations and its sender's messages are counted
in step.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from enum import StrEnum
from typing import NamedTuple

VIEW_BITS = 32
"""Members of a view number their messages from 0 in each. In a log a message has the number `view << VIEW_BITS | number`;
whoever makes a run of all logs counts each process's messages on instead."""


class Happening(StrEnum):
    """What a `view` row tells of the process at which it is, as the word in the column `op`."""

    INSTALL = "install"
    """It installed a view."""
    RESUME = "resume"
    """It was restarted, and goes on in a view with what its journal gave back."""
    EXCLUDED = "excluded"
    """It learned that the others go on without it."""
    LEFT = "left"
    """It left because it wanted to, and the others know."""
    CRASH = "crash"
    """It stopped at once."""
    BLOCKED = "blocked"
    """It waits for a majority."""
    UNBLOCKED = "unblocked"
    """It waits no more."""
    CUT = "cut"
    """From now on it cannot reach some others."""
    HEALED = "healed"
    """It can reach them again."""


class ViewMember(NamedTuple):
    """A member of a view: a process, and which of its incarnations."""

    process: int
    incarnation: int


class Operation(NamedTuple):
    """What a message carries: the operation of this number of a session, from 1 on."""

    session: str
    number: int


def members_word(members: Iterable[ViewMember]) -> str:
    """The members of a view in the order of seniority, as one word of a trace: `0.1 1.1 2.4`."""
    return " ".join(f"{process}.{incarnation}" for process, incarnation in members)


def parse_members(word: str) -> tuple[ViewMember, ...]:
    """The members in a word. Raises ValueError where it is none."""
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
    """The session and the number of the operation that the message 0 of the sender would carry; None if it is no such word."""
    found = re.fullmatch(r"(.*)([+-]\d{1,18})", word, re.ASCII | re.DOTALL)
    return None if found is None else Operation(found[1], int(found[2]))
