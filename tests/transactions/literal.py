"""The protocol as it was printed, kept to show how each of its rules fails.

A read is accepted where V[a] < version; an operation runs where its number is above the version of the object; writes
take effect at once; requests are sorted by rules (1) to (3); and a write is left out if an earlier one precedes it.
"""

from __future__ import annotations

from typing import NamedTuple

Number = tuple[int, ...]


class Request(NamedTuple):
    vector: tuple[int, ...]
    t: tuple[int, int]
    op: str
    key: int


def precedes(a: Request, b: Request) -> bool:
    """The printed order: by vectors where they are comparable, by timestamps where they are not and the two conflict."""
    if a.vector != b.vector:
        if all(x <= y for x, y in zip(a.vector, b.vector, strict=True)):
            return True
        if all(x >= y for x, y in zip(a.vector, b.vector, strict=True)):
            return False
    return a.key == b.key and "w" in (a.op, b.op) and a.t < b.t


def accepts_read(vector: Number, version: Number) -> bool:
    return vector < version


def runs_operation(number: Number, version: Number) -> bool:
    return number > version


class Replica:
    """Objects whose writes take effect when they come, if they are not obsolete."""

    def __init__(self) -> None:
        self.version: dict[str, Number] = {}
        self.value: dict[str, str] = {}

    def read(self, t: tuple[int, int], no: int, key: str) -> str | None:
        if not runs_operation((*t, no), self.version.get(key, (0, 0, 0))):
            return "obsolete"
        return None

    def write(self, t: tuple[int, int], no: int, key: str, value: str) -> str | None:
        if not runs_operation((*t, no), self.version.get(key, (0, 0, 0))):
            return "obsolete"
        self.version[key], self.value[key] = (*t, no), value
        return None


def left_over(writes: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """The printed rule of insignificant writes: each that follows another one is dropped."""
    return writes[:1]
