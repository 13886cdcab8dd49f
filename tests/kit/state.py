"""Copying and comparing the state of a protocol object.

Protocols keep their state in plain fields, and whatever is in lists, dicts or deques of theirs is immutable.
So a state can be turned into one hashable value, and copied much faster than `copy.deepcopy` would.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable
from typing import Any, TypeVar

import msgspec

_ATOMS = (int, str, bytes, bool, float, type(None), msgspec.Struct, tuple, frozenset)

Thing = TypeVar("Thing")


def freeze(thing: Any) -> Hashable:
    """A hashable value that is equal for two objects exactly if their states are."""
    if isinstance(thing, _ATOMS):
        return thing
    if isinstance(thing, list | deque):
        return tuple([freeze(item) for item in thing])
    if isinstance(thing, dict):
        return frozenset((key, freeze(value)) for key, value in thing.items())
    if isinstance(thing, set):
        return frozenset(thing)
    return (type(thing).__qualname__, *[(name, freeze(value)) for name, value in sorted(vars(thing).items())])


def clone(thing: Thing) -> Thing:
    """An independent copy."""
    result: Any
    if isinstance(thing, _ATOMS):
        return thing
    if isinstance(thing, list):
        result = [clone(item) for item in thing]
    elif isinstance(thing, deque):
        result = deque(map(clone, thing), thing.maxlen)
    elif isinstance(thing, dict):
        result = {key: clone(value) for key, value in thing.items()}
    elif isinstance(thing, set):
        result = set(thing)
    else:
        result = object.__new__(type(thing))
        result.__dict__.update({name: clone(value) for name, value in vars(thing).items()})
    return result  # type: ignore[no-any-return]
