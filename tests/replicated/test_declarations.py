"""What can be declared, what is refused when the class is defined, and in which words."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import msgspec
import pytest

import quire
from quire.replicated.home import Context
from quire.replicated.tracked import CopiedDict, TrackedDict, TrackedList

ROOT = Path(__file__).parents[2]
HERE = Context(0, 0, 1.0)


class Stranger:
    pass


class Point(msgspec.Struct, frozen=True):
    x: int = 0
    y: int = 0


class Pen(msgspec.Struct):
    colour: str = "red"


def execute(thing: quire.Replicated, name: str, *args: Any, **kwargs: Any) -> Any:
    """Execute a command here, as a group does it at every member."""
    return thing.apply(thing._commands[name].encode(args, kwargs), HERE)


def field_of_strangers() -> None:
    class Board(quire.Replicated):
        items: dict[str, Stranger]


def field_with_a_set() -> None:
    class Board(quire.Replicated):
        items: dict[str, set[int]]


def field_without_a_default() -> None:
    class Board(quire.Replicated):
        corner: tuple[int, int]


def field_with_a_wrong_default() -> None:
    class Board(quire.Replicated):
        count: int = "none"  # type: ignore[assignment]


def field_with_a_name_that_is_taken() -> None:
    class Board(quire.Replicated):
        context: int  # type: ignore[assignment]


def parameter_of_strangers() -> None:
    class Board(quire.Replicated):
        @quire.command
        def put(self, value: list[Stranger]) -> None: ...


def parameter_without_a_type() -> None:
    class Board(quire.Replicated):
        @quire.command
        def put(self, value) -> None: ...  # type: ignore[no-untyped-def]


def any_number_of_parameters() -> None:
    class Board(quire.Replicated):
        @quire.command
        def put(self, *values: int) -> None: ...


def coroutine() -> None:
    class Board(quire.Replicated):
        @quire.command
        async def put(self, value: int) -> None: ...


def result_of_strangers() -> None:
    class Board(quire.Replicated):
        @quire.query
        def get(self) -> Stranger: ...  # type: ignore[empty-body]


def command_with_a_name_that_is_taken() -> None:
    class Board(quire.Replicated):
        @quire.command
        def restore(self, value: int) -> None: ...  # type: ignore[override]


@pytest.mark.parametrize(
    ("declare", "words"),
    [
        (field_of_strangers, r"^Board\.items cannot be encoded, because Stranger is not a type that msgspec supports"),
        (field_with_a_set, r"^Board\.items has a set, whose order differs from process to process; use a dict"),
        (field_without_a_default, r"^Board\.corner needs a default"),
        (field_with_a_wrong_default, r"^Board\.count has a default that does not match its type"),
        (field_with_a_name_that_is_taken, r"^Board\.context is a reserved name of replicated objects"),
        (parameter_of_strangers, r"^parameter value of Board\.put cannot be encoded, because Stranger is not a type"),
        (parameter_without_a_type, r"^parameter value of Board\.put needs a type"),
        (any_number_of_parameters, r"^parameter values of Board\.put takes any number of arguments"),
        (coroutine, r"^Board\.put must be a plain method"),
        (result_of_strangers, r"^the result of Board\.get cannot be encoded"),
        (command_with_a_name_that_is_taken, r"^Board\.restore is a reserved name of replicated objects"),
    ],
)
def test_what_cannot_be_replicated_is_refused_when_the_class_is_defined(declare: Callable[[], None], words: str) -> None:
    with pytest.raises(quire.BadInput, match=words):
        declare()


class Everything(quire.Replicated):
    number: int
    text: str
    maybe: int | None
    given: int = 7
    points: dict[str, Point]
    pens: dict[str, Pen]
    names: list[str]
    drawn: list[Pen]
    pen: Pen
    point: Point
    anything: Any
    small: Annotated[int, msgspec.Meta(ge=0)]

    @quire.command
    def draw(self, name: str, *, colour: str = "blue") -> str:
        self.pens.setdefault(name, Pen()).colour = colour
        self.drawn.append(Pen(colour))
        self.pen.colour = colour
        self.names = [name]
        self.names.append(colour)
        self.number += 1
        if colour == "none":
            raise ValueError(colour)
        return self.pens[name].colour

    @quire.command
    def spoil(self, field: str, value: Any) -> None:
        if field == "points":
            self.points["spoilt"] = value
        elif field == "names":
            self.names.append(value)
        else:
            setattr(self, field, value)

    @quire.command
    def find(self, name: str) -> str:
        return next(each for each in self.names if each == name)

    @quire.query
    def cheat(self) -> int:
        self.number += 1
        return self.number


def test_fields_begin_empty_or_with_their_default_each_object_with_its_own() -> None:
    one, two = Everything(number=3), Everything()
    assert (one.number, two.number, two.text, two.maybe, two.given) == (3, 0, "", None, 7)
    assert (two.points, two.names, two.pen, two.point, two.anything) == ({}, [], Pen(), Point(), None)
    execute(one, "draw", "a")
    assert (two.pens, two.drawn, two.pen) == ({}, [], Pen())
    with pytest.raises(TypeError, match="Everything has no field 'nothing'"):
        Everything(nothing=1)
    with pytest.raises(AttributeError, match="Everything has no field 'nothing'; declare it with its type"):
        one.nothing = 1


def test_fields_are_tracked_by_the_entry_where_that_is_possible() -> None:
    thing = Everything()
    assert type(thing.points) is TrackedDict
    assert type(thing.pens) is CopiedDict
    assert type(thing.names) is TrackedList
    assert type(thing.drawn) is list


def test_a_failed_command_is_taken_back_in_every_kind_of_field() -> None:
    thing = Everything()
    assert execute(thing, "draw", "a") == "blue"
    before = thing.digest()
    with pytest.raises(ValueError, match="none"):
        execute(thing, "draw", "a", colour="none")
    with pytest.raises(ValueError, match="none"):
        execute(thing, "draw", "b", colour="none")
    assert thing.digest() == before
    assert type(thing.names) is TrackedList
    assert execute(thing, "draw", "b", colour="green") == "green"
    assert (thing.names, thing.number) == (["b", "green"], 2)
    assert type(thing.names) is TrackedList


@pytest.mark.parametrize(
    ("field", "value", "error"),
    [
        ("number", "x", TypeError),
        ("number", 2**64, OverflowError),
        ("small", -1, TypeError),
        ("maybe", 1.5, TypeError),
        ("names", 3, TypeError),
        ("points", {"x": "y"}, TypeError),
        ("points", {"x": 1}, TypeError),
        ("text", None, TypeError),
    ],
)
def test_a_command_cannot_give_a_field_what_no_replica_could_be_restored_with(
    field: str, value: Any, error: type[Exception]
) -> None:
    thing = Everything()
    before = thing.digest()
    if value == 2**64:
        with pytest.raises(error):
            thing._change(lambda it: setattr(it, field, value))
    else:
        with pytest.raises(error):
            execute(thing, "spoil", field, value)
    assert thing.digest() == before


def test_a_query_cannot_change_anything() -> None:
    thing = Everything()
    with pytest.raises(quire.BadInput, match="outside a command"):
        thing.cheat.local()
    assert thing.number == 0


def test_a_command_that_ends_an_iteration_by_mistake_does_not_end_that_of_its_caller() -> None:
    with pytest.raises(RuntimeError, match=r"Everything\.find raised StopIteration"):
        execute(Everything(), "find", "x")


def test_a_command_cannot_call_another_through_the_group() -> None:
    class Nested(quire.Replicated):
        count: int

        @quire.command
        def inner(self) -> None:
            self.count += 1

        @quire.command
        def outer(self) -> None:
            self.count += 1
            self.inner()

    thing = Nested()
    with pytest.raises(quire.BadInput, match="a command cannot await another"):
        execute(thing, "outer")
    assert thing.count == 0


def test_there_is_a_context_only_in_a_command() -> None:
    with pytest.raises(quire.BadInput, match="only while a command is executed"):
        Everything().context  # noqa: B018


def test_a_generic_class_with_types_checks_them() -> None:
    typed, untyped = quire.ReplicatedDict[str, int](), quire.ReplicatedDict[Any, Any]()
    execute(typed, "set", "a", 1)
    execute(untyped, "set", "a", "b")
    with pytest.raises(quire.BadInput, match=r"ReplicatedDict\[str, int\]\.set: Expected `int`, got `str` - at `value`"):
        execute(typed, "set", "a", "b")
    assert type(typed) is quire.ReplicatedDict[str, int]
    assert typed._declaration() != untyped._declaration()

    class Prices(quire.ReplicatedDict[str, float]):
        currency: str = "EUR"

    prices = Prices()
    execute(prices, "set", "tea", 2)
    assert prices.entries == {"tea": 2.0}
    with pytest.raises(quire.BadInput, match="Expected `float`, got `str`"):
        execute(prices, "set", "tea", "x")


def test_two_classes_have_the_same_declaration_only_if_they_declare_the_same() -> None:
    namespace: dict[str, Any] = {"quire": quire}
    source = "class Board(quire.Replicated):\n    items: dict[str, {}]\n"
    declared = []
    for hint in ("int", "int", "str"):
        exec(source.format(hint), namespace)
        declared.append(namespace["Board"]._declaration())
    assert declared[0] == declared[1] != declared[2]


def test_a_type_that_is_not_known_at_the_top_of_its_module_is_named() -> None:
    class Local(msgspec.Struct):
        x: int = 0

    def declare() -> None:
        class Board(quire.Replicated):
            items: dict[str, Local]

    with pytest.raises(quire.BadInput, match=r"Board has a type that is not defined at module level: name 'Local'"):
        declare()


SAMPLE = """
import quire

