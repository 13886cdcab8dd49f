"""The faults of a run, and their syntax: `kill 2@1s, stop 3@2s for 4s, partition 0,1|2,3,4@8s for 5s, restart 2@10s`.

Faults mean the same for live processes and for simulated ones. Times count from when the group has started, in whole
milliseconds. `parse_faults` reads the syntax, `check_faults` says in one sentence why a group of so many members cannot have
these faults, and `str` of a fault gives its syntax back.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

from quire.model.errors import BadInput

TIME_MS_MAX = 24 * 60 * 60 * 1000
"""The latest time of a fault: one day."""


class Kill(msgspec.Struct, frozen=True, tag="kill"):
    """The process is killed."""

    member: int
    at_ms: int

    def __str__(self) -> str:
        return f"kill {self.member}@{time_word(self.at_ms)}"


class Restart(msgspec.Struct, frozen=True, tag="restart"):
    """A killed process is started again, with what is on its disk."""

    member: int
    at_ms: int

    def __str__(self) -> str:
        return f"restart {self.member}@{time_word(self.at_ms)}"


class Stop(msgspec.Struct, frozen=True, tag="stop"):
    """The process is suspended for a while, without noticing."""

    member: int
    at_ms: int
    for_ms: int

    def __str__(self) -> str:
        return f"stop {self.member}@{time_word(self.at_ms)} for {time_word(self.for_ms)}"


class Full(msgspec.Struct, frozen=True, tag="full"):
    """The disk of a process is full for a while, and the process ends when it has to write. Then there is room, and it is
    started again."""

    member: int
    at_ms: int
    for_ms: int

    def __str__(self) -> str:
        return f"full {self.member}@{time_word(self.at_ms)} for {time_word(self.for_ms)}"


class Partition(msgspec.Struct, frozen=True, tag="partition"):
    """For a while nothing gets from one side to another. Members on no side can reach all others."""

    sides: tuple[tuple[int, ...], ...]
    at_ms: int
    for_ms: int

    def __str__(self) -> str:
        sides = "|".join(map(_members_word, self.sides))
        return f"partition {sides}@{time_word(self.at_ms)} for {time_word(self.for_ms)}"


class Cut(msgspec.Struct, frozen=True, tag="cut"):
    """For a while nothing gets from the sources to the targets; the other way, everything does."""

    sources: tuple[int, ...]
    targets: tuple[int, ...]
    at_ms: int
    for_ms: int

    def __str__(self) -> str:
        ends = f"{_members_word(self.sources)}>{_members_word(self.targets)}"
        return f"cut {ends}@{time_word(self.at_ms)} for {time_word(self.for_ms)}"


Fault = Kill | Restart | Stop | Full | Partition | Cut
Disconnection = Partition | Cut

_EXAMPLES = {
    "kill": "kill 2@1s",
    "restart": "restart 2@10s",
    "stop": "stop 3@2s for 4s",
    "full": "full 1@3s for 2s",
    "partition": "partition 0,1|2,3,4@8s for 5s",
    "cut": "cut 0>1@3s for 2s",
}
_UNITS_MS = {"ms": 1, "s": 1000, "m": 60_000}


# Reading and writing.


def parse_faults(text: str) -> tuple[Fault, ...]:
    """The faults in a text, in the order in which it names them. Raises BadInput."""
    # Commas are also between the members of a side, but a fault begins with a word.
    return tuple(_parse_fault(" ".join(each.split())) for each in re.split(r",(?!\s*\d)", text))


def render_faults(faults: Sequence[Fault]) -> str:
    """The words of these faults."""
    return ", ".join(map(str, faults))


def time_word(time_ms: int) -> str:
    """A time as people write it: 250ms, 1.5s, 2m."""
    if time_ms and time_ms % _UNITS_MS["m"] == 0:
        return f"{time_ms // _UNITS_MS['m']}m"
    return f"{time_ms}ms" if time_ms < 1000 else f"{time_ms / 1000:.3f}".rstrip("0").rstrip(".") + "s"


def _parse_fault(text: str) -> Fault:
    word, _, rest = text.partition(" ")
    if word not in _EXAMPLES:
        known = ", ".join(_EXAMPLES)
        raise BadInput(f"cannot read the fault {text!r}; it begins with one of {known}, as in '{_EXAMPLES['kill']}'")
    found = re.fullmatch(r"([\d,|> ]+)@ ?([\w.]+)( for ([\w.]+))?", rest, re.ASCII)
    if found is None:
        raise _unreadable(text, word)
    who, at_ms = found[1].replace(" ", ""), _parse_time(found[2], text)
    for_ms = None if found[3] is None else _parse_time(found[4], text)
    if word in ("kill", "restart"):
        if for_ms is not None:
            raise BadInput(f"cannot read the fault {text!r}: a {word} has no duration; write it like '{_EXAMPLES[word]}'")
        return (Kill if word == "kill" else Restart)(_parse_member(who, text, word), at_ms)
    if not for_ms:
        raise BadInput(f"the fault {text!r} does not say for how long; write it like '{_EXAMPLES[word]}'")
    if word in ("stop", "full"):
        return (Stop if word == "stop" else Full)(_parse_member(who, text, word), at_ms, for_ms)
    sign = "|" if word == "partition" else ">"
    sides = tuple(_parse_side(side, text, word) for side in who.split(sign))
    if word == "partition":
        return Partition(sides, at_ms, for_ms)
    if len(sides) != 2:
        raise _unreadable(text, word)
    return Cut(*sides, at_ms, for_ms)


def _unreadable(text: str, word: str) -> BadInput:
    return BadInput(f"cannot read the fault {text!r}; write it like '{_EXAMPLES[word]}'")


def _parse_member(who: str, text: str, word: str) -> int:
    if re.fullmatch(r"\d{1,7}", who) is None:
        raise _unreadable(text, word)
    return int(who)


def _parse_side(side: str, text: str, word: str) -> tuple[int, ...]:
    return tuple(_parse_member(member, text, word) for member in side.split(","))


def _parse_time(word: str, text: str) -> int:
    found = re.fullmatch(r"(\d{1,9}(?:\.\d{1,9})?)(ms|s|m)", word, re.ASCII)
    if found is None:
        raise BadInput(f"cannot read the time {word!r} of the fault {text!r}; write it like 250ms, 1.5s or 2m")
    time_ms = float(found[1]) * _UNITS_MS[found[2]]
    if time_ms > TIME_MS_MAX:
        raise BadInput(f"the time {word} of the fault {text!r} is longer than a day")
    if abs(time_ms - round(time_ms)) > 1e-6:
        raise BadInput(f"the time {word} of the fault {text!r} is not a whole number of milliseconds")
    return round(time_ms)


def _members_word(members: Sequence[int]) -> str:
    return ",".join(map(str, members))


# Checking.


def check_faults(faults: Sequence[Fault], members: int) -> None:
    """Raise BadInput if a group of so many members cannot have these faults, or nobody would be left at the end."""
    running = dict.fromkeys(range(members), True)
    busy: dict[int, Stop | Full] = {}
    for fault in in_time(faults):
        _check_members(fault, members)
        if isinstance(fault, Disconnection):
            _check_sides(fault)
            continue
        member = fault.member
        if isinstance(fault, Restart):
            if running[member]:
                raise BadInput(f"'{fault}' restarts a running member; kill it first")
        elif not running[member]:
            raise BadInput(f"'{fault}' affects a member that is not running; restart it first")
        _check_alone(fault, busy.get(member))
        if isinstance(fault, Stop | Full):
            busy[member] = fault
        else:
            running[member] = isinstance(fault, Restart)
            busy.pop(member, None)
    if not any(running.values()):
        raise BadInput("these faults leave no member running at the end; restart some of them")


def _check_alone(fault: Kill | Restart | Stop | Full, other: Stop | Full | None) -> None:
    """A stop or a full disk must not overlap with other faults of the same process, except that a stopped one may be killed."""
    if other is None or fault.at_ms >= other.at_ms + other.for_ms:
        return
    until = time_word(other.at_ms + other.for_ms)
    if isinstance(other, Full):
        raise BadInput(f"'{fault}' affects a member whose disk is full until {until}; start this one later")
    if isinstance(fault, Stop):
        raise BadInput(
            f"'{fault}' stops a member that is already stopped until {until}; merge the two, or start this one later"
        )
    if isinstance(fault, Full):
        raise BadInput(f"'{fault}' affects a member that is stopped until {until} and writes nothing; start this one later")


def in_time(faults: Sequence[Fault]) -> list[Fault]:
    """The faults by time; those at the same time stay in the given order."""
    return sorted(faults, key=lambda fault: fault.at_ms)


def members_of(fault: Fault) -> tuple[int, ...]:
    """All members that a fault names."""
    match fault:
        case Partition():
            return tuple(member for side in fault.sides for member in side)
        case Cut():
            return (*fault.sources, *fault.targets)
        case _:
            return (fault.member,)


def end_ms(faults: Sequence[Fault]) -> int:
    """When the last of them is over."""
    return max((fault.at_ms + getattr(fault, "for_ms", 0) for fault in faults), default=0)


def unreachable(fault: Disconnection) -> frozenset[tuple[int, int]]:
    """The pairs (source, target) between which nothing gets through."""
    if isinstance(fault, Cut):
        return frozenset((source, target) for source in fault.sources for target in fault.targets)
    return frozenset(
        (source, target) for one in fault.sides for other in fault.sides if one != other for source in one for target in other
    )


def _check_members(fault: Fault, members: int) -> None:
    for member in members_of(fault):
        if not 0 <= member < members:
            raise BadInput(f"'{fault}' names member {member}, but a group of {members} has members 0 to {members - 1}")


def _check_sides(fault: Disconnection) -> None:
    listed = members_of(fault)
    if len(set(listed)) != len(listed):
        raise BadInput(f"'{fault}' has a member on two sides, or twice on one; name each once")
    if isinstance(fault, Partition) and len(fault.sides) < 2:
        raise BadInput(f"'{fault}' has only one side; separate the sides with |, as in 0,1|2,3,4")
