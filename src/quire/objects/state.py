"""The state of an object as bytes, for a replica of it at a member that comes back.

The state is what Python takes for it: the attributes, or whatever `__getstate__` returns and `__setstate__` takes. It must be
plain data that MessagePack gives back as it was, because replicas that differ in a tuple and a list are not equal.
"""

from __future__ import annotations

from typing import Any

import msgspec

from quire.model.errors import BadInput
from quire.objects.declare import Object


def captured(thing: Object) -> bytes:
    """The state of an object as bytes. Raises BadInput if it is not plain data."""
    state: Any = thing.__getstate__()
    try:
        data = msgspec.msgpack.encode(state)
        same = msgspec.msgpack.decode(data) == state
    except (TypeError, ValueError, OverflowError, msgspec.DecodeError) as error:
        raise BadInput(f"the state of a {type(thing).__name__} is not plain data: {error}") from None
    if not same:
        raise BadInput(f"the state of a {type(thing).__name__} is not plain data: MessagePack has no tuples, sets or objects")
    return data


def restore(thing: Object, data: bytes) -> None:
    """Give a new object this state. Raises BadInput if these bytes are not the state of one."""
    try:
        state = msgspec.msgpack.decode(data)
        if hasattr(thing, "__setstate__"):
            thing.__setstate__(state)
        else:
            vars(thing).clear()
            vars(thing).update(state or {})
    except (TypeError, ValueError, msgspec.DecodeError) as error:
        raise BadInput(f"this is not the state of a {type(thing).__name__}: {error}") from error
