"""The fields of a replicated object: initial value, representation, and encoding.

The representation of a field depends on its type alone. Immutable values are held as they are; changes of dictionaries, and of
lists of immutable values, are tracked per entry; any other value is copied as a whole when a command reads it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
from msgspec import inspect

from quire.model.errors import BadInput
from quire.replicated.ledger import Image, Ledger
from quire.replicated.tracked import CopiedDict, EntryTypes, TrackedDict, TrackedList
from quire.replicated.types import ENCODER, checker, empty_value, is_immutable, plain_types, read_type, spelled

Container = TrackedDict | TrackedList


class Field:
    """A field whose values are immutable, so that they need no tracking."""

    def __init__(self, name: str, title: str, hint: Any, info: inspect.Type) -> None:
        self.name = name
        self.hint = hint
        self.check = checker(hint, info, title)
        self.spelled = f"{name}: {spelled(info)}"
        self.decode: Callable[[bytes], Any] = msgspec.msgpack.Decoder(hint).decode
        self.initial = b""

    def hold(self, value: Any, ledger: Ledger) -> Any:  # noqa: ARG002
        """The value as the object holds it."""
        return value


class CopiedField(Field):
    """A field with mutable values: a descriptor of the class, which notices when a command reads the value."""

    def __get__(self, instance: Any, owner: type) -> Any:
        if instance is None:
            return self
        value = vars(instance)[self.name]
        vars(instance)["_ledger"].keep_image(instance, self.name, lambda: Image(ENCODER.encode(value), self.decode))
        return value

    def __set__(self, instance: Any, value: Any) -> None:
        vars(instance)[self.name] = value


class ContainerField(Field):
    """A field that is tracked per entry, and encoded in batches of entries."""

    def __init__(self, name: str, title: str, hint: Any, info: inspect.DictType | inspect.ListType) -> None:
        super().__init__(name, title, hint, info)
        keys, values = _entry_hints(hint)
        self.makes: Callable[[Any, Ledger, EntryTypes], Container]
        self.is_dict = isinstance(info, inspect.DictType)
        if isinstance(info, inspect.DictType):
            key_type, value_type, batch = info.key_type, info.value_type, list[tuple[keys, values]]  # type: ignore[valid-type]
            self.makes = TrackedDict if is_immutable(value_type) else CopiedDict
        else:
            key_type, value_type, batch = inspect.IntType(), info.item_type, list[values]  # type: ignore[valid-type]
            self.makes = TrackedList
        self.types = EntryTypes(
            check_key=checker(keys, key_type, f"a key of {title}"),
            check_value=checker(values, value_type, f"a value of {title}"),
            decode_value=msgspec.msgpack.Decoder(values).decode,
            plain_keys=plain_types(key_type),
            plain_values=plain_types(value_type),
        )
        self.decode_batch: Callable[[msgspec.Raw], list[Any]] = msgspec.msgpack.Decoder(batch).decode

    def hold(self, value: Any, ledger: Ledger) -> Any:
        held = isinstance(value, TrackedDict | TrackedList) and value._ledger is ledger
        return value if held else self.makes(value, ledger, self.types)


def _entry_hints(hint: Any) -> tuple[Any, Any]:
    while hasattr(hint, "__metadata__"):
        hint = hint.__origin__
    arguments = getattr(hint, "__args__", ())
    return (arguments[0] if arguments else Any), (arguments[-1] if arguments else Any)


def read_field(owner: str, name: str, hint: Any, default: Any) -> Field:
    """The declared field of this name, with this default if there is one. Raises BadInput with one sentence."""
    title = f"{owner}.{name}"
    info = read_type(hint, title)
    bare = info.type if isinstance(info, inspect.Metadata) else info
    field: Field
    if isinstance(bare, inspect.DictType) or (isinstance(bare, inspect.ListType) and is_immutable(bare.item_type)):
        field = ContainerField(name, title, hint, bare)
    else:
        field = (Field if is_immutable(info) else CopiedField)(name, title, hint, info)
    if isinstance(default, Field):
        default = default.decode(default.initial)
    elif default is msgspec.NODEFAULT:
        default = empty_value(info)
    if default is msgspec.NODEFAULT:
        raise BadInput(f"{title} needs a default, because all replicas start with the same state")
    try:
        field.initial = ENCODER.encode(default)
        field.decode(field.initial)
    except (TypeError, ValueError, OverflowError) as error:
        raise BadInput(f"{title} has a default that does not match its type: {error}") from None
    return field
