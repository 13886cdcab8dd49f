"""Options in groups: what a struct's fields are to the command line, and that `quire order` has all of its own."""

from __future__ import annotations

import inspect
from typing import Annotated

import msgspec
import typer
from typer.testing import CliRunner

from quire.cli.app import load
from quire.cli.grouping import grouped
from quire.cli.order import order


class Paint(msgspec.Struct, frozen=True, kw_only=True):
    colour: Annotated[str, typer.Option(help="What it looks like.")] = "red"
    coats: Annotated[int, typer.Option("--coats", "-n", help="How often.")] = 1
    dry: Annotated[bool, typer.Option("--dry", help="Wait until it is.")] = False


SEEN: list[tuple[str, Paint, bool]] = []


@grouped
def paint(what: Annotated[str, typer.Argument()], by: Paint, json: Annotated[bool, typer.Option("--json")] = False) -> None:
    """Paint something."""
    SEEN.append((what, by, json))


def test_the_fields_of_a_struct_are_options_in_their_order() -> None:
    app = typer.Typer()
    app.command()(paint)
    SEEN.clear()

    for arguments in (["door"], ["door", "--colour", "blue", "-n", "3", "--dry", "--json"]):
        assert CliRunner().invoke(app, arguments).exit_code == 0

    assert [("door", Paint(), False), ("door", Paint(colour="blue", coats=3, dry=True), True)] == SEEN
    said = CliRunner().invoke(app, ["--help"]).stdout
    assert said.index("What it looks like.") < said.index("How often.") < said.index("Wait until it is.")
    assert "Paint something." in said


def test_the_order_of_events_takes_few_parameters_and_all_its_options() -> None:
    """Each of them is in docs/ordering.md; the function behind them sees groups."""
    assert len(inspect.signature(order.__wrapped__, follow_wrapped=False).parameters) <= 8  # type: ignore[attr-defined]
    assert [option.name for option in load("order").params if option.name != "help"] == [
        "events", "out", "causal", "source", "clock", "vector", "id", "after", "sources", "omit_superseded", "object", "op",
        "txn", "write", "commit", "within", "to", "force", "stream", "idle", "heartbeat", "transaction",
        "transaction_position", "schema", "files_per_batch", "once", "end", "master", "remote", "json",
    ]  # fmt: skip