class Board(quire.Replicated):
    items: dict[str, int]

    @quire.command
    def put(self, key: str, value: int, *, twice: bool = False) -> int:
        self.items[key] = value
        return len(self.items)

    @quire.query
    def get(self, key: str) -> int | None:
        return self.items.get(key)

async def use(board: Board, words: quire.ReplicatedDict[str, float], tasks: quire.ReplicatedQueue[bytes]) -> None:
    reveal_type(await board.put("a", 1, twice=True))
    reveal_type(await board.get("a"))
    reveal_type(board.get.local("a"))
    reveal_type(await words.get("a"))
    reveal_type(await words.set("a", 1.5))
    reveal_type(await tasks.get())
    await board.put("a", "x")
    await board.put("a")
    board.get.local(1)
    await words.set(1, 1.5)

async def locked(lock: quire.Lock, election: quire.Election) -> None:
    async with lock.hold() as lease:
        reveal_type(lease.token)
    async for leader in election.changes():
        reveal_type(leader)

async def main(board: Board) -> None:
    async with quire.join("board", me=0, members=["127.0.0.1:7000"], order="total", state=board):
        pass
    async with quire.join("board", me=0, members=["127.0.0.1:7000"], order="total", state={"board": board}):
        pass
"""


def test_type_checkers_know_what_is_called_and_what_comes_back(tmp_path: Path) -> None:
    (tmp_path / "sample.py").write_text(SAMPLE)
    # With the cache of `make lint`, which knows everything but the sample.
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--no-error-summary", tmp_path / "sample.py"],
        capture_output=True, text=True, cwd=ROOT, env={"PATH": ""}, check=False,
    )  # fmt: skip
    revealed = [line.rpartition("is ")[2].strip('"') for line in done.stdout.splitlines() if "Revealed" in line]
    expected = [
        "int",
        "int | None",
        "int | None",
        "float | None",
        "None",
        "bytes",
        "int",
        "quire.replicated.leases.Lease | None",
    ]
    assert [each.replace("builtins.", "") for each in revealed] == expected, done.stdout
    errors = [line.partition("error: ")[2] for line in done.stdout.splitlines() if "error: " in line]
    assert len(errors) == 4, done.stdout
    assert 'incompatible type "str"; expected "int"' in errors[0]
    assert 'Missing positional argument "value"' in errors[1]
    assert 'incompatible type "int"; expected "str"' in errors[2]
    assert 'incompatible type "int"; expected "str"' in errors[3]


def test_a_call_in_no_group_fails_at_once_and_not_only_when_it_is_awaited() -> None:
    async def main() -> None:
        with pytest.raises(quire.BadInput, match="not in a group"):
            quire.ReplicatedCounter().add()
        with pytest.raises(quire.BadInput, match="not in a group"):
            await quire.ReplicatedCounter().get()

    asyncio.run(main())
