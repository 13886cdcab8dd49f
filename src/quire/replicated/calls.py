"""Commands and queries: the descriptors that replace the decorated methods of a replicated class.

A command is encoded, checked against its declaration, ordered, and executed at every member. A query runs at this member only,
when it has caught up. Arguments of commands and results of both are copies, so that no caller holds a reference into the state.
"""

from __future__ import annotations

import asyncio
import inspect
import re
import typing
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, TypeVar, overload

import msgspec

from quire.model.errors import BadInput
from quire.replicated.types import ENCODER, read_type, resolved, spelled

if TYPE_CHECKING:
    from quire.replicated.base import Replicated

P = ParamSpec("P")
R = TypeVar("R")

_NEVER_CHANGED = frozenset({int, float, str, bytes, bool, type(None)})


class Command(Generic[P, R]):
    """A method declared with `command`. Called on an object in a group, it is executed at every member."""

    def __init__(self, method: Callable[Concatenate[Any, P], R]) -> None:
        self.method = method
        self.name = method.__name__
        self.__doc__ = method.__doc__

    @overload
    def __get__(self, instance: None, owner: type) -> Command[P, R]: ...
    @overload
    def __get__(self, instance: Replicated, owner: type) -> BoundCommand[P, R]: ...
    def __get__(self, instance: Replicated | None, owner: type) -> Command[P, R] | BoundCommand[P, R]:
        if instance is None:
            return self
        bound = BoundCommand[P, R](instance, instance._commands[self.name])
        vars(instance)[self.name] = bound  # A cache: later lookups find it there.
        return bound


class Query(Generic[P, R]):
    """A method declared with `query`. Called on an object in a group, it sees the effect of every command that completed
    before."""

    def __init__(self, method: Callable[Concatenate[Any, P], R]) -> None:
        self.method = method
        self.name = method.__name__
        self.__doc__ = method.__doc__

    @overload
    def __get__(self, instance: None, owner: type) -> Query[P, R]: ...
    @overload
    def __get__(self, instance: Replicated, owner: type) -> BoundQuery[P, R]: ...
    def __get__(self, instance: Replicated | None, owner: type) -> Query[P, R] | BoundQuery[P, R]:
        if instance is None:
            return self
        bound = BoundQuery[P, R](instance, self.method, instance._copies[self.name])
        vars(instance)[self.name] = bound
        return bound


def command(method: Callable[Concatenate[Any, P], R]) -> Command[P, R]:
    """Declare a method as a command: it may change the object, and every member executes it, in the same order. It must do
    the same everywhere: use `self.context.now` instead of a clock, and no randomness, files or `await`. If it raises, its
    changes are undone."""
    return Command(method)


def query(method: Callable[Concatenate[Any, P], R]) -> Query[P, R]:
    """Declare a method as a query: it changes nothing, and its arguments may be anything."""
    return Query(method)


class BoundCommand(Generic[P, R]):
    """A command of one object."""

    __slots__ = ("_call", "_object")

    def __init__(self, instance: Replicated, call: CommandCall) -> None:
        self._object = instance
        self._call = call

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> asyncio.Future[R]:
        """Send the command at once. Await the future for the result of its execution here, or for what it raised."""
        return self._object._home_of_calls().submit(self._call.encode(args, kwargs), self._call.copy)


