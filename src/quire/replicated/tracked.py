"""Dictionaries and lists that note their old values in a ledger before they change.

Fields declared as `dict` or `list` hold these. They behave like ordinary ones, at the same speed where they are only read. Each
change is noted per entry, so its cost does not depend on the size of the container. A command that reads a mutable value could
change it in place unnoticed; so such a value is copied when it is read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, SupportsIndex

import msgspec

from quire.replicated.ledger import ABSENT, LAST, LENGTH, WHOLE, Image, Ledger
from quire.replicated.types import ENCODER

Check = Callable[[Any], Any]


class EntryTypes(msgspec.Struct, frozen=True):
    """The types that the entries of a container must have."""

    check_key: Check
    check_value: Check
    decode_value: Callable[[bytes], Any]
    plain_keys: frozenset[type]
    plain_values: frozenset[type]
    """Types of keys and of values that need no further check."""


class TrackedDict(dict[Any, Any]):
    """A dictionary with immutable values."""

    __slots__ = ("_ledger", "_types")

    def __init__(self, entries: Any, ledger: Ledger, types: EntryTypes) -> None:
        super().__init__(entries)
        self._ledger = ledger
        self._types = types

    def _put_back(self, key: Any, old: Any) -> None:
        if key is WHOLE:
            super().clear()
            super().update(old)
        elif old is ABSENT:
            super().pop(key, None)
        else:
            super().__setitem__(key, old)

    def _changing(self, key: Any) -> None:
        self._ledger.keep(self, key, dict.get(self, key, ABSENT))

    def __setitem__(self, key: Any, value: Any) -> None:
        types, ledger = self._types, self._ledger
        if type(key) not in types.plain_keys:
            key = types.check_key(key)
        if type(value) not in types.plain_values:
            value = types.check_value(value)
        # This is what commands do most, so it avoids calls where it can.
        if ledger.notes is None or ledger.watchers:
            self._changing(key)
        else:
            ledger.notes.append((self, key, dict.get(self, key, ABSENT)))
        super().__setitem__(key, value)

    def __delitem__(self, key: Any) -> None:
        if key in self:
            self._changing(key)
        super().__delitem__(key)

    def pop(self, key: Any, *default: Any) -> Any:
        if key in self:
            self._changing(key)
        return super().pop(key, *default)

    def popitem(self) -> tuple[Any, Any]:
        if self:
            self._changing(next(reversed(self)))
        return super().popitem()

    def setdefault(self, key: Any, default: Any = None) -> Any:
        if key not in self:
            self[key] = default
        return self[key]

    def update(self, *others: Any, **entries: Any) -> None:
        for key, value in dict(*others, **entries).items():
            self[key] = value

    def __ior__(self, other: Any) -> Any:  # type: ignore[misc]
        self.update(other)
        return self

    def clear(self) -> None:
        self._ledger.keep(self, WHOLE, dict(dict.items(self)))
        super().clear()


class CopiedDict(TrackedDict):
    """A dictionary with mutable values, each of which a command may change in place once it has read it."""

    __slots__ = ()

    def _giving(self, key: Any) -> None:
        if self._ledger.notes is not None and key in self:
            self._ledger.keep_image(self, key, lambda: self._image(key))

    def _giving_all(self) -> None:
        if self._ledger.notes is not None:
            for key in super().__iter__():
                self._giving(key)

    def _image(self, key: Any) -> Image:
        return Image(ENCODER.encode(dict.__getitem__(self, key)), self._types.decode_value)

    def _changing(self, key: Any) -> None:
        # A value that is removed may be changed afterwards, when it is no longer found here.
        if key in self and (self._ledger.notes is not None or self._ledger.watchers):
            self._ledger.keep(self, key, self._image(key))
        else:
            super()._changing(key)

    def clear(self) -> None:
        self._giving_all()
        super().clear()

    def __getitem__(self, key: Any) -> Any:
        self._giving(key)
        return super().__getitem__(key)

    def get(self, key: Any, default: Any = None) -> Any:
        self._giving(key)
        return super().get(key, default)

    def values(self) -> Any:
        self._giving_all()
        return super().values()

    def items(self) -> Any:
        self._giving_all()
        return super().items()

    def copy(self) -> dict[Any, Any]:
        return dict(self.items())

    def __or__(self, other: Any) -> Any:
        return self.copy() | other

    def __ror__(self, other: Any) -> Any:
        return other | self.copy()

    def __iter__(self) -> Iterator[Any]:
        # Because this is overridden, copying the dictionary goes through __getitem__, so every value that is read is noticed.
        return super().__iter__()


class TrackedList(list[Any]):
    """A list of immutable items. An operation that moves items notes all of them, as it touches all of them anyway."""

    __slots__ = ("_ledger", "_types")

    def __init__(self, items: Any, ledger: Ledger, types: EntryTypes) -> None:
        super().__init__(items)
        self._ledger = ledger
        self._types = types

    def _put_back(self, key: Any, old: Any) -> None:
        if key is LENGTH:
            super().__delitem__(slice(old, None))
        elif key is LAST:
            super().append(old)
        elif key is WHOLE:
            super().__setitem__(slice(None), old)
        else:
            super().__setitem__(key, old)

    def _changing_all(self) -> None:
        self._ledger.keep(self, WHOLE, list(self))

    def append(self, item: Any) -> None:
        item = self._types.check_value(item)
        self._ledger.keep(self, LENGTH, len(self))
        super().append(item)

    def extend(self, items: Iterable[Any]) -> None:
        items = list(map(self._types.check_value, items))
        self._ledger.keep(self, LENGTH, len(self))
        super().extend(items)

    def __iadd__(self, items: Iterable[Any]) -> Any:  # type: ignore[misc]
        self.extend(items)
        return self

    def __setitem__(self, key: Any, item: Any) -> None:
        if isinstance(key, slice):
            item = list(map(self._types.check_value, item))
            self._changing_all()
        else:
            item = self._types.check_value(item)
            index = key.__index__()
            self._ledger.keep(self, index, self[index])
        super().__setitem__(key, item)

    def __delitem__(self, key: Any) -> None:
        self._changing_all()
        super().__delitem__(key)

    def pop(self, index: SupportsIndex = -1) -> Any:
        if self and index.__index__() in (-1, len(self) - 1):
            self._ledger.keep(self, LAST, self[-1])
        else:
            self._changing_all()
        return super().pop(index)

    def insert(self, index: SupportsIndex, item: Any) -> None:
        item = self._types.check_value(item)
        self._changing_all()
        super().insert(index, item)

    def remove(self, item: Any) -> None:
        self._changing_all()
        super().remove(item)

    def clear(self) -> None:
        self._changing_all()
        super().clear()

    def sort(self, **how: Any) -> None:
        self._changing_all()
        super().sort(**how)

    def reverse(self) -> None:
        self._changing_all()
        super().reverse()

    def __imul__(self, times: SupportsIndex) -> Any:
        self._changing_all()
        return super().__imul__(times)
