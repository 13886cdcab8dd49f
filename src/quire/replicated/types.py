"""The types that fields and parameters may have: those that can be encoded, and behave the same at every replica.

Sets are refused, although they can be encoded: their iteration order differs from process to process, so a command that
iterates over one could do something different at each replica.
"""

from __future__ import annotations

import typing
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import msgspec
from msgspec import inspect

from quire.model.errors import BadInput

ENCODER = msgspec.msgpack.Encoder()

INT_MIN, INT_MAX = -(2**63), 2**64 - 1
"""The integers that MessagePack can hold."""

_ALWAYS_IMMUTABLE = (
    inspect.NoneType,
    inspect.BoolType,
    inspect.IntType,
    inspect.FloatType,
    inspect.StrType,
    inspect.BytesType,
    inspect.DateTimeType,
    inspect.TimeType,
    inspect.DateType,
    inspect.TimeDeltaType,
    inspect.UUIDType,
    inspect.DecimalType,
    inspect.EnumType,
    inspect.LiteralType,
)
_SCALARS: Mapping[type, frozenset[type]] = {
    inspect.NoneType: frozenset({type(None)}),
    inspect.BoolType: frozenset({bool}),
    inspect.FloatType: frozenset({float, int}),
    inspect.StrType: frozenset({str}),
    inspect.BytesType: frozenset({bytes}),
}
_EMPTY: tuple[tuple[type, object], ...] = (
    (inspect.AnyType, None),
    (inspect.NoneType, None),
    (inspect.BoolType, False),
    (inspect.IntType, 0),
    (inspect.FloatType, 0.0),
    (inspect.StrType, ""),
    (inspect.BytesType, b""),
    (inspect.VarTupleType, ()),
    (inspect.ListType, []),
    (inspect.DictType, {}),
)


def read_type(hint: object, what: str, *, sets: bool = False) -> inspect.Type:
    """What is known of a declared type; raises BadInput that begins with `what` where it cannot be replicated."""
    try:
        info = inspect.type_info(hint)
        msgspec.msgpack.Decoder(hint)
    except TypeError as error:
        raise BadInput(f"{what} cannot be encoded: {error}") from None
    for part in parts_of(info):
        if isinstance(part, inspect.CustomType):
            name = part.cls.__name__
            raise BadInput(
                f"{what} cannot be encoded, because {name} is not a type that msgspec supports; make it a msgspec.Struct"
            )
        if not sets and isinstance(part, inspect.SetType | inspect.FrozenSetType):
            raise BadInput(f"{what} has a set, whose order differs from process to process; use a dict with values of None")
    return info


def parts_of(info: inspect.Type, seen: set[type] | None = None) -> Iterator[inspect.Type]:
    """The type itself and all that it is made of, each class once."""
    seen = set() if seen is None else seen
    cls = getattr(info, "cls", None)
    if cls is not None:
        if cls in seen:
            return
        seen.add(cls)
    yield info
    for child in _children(info):
        yield from parts_of(child, seen)


def _children(info: inspect.Type) -> Iterator[inspect.Type]:
    match info:
        case inspect.Metadata():
            yield info.type
        case inspect.UnionType():
            yield from info.types
        case inspect.TupleType():
            yield from info.item_types
        case inspect.DictType():
            yield info.key_type
            yield info.value_type
        case inspect.CollectionType():
            yield info.item_type
        case inspect.StructType() | inspect.DataclassType() | inspect.TypedDictType() | inspect.NamedTupleType():
            for field in info.fields:
                yield field.type


def is_immutable(info: inspect.Type) -> bool:
    """Whether no value of this type can be changed in place."""
    return all(_is_immutable_itself(part) for part in parts_of(info))


def _is_immutable_itself(part: inspect.Type) -> bool:
    if isinstance(part, inspect.StructType):
        return part.cls.__struct_config__.frozen
    wrappers = (inspect.Metadata, inspect.UnionType, inspect.TupleType, inspect.VarTupleType, inspect.NamedTupleType)
    return isinstance(part, (*_ALWAYS_IMMUTABLE, *wrappers))


