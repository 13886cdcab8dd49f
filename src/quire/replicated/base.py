"""The base class of replicated objects: declared fields, commands and queries, with equal state at every member."""

from __future__ import annotations

import asyncio
import typing
from collections.abc import Callable, Iterable, Iterator
from hashlib import sha256
from typing import Any, ClassVar, get_origin

import msgspec

from quire.model.errors import BadInput, ProtocolViolation
from quire.replicated.calls import Command, CommandCall, Query, method_hints, result_copier
from quire.replicated.fields import CopiedField, Field, read_field
from quire.replicated.home import Context, Home
from quire.replicated.ledger import Ledger
from quire.replicated.snapshots import Restoration, Snapshot
from quire.replicated.types import resolved, type_variables


class Replicated:
    """Base class of objects with a copy at every member.

    Annotated names are its fields; each begins with its default, or empty. `@quire.command` and `@quire.query` declare what
    may be called. Names that begin with `_` and are not annotated are local to this process: they are neither replicated nor
    restored. Pass the object to `quire.join` as `state`.
    """

    _fields: ClassVar[dict[str, Field]] = {}
    _commands: ClassVar[dict[str, CommandCall]] = {}
    _copies: ClassVar[dict[str, Any]] = {}
    _calls: ClassVar[dict[type, CommandCall]] = {}
    _read: ClassVar[Any]
    _ledger: Ledger
    _home: Home | None
    _context: Context | None
    _rebound: set[str]
    _waiters: list[asyncio.Future[None]]

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        variables = type_variables(cls)
        cls._fields = {}
        for name, hint in _field_hints(cls).items():
            if hasattr(Replicated, name):
                raise BadInput(f"{cls.__name__}.{name} is a reserved name of replicated objects; choose another")
            default = getattr(cls, name, msgspec.NODEFAULT)
            cls._fields[name] = field = read_field(cls.__name__, name, resolved(hint, variables), default)
            if isinstance(field, CopiedField):
                setattr(cls, name, field)
        cls._commands, cls._copies = {}, {}
        for name in dir(cls):
            value = getattr(cls, name)
            title = f"{cls.__name__}.{name}"
            if isinstance(value, Command | Query) and name in dir(Replicated):
                raise BadInput(f"{title} is a reserved name of replicated objects; choose another")
            if isinstance(value, Command):
                value.name = name
                cls._commands[name] = CommandCall(cls.__name__, name, value.method, variables)
            elif isinstance(value, Query):
                value.name = name
                hint = resolved(method_hints(title, value.method).get("return", Any), variables)
                cls._copies[name] = result_copier(title, hint)
        cls._calls = {call.struct: call for call in cls._commands.values()}
        cls._read = msgspec.msgpack.Decoder(typing.Union[tuple(cls._calls)] if cls._calls else None).decode  # noqa: UP007

    def __new__(cls, *_args: Any, **_fields: Any) -> typing.Self:
        self = super().__new__(cls)
        own = vars(self)
        own["_ledger"] = Ledger(cls.__name__)
        own["_home"] = own["_context"] = None
        own["_rebound"], own["_waiters"] = set(), []
        for name, field in cls._fields.items():
            own[name] = field.hold(field.decode(field.initial), self._ledger)
        return self

    def __init__(self, **fields: Any) -> None:
        """Begin with these values instead of the defaults. They must be equal at all members."""
        for name, value in fields.items():
            if name not in self._fields:
                raise TypeError(f"{type(self).__name__} has no field {name!r}")
            setattr(self, name, value)

    def __setattr__(self, name: str, value: Any) -> None:
        field = self._fields.get(name)
        if field is not None:
            value = field.check(value)
            self._ledger.keep(self, name, vars(self)[name])
            if self._ledger.notes is not None:
                # The command may still change the value through its own reference; it is tracked from the command's end on.
                self._rebound.add(name)
                vars(self)[name] = value
            else:
                vars(self)[name] = field.hold(value, self._ledger)
        elif name.startswith("_"):
            vars(self)[name] = value
        else:
            raise AttributeError(f"{type(self).__name__} has no field {name!r}; declare it with its type")

    def _put_back(self, name: str, old: Any) -> None:
        vars(self)[name] = old

    @property
    def context(self) -> Context:
        """The context of the command that is being executed: its caller, and when it was called."""
        if self._context is None:
            raise BadInput("there is a context only while a command is executed")
        return self._context

    def apply(self, payload: bytes, context: Context) -> Any:
        """Execute a command that `encode` made for this class, at any member. Raises what the command raises, and
        ProtocolViolation if there is no such command."""
        try:
            call = self._read(payload)
        except msgspec.DecodeError as error:
            what = f"it called {type(self).__name__} in a way that is not declared here ({error})"
            raise ProtocolViolation(context.member, what) from None
        own = vars(self)
        own["_context"] = context
        try:
            declared = self._calls[type(call)]
            return self._change(declared.method, *declared.arguments(call))
        except StopIteration as error:
            # A StopIteration would end a loop or coroutine that waits for the command.
            raise RuntimeError(f"{type(self).__name__}.{type(call).__name__} raised StopIteration") from error
        finally:
            own["_context"] = None

    def member_left(self, member: int) -> None:
        """Override this to react when a member is gone. It is called at every member, at the same point in the order, and
        may change the object as a command does."""

    def _change(self, method: Callable[..., Any], *arguments: Any) -> Any:
        """Run a method that changes the object; if it raises, its changes are undone."""
        ledger, own = self._ledger, vars(self)
        ledger.begin()
        try:
            result = method(self, *arguments)
        except BaseException:
            ledger.roll_back()
            self._rebound.clear()
            raise
        ledger.commit()
        if self._rebound:
            for name in self._rebound:
                own[name] = self._fields[name].hold(own[name], ledger)
            self._rebound.clear()
        if self._waiters:
            self._tell_waiters()
        return result

    def snapshot(self) -> Iterator[bytes]:
        """The current state in chunks, which may be read one by one while commands continue."""
        return Snapshot(self._ledger, self._fields, vars(self))

    def _restoration(self) -> Restoration:
        """For a snapshot that arrives chunk by chunk: `feed` each of them, then call `_restored`."""
        return Restoration(type(self).__name__, self._fields)

    def _restored(self, restoration: Restoration) -> None:
        """Replace the state by what was fed to this restoration. Raises BadInput, without effect, if it is incomplete."""
        restoration.finish(lambda name, value: vars(self).__setitem__(name, self._fields[name].hold(value, self._ledger)))
        self._tell_waiters()

    def restore(self, chunks: Iterable[bytes]) -> None:
        """Replace the state by the snapshot's. Raises BadInput, and changes nothing, if the snapshot is damaged."""
        restoration = self._restoration()
        for chunk in chunks:
            restoration.feed(chunk)
        self._restored(restoration)

    def digest(self) -> str:
        """Equal at two members if and only if their copies are, for logs and tests."""
        found = sha256()
        for name, field in self._fields.items():
            found.update(msgspec.msgpack.encode((name, vars(self)[field.name])))
        return found.hexdigest()[:16]

    @classmethod
    def _declaration(cls) -> str:
        """Equal at two members if and only if their declarations are."""
        words = [*(field.spelled for field in cls._fields.values()), *(call.spelled for call in cls._commands.values())]
        return f"{cls.__name__}-{sha256('; '.join(words).encode()).hexdigest()[:8]}"

    async def changed(self) -> None:
        """Wait until the next command is executed here, or a snapshot is restored."""
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiters.append(waiter)
        await waiter

    def _tell_waiters(self) -> None:
        waiters, self._waiters = self._waiters, []
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)

    def _bind(self, home: Home) -> None:
        """The object belongs to this group from now on, and only commands may change it."""
        if self._ledger.shut:
            raise BadInput(f"this {type(self).__name__} is already in a group; create another object for another group")
        self._home, self._ledger.shut = home, True

    def _release(self, why: Exception) -> None:
        """The group has ended; pending calls of `changed` raise `why`. The object keeps its state, and may be given to
        another group."""
        self._ledger.shut = False
        waiters, self._waiters = self._waiters, []
        for waiter in waiters:
            if not waiter.done():
                waiter.set_exception(why)

    def _home_of_calls(self) -> Home:
        if self._ledger.notes is not None:
            raise BadInput("a command cannot await another; move the shared code into a method without a decorator")
        if self._home is None:
            raise BadInput(f"this {type(self).__name__} is not in a group; pass it to quire.join as state")
        return self._home


def _field_hints(cls: type) -> dict[str, Any]:
    """The annotated names of a class and its bases, but for those of Replicated itself and of no instance."""
    names = {name for base in cls.__mro__[: cls.__mro__.index(Replicated)] for name in vars(base).get("__annotations__", {})}
    try:
        hints = typing.get_type_hints(cls, include_extras=True)
    except NameError as error:
        raise BadInput(f"{cls.__name__} has a type that is not defined at module level: {error}") from None
    return {name: hint for name, hint in hints.items() if name in names and get_origin(hint) is not ClassVar}
