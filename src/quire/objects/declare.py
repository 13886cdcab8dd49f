"""Declaring classes of objects: which methods are operations, which of them conflict, and how one is undone."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, ClassVar, overload

from quire.model.errors import BadInput
from quire.protocols.objects.declarations import ObjectType, Pair, declare

Method = Callable[..., Any]


class Operation:
    """A method that others may call, declared with `operation`."""

    def __init__(self, method: Method, calls: bool) -> None:
        self.name = method.__name__
        self.method = method
        self.calls = calls
        self.taken_back_by: Method | None = None
        self.__doc__ = method.__doc__

    def undo(self, method: Method) -> Method:
        """Declare how the completed operation is undone if the call that it belongs to fails later. The method gets the same
        arguments, conflicts with whatever the operation conflicts with, and may not call others."""
        self.taken_back_by = method
        return method

    def __get__(self, instance: object, owner: type) -> Any:
        # Within the object, an operation is an ordinary method.
        return self if instance is None else self.method.__get__(instance, owner)


@overload
def operation(method: Method) -> Operation: ...
@overload
def operation(*, calls: bool = True) -> Callable[[Method], Operation]: ...
def operation(method: Method | None = None, *, calls: bool = True) -> Operation | Callable[[Method], Operation]:
    """Declare a method as an operation: `async def name(self, call, …)`. With `calls=False` it promises to make no calls,
    and calls that wait for it never have to give way."""
    if method is not None:
        return Operation(method, calls)
    return lambda method: Operation(method, calls)


class Object:
    """Base class of objects. Two operations conflict unless declared otherwise: list those that conflict in `conflicts`
    (operations named there conflict with each other only where it says so), and those that do not in `compatible`."""

    conflicts: ClassVar[Iterable[Pair]] = ()
    compatible: ClassVar[Iterable[Pair]] = ()
    operations: ClassVar[dict[str, Operation]] = {}
    type: ClassVar[ObjectType] = declare(())

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        found = {name: value for name, value in vars(cls).items() if isinstance(value, Operation)}
        cls.operations = {**cls.operations, **found}
        try:
            cls.type = declare(
                cls.operations,
                cls.conflicts,
                cls.compatible,
                leaves=[name for name, each in cls.operations.items() if not each.calls],
                undoable=[name for name, each in cls.operations.items() if each.taken_back_by is not None],
            )
        except BadInput as error:
            raise BadInput(f"{cls.__name__}: {error}") from None