class BoundQuery(Generic[P, R]):
    """A query of one object."""

    __slots__ = ("_copy", "_method", "_object")

    def __init__(self, instance: Replicated, method: Callable[Concatenate[Any, P], R], copy: Callable[[R], R]) -> None:
        self._object = instance
        self._method = method
        self._copy = copy

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Coroutine[Any, Any, R]:
        """The answer, once everything that was executed anywhere before this call is executed here."""
        return self._after(self._object._home_of_calls().read_barrier(), *args, **kwargs)

    async def _after(self, caught_up: typing.Awaitable[None], *args: P.args, **kwargs: P.kwargs) -> R:
        await caught_up
        return self.local(*args, **kwargs)

    def local(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """The answer from this member's current state, at once; recent commands of others may be missing."""
        ledger = self._object._ledger
        if ledger.notes is not None:
            return self._method(self._object, *args, **kwargs)
        was, ledger.shut = ledger.shut, True
        try:
            return self._copy(self._method(self._object, *args, **kwargs))
        finally:
            ledger.shut = was


class CommandCall:
    """How calls of one command are checked, encoded and executed."""

    def __init__(self, owner: str, name: str, method: Callable[..., Any], variables: Mapping[Any, Any]) -> None:
        self.title = f"{owner}.{name}"
        hints = method_hints(self.title, method)
        parameters = list(inspect.signature(method).parameters.values())[1:]
        fields: list[Any] = []
        words = []
        for parameter in parameters:
            what = f"parameter {parameter.name} of {self.title}"
            if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
                raise BadInput(f"{what} takes any number of arguments; name each, or take a list")
            if parameter.name not in hints:
                raise BadInput(f"{what} needs a type")
            hint = resolved(hints[parameter.name], variables)
            words.append(f"{parameter.name}: {spelled(read_type(hint, what))}")
            fields.append((parameter.name, hint, *(() if parameter.default is parameter.empty else (parameter.default,))))
        self.names = [parameter.name for parameter in parameters]
        self.arguments: Callable[[msgspec.Struct], tuple[Any, ...]] = msgspec.structs.astuple
        """The arguments for the method, from a decoded call."""
        self.method = _by_position(
            method, sum(parameter.kind is not parameter.KEYWORD_ONLY for parameter in parameters), self.names
        )
        self.spelled = f"{name}({', '.join(words)})"
        try:
            self.struct = msgspec.defstruct(name, fields, array_like=True, tag=name, frozen=True, gc=False)
        except (TypeError, ValueError) as error:
            raise BadInput(f"{self.title} cannot be encoded: {error}") from None
        self._decode = msgspec.msgpack.Decoder(self.struct).decode
        self.copy = result_copier(self.title, resolved(hints.get("return", Any), variables))

    def encode(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bytes:
        """The call as bytes. Raises TypeError or BadInput if it is invalid, so that whatever is sent can be decoded
        everywhere."""
        try:
            call = self.struct(*args, **kwargs)
        except TypeError as error:
            raise TypeError(f"{self.title}: {error}") from None
        try:
            data = ENCODER.encode(call)
            self._decode(data)
        except msgspec.ValidationError as error:
            raise BadInput(f"{self.title}: {self._by_name(str(error))}") from None
        except (TypeError, ValueError, OverflowError, RecursionError) as error:
            raise BadInput(f"{self.title} has an argument that cannot be encoded: {error}") from None
        return data

    def _by_name(self, text: str) -> str:
        """An error message with the name of the parameter instead of its number."""
        return re.sub(r"at `\$\[(\d+)\]", lambda found: f"at `{self.names[int(found[1]) - 1]}", text)


def _by_position(method: Callable[..., Any], positional: int, names: Sequence[str]) -> Callable[..., Any]:
    """The method, called with all arguments in order, including its keyword-only ones."""
    if positional == len(names):
        return method

    def given(instance: object, *values: Any) -> Any:
        return method(instance, *values[:positional], **dict(zip(names[positional:], values[positional:], strict=True)))

    return given


def method_hints(title: str, method: Callable[..., Any]) -> dict[str, Any]:
    """The types that a method declares. Raises BadInput if others cannot call such a method."""
    if inspect.iscoroutinefunction(method) or inspect.isgeneratorfunction(method) or inspect.isasyncgenfunction(method):
        raise BadInput(f"{title} must be a plain method, neither a coroutine nor a generator")
    try:
        return typing.get_type_hints(method, include_extras=True)
    except NameError as error:
        raise BadInput(f"{title} has a type that is not defined at module level: {error}") from None


def result_copier(title: str, hint: Any) -> Callable[[Any], Any]:
    """A function that copies a result, so that the caller gets no reference into the state."""
    read_type(hint, f"the result of {title}", sets=True)
    decode = msgspec.msgpack.Decoder(hint).decode

    def copy(result: Any) -> Any:
        if type(result) in _NEVER_CHANGED:
            return result
        try:
            return decode(ENCODER.encode(result))
        except (TypeError, ValueError, OverflowError) as error:
            raise TypeError(f"{title} returned a value that does not match its declared type: {error}") from None

    return copy
