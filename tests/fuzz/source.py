"""An input of the fuzzer, used up from the front: bytes, numbers, and fields of any type that packets have."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum
from functools import cache
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import msgspec

from quire.model.messages import Body, Run, make_run
from quire.model.packets import Packet

_NUMBERS = (
    0,
    1,
    2,
    3,
    4,
    7,
    -1,
    127,
    128,
    2**31,
    2**32,
    2**32 + 1,
    2**53,
    2**62,
    2**63 - 2,
    2**63 - 1,
    2**63,
    2**64 - 1,
    -(2**63),
)


class Bytes:
    """Zeros come after its end. `names` are the strings that mean something where the input goes, `size` how many
    entries vectors have there."""

    def __init__(self, data: bytes, names: Sequence[str] = ("",), size: int = 3) -> None:
        self.data = data
        self.names = names
        self.size = size

    def take(self, count: int) -> bytes:
        piece, self.data = self.data[:count], self.data[count:]
        return piece

    def byte(self) -> int:
        return self.take(1)[0] if self.data else 0

    def number(self) -> int:
        """Mostly small; the others are those at which something might overflow."""
        choice = self.byte()
        return choice % 8 if choice < 160 else _NUMBERS[choice % len(_NUMBERS)]

    def text(self) -> str:
        choice = self.byte()
        if choice < 224:
            return self.names[choice % len(self.names)]
        return ("", "\0", "\ud7ff", "x" * 300)[choice % 4] + self.take(choice % 3).decode("latin-1")

    def packet(self, kinds: Sequence[type[Packet]]) -> Packet:
        """A packet of one of these kinds with fields that the input chooses."""
        kind = kinds[self.byte() % len(kinds)]
        return kind(**{name: self.field(what) for name, what in _fields(kind).items()})

    def field(self, what: Any) -> Any:
        """A value of this type."""
        simple: dict[Any, Callable[[], Any]] = {
            int: self.number,
            bool: lambda: self.byte() % 2 == 1,
            str: self.text,
            Run: self._run,
            NoneType: lambda: None,
        }
        if what in simple:
            return simple[what]()
        if what is bytes:
            return self.take(self.byte() % 4)
        origin, arguments = get_origin(what), get_args(what)
        if isinstance(what, type) and issubclass(what, Enum):
            return [*what][self.byte() % len(what)]
        if origin is Literal:
            return arguments[self.byte() % len(arguments)]
        if origin in (Union, UnionType):
            return self.field(arguments[self.byte() % len(arguments)])
        if origin is dict:
            return {self.field(arguments[0]): self.field(arguments[1]) for _ in range(self.byte() % 4)}
        if origin is list:
            return [self.field(arguments[0]) for _ in range(self.byte() % 4)]
        if origin is tuple and arguments[-1] is not ...:
            return tuple(map(self.field, arguments))
        if origin is tuple:
            return tuple(self.field(arguments[0]) for _ in range(self._count()))
        return what(*map(self.field, _fields(what).values()))

    def _count(self) -> int:
        return (self.size, self.size, self.size, self.byte() % 5)[self.byte() % 4]

    def _run(self) -> Run:
        count, choice = self.number(), self.byte()
        origin, first = (choice & 3, self.number()) if choice & 64 else ((0, 2)[choice & 1], choice >> 4)
        if choice & 128 and 0 < count < 100:
            return make_run(origin, first, [b"x" * (number % 3) for number in range(count)])
        payload = bytes(self.byte())
        lengths = tuple(self.number() for _ in range(self.byte() % 4))
        return Run(origin, first, count, Body(payload, self.number(), lengths), self.number() if choice & 32 else 0)


@cache
def _fields(kind: Any) -> dict[str, Any]:
    """The fields of a struct or a named tuple, in order."""
    hints = get_type_hints(kind)
    names = kind.__struct_fields__ if issubclass(kind, msgspec.Struct) else kind._fields
    return {name: hints[name] for name in names}