def empty_value(info: inspect.Type) -> object:
    """The initial value of a field without a default: None, zero or empty; NODEFAULT where there is no such value."""
    if isinstance(info, inspect.Metadata):
        return empty_value(info.type)
    if isinstance(info, inspect.UnionType):
        return None if any(isinstance(each, inspect.NoneType) for each in info.types) else msgspec.NODEFAULT
    if isinstance(info, inspect.StructType) and not any(field.required for field in info.fields):
        return info.cls()
    return next((value for kind, value in _EMPTY if isinstance(info, kind)), msgspec.NODEFAULT)


def checker(hint: object, info: inspect.Type, what: str) -> Callable[[Any], Any]:
    """A function that returns a value as it is to be held, and raises TypeError for one from which a replica could not be
    restored. It is called for each change of a field, so the common types are checked quickly."""
    kinds = info.types if isinstance(info, inspect.UnionType) else (info,)
    constrained = any(getattr(kind, name, None) is not None for kind in kinds for name in kind.__struct_fields__)
    if not constrained and all(type(kind) in _SCALARS or type(kind) is inspect.IntType for kind in kinds):
        plain = frozenset[type]().union(*(_SCALARS.get(type(kind), ()) for kind in kinds))
        integers = any(type(kind) is inspect.IntType for kind in kinds)
        return _scalar_checker(plain - {int}, integers, int in plain and not integers, what)

    def check(value: Any) -> Any:
        try:
            if msgspec.convert(value, hint) == value:
                return value
        except msgspec.ValidationError as error:
            raise TypeError(f"{what}: {error}") from None
        raise TypeError(f"{what} would be restored from a snapshot as another type than {type(value).__name__}")

    return check


def plain_types(info: inspect.Type) -> frozenset[type]:
    """The types of values whose contents need no check."""
    return frozenset({str}) if info == inspect.StrType() else frozenset({bytes}) if info == inspect.BytesType() else frozenset()


def _scalar_checker(plain: frozenset[type], integers: bool, as_float: bool, what: str) -> Callable[[Any], Any]:
    names = " or ".join(sorted(each.__name__ for each in (plain | {int} if integers else plain)))

    def check(value: Any) -> Any:
        kind = type(value)
        if kind in plain:
            return value
        if kind is int and as_float:
            return float(value)
        if not (kind is int and integers):
            raise TypeError(f"{what} must be {names}, not {kind.__name__}")
        if not INT_MIN <= value <= INT_MAX:
            raise OverflowError(f"{what} must fit into 64 bits, and {value} does not")
        return value

    return check


def spelled(info: inspect.Type) -> str:
    """A description of a type that is the same in every process, whatever its modules are called there."""
    names = []
    for part in parts_of(info):
        cls = getattr(part, "cls", None)
        fields = ",".join(field.name for field in getattr(part, "fields", ()))
        names.append(f"{type(part).__name__}{'' if cls is None else cls.__name__}({fields})")
    return " ".join(names)


def type_variables(cls: type) -> dict[Any, Any]:
    """What each type variable of a class and its bases stands for; what is left open may be anything."""
    found: dict[Any, Any] = {}
    for each in cls.__mro__:
        for base in vars(each).get("__orig_bases__", ()):
            parameters = getattr(typing.get_origin(base), "__parameters__", ())
            for variable, argument in zip(parameters, typing.get_args(base), strict=False):
                found.setdefault(variable, resolved(argument, found))
    return found


def resolved(hint: Any, variables: Mapping[Any, Any]) -> Any:
    """The hint with what its type variables stand for."""
    if isinstance(hint, typing.TypeVar):
        return variables.get(hint, Any)
    parameters = getattr(hint, "__parameters__", ())
    if not parameters or isinstance(hint, type):
        return hint
    return hint[tuple(variables.get(each, Any) for each in parameters)]
