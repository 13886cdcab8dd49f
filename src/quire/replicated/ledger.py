"""Undo log of one replicated object, which also keeps snapshots consistent and refuses changes outside of commands.

A command may change anything, and fail afterwards. So the old value is noted here before each change, per entry of a dictionary
or per field, and a failed command is undone from the last note to the first. The same notes keep snapshots consistent that are
written while commands go on. Outside of commands nothing may change, because other replicas would not change too: that is
refused here.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, Final, Protocol

from quire.model.errors import BadInput


class _Sign:
    def __init__(self, name: str) -> None:
        self._name = name

    def __repr__(self) -> str:
        return self._name


ABSENT: Final = _Sign("absent")
"""The old value of an entry that did not exist."""
WHOLE: Final = _Sign("whole")
"""In place of a key: all of a container."""
LENGTH: Final = _Sign("length")
"""In place of a key: everything after so many items of a list."""
LAST: Final = _Sign("last")
"""In place of a key: the item that was taken off the end of a list."""


class Image:
    """The old state of a mutable value: its encoding, decoded only when it is needed."""

    __slots__ = ("_decode", "data")

    def __init__(self, data: bytes, decode: Callable[[bytes], Any]) -> None:
        self.data = data
        self._decode = decode

    def value(self) -> Any:
        return self._decode(self.data)


class Owner(Protocol):
    """Something with entries: a container, or the object with its fields."""

    def _put_back(self, key: Any, old: Any) -> None: ...


class Watcher(Protocol):
    """A snapshot that is being written."""

    def keep(self, owner: Owner, key: Any, old: Any) -> None: ...


class Ledger:
    __slots__ = ("_kept", "name", "notes", "shut", "watchers")

    def __init__(self, name: str) -> None:
        self.name = name
        self.shut = False
        """Whether only a command may change anything."""
        self.watchers: list[Watcher] = []
        self.notes: list[tuple[Owner, Any, Any]] | None = None
        """The old values of everything that the running command has changed; None while no command runs."""
        self._kept: set[tuple[int, Hashable]] = set()

    def begin(self) -> None:
        """A command begins, which may change anything."""
        self.notes = []

    def keep(self, owner: Owner, key: Any, old: Any) -> None:
        """Note the old value of an entry that is about to change."""
        if self.notes is not None:
            self.notes.append((owner, key, old))
        elif self.shut:
            raise BadInput(f"{self.name} cannot be changed outside a command: other replicas would not notice")
        for watcher in self.watchers:
            watcher.keep(owner, key, old)

    def keep_image(self, owner: Owner, key: Hashable, image: Callable[[], Image]) -> None:
        """A command reads a mutable value, which it may change in place: the first time, note its old state."""
        if self.notes is not None and (id(owner), key) not in self._kept:
            self._kept.add((id(owner), key))
            self.keep(owner, key, image())

    def commit(self) -> None:
        """The command has ended well."""
        self.notes = None
        if self._kept:
            self._kept.clear()

    def roll_back(self) -> None:
        """The command has failed: undo all its changes."""
        notes = self.notes or []
        self.commit()
        for owner, key, old in reversed(notes):
            owner._put_back(key, old.value() if isinstance(old, Image) else old)
