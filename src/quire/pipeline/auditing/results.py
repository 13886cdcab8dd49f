"""The results of an audit's tasks, looked up by type."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeVar

_R = TypeVar("_R")


class Results:
    def __init__(self, found: Iterable[object]) -> None:
        self._found: dict[type, Any] = {}
        for result in found:
            before = self._found.get(type(result))
            self._found[type(result)] = result if before is None else before.joined(result)

    def add(self, result: object) -> None:
        self._found[type(result)] = result

    def of(self, kind: type[_R]) -> _R:
        """The result of this type; an empty one if no task returned it."""
        found = self._found.get(kind)
        return found if isinstance(found, kind) else kind()
