"""`quire audit`: which orders hold in a trace, and why not where they do not."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer
from rich.console import Console
from rich.table import Table

from quire.model.errors import BadInput
from quire.model.orders import Guarantee
from quire.pipeline.layout import check_segments, lay_out
from quire.trace.store import open_run

if TYPE_CHECKING:
    from quire.pipeline import Audit

_EXIT_CODES = {"holds": 0, "violated": 1, "undecided": 3}
_COLOURS = {"holds": "green", "violated": "red", "undecided": "yellow"}


def audit(
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="The run directory.")],
    expect: Annotated[
        str | None, typer.Option(help="Orders that must hold, like causal,total; what the run promises if not given.")
    ] = None,
    master: Annotated[
        str, typer.Option(help="Where Spark runs: local[N], spark://…, or sc://… for Spark Connect.")
    ] = "local[*]",
    segments: Annotated[int | None, typer.Option(help="Pieces to judge in parallel; the verdict is the same for any.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON only.")] = False,
) -> None:
    """Check which orders hold in a run's trace, on Spark.

    Exit code 0: what was expected holds; 1: it is violated, with witnesses; 2: bad input; 3: it could not be decided.
    """
    expected = parse_expectation(expect)
    # Before Spark is started, which takes seconds, find out whether there is anything to audit.
    check_segments(segments)
    lay_out(open_run(directory))
    result = _audit(directory, expected, master, segments)
    if json:
        sys.stdout.buffer.write(msgspec.json.encode(result) + b"\n")
        sys.stdout.buffer.flush()
    else:
        _show(result)
    raise typer.Exit(_EXIT_CODES[result.verdict])


def parse_expectation(text: str | None) -> list[Guarantee] | None:
    """The orders in a list like `causal,total`; None for none."""
    if text is None:
        return None
    names = [name.strip() for name in text.split(",")]
    for name in names:
        if name not in set(Guarantee):
            raise BadInput(f"--expect knows no order {name!r}; choose from {', '.join(Guarantee)}")
    return [Guarantee(name) for name in names]


def _audit(directory: Path, expected: list[Guarantee] | None, master: str, segments: int | None) -> Audit:
    from quire.pipeline.auditor import audit as run_audit
    from quire.pipeline.session import session

    with _progress("starting Spark") as say, session(master) as spark:
        from pyspark.errors import PySparkException

        say(f"auditing {directory}")
        try:
            return run_audit(spark, directory, expect=expected, segments=segments)
        except PySparkException as error:
            reason = str(error).strip().splitlines()[0]
            print(f"quire: could not decide, because Spark failed: {reason}", file=sys.stderr)
            raise typer.Exit(_EXIT_CODES["undecided"]) from None


class _Say:
    """Replaces the line that a person sees while waiting, where a person watches."""

    def __init__(self, console: Console, text: str) -> None:
        self._status = console.status(text)
        self.shown = console.is_terminal

    def __call__(self, text: str) -> None:
        if self.shown:
            self._status.update(text)

    def start(self) -> None:
        if self.shown:
            self._status.start()

    def stop(self) -> None:
        if self.shown:
            self._status.stop()


@contextmanager
def _progress(text: str) -> Iterator[_Say]:
    say = _Say(Console(stderr=True), text)
    say.start()
    try:
        yield say
    finally:
        say.stop()


def _show(result: Audit) -> None:
    console = Console(highlight=False)
    table = Table(box=None, pad_edge=False, header_style="bold")
    for title, justify in (("check", "left"), ("verdict", "left"), ("violations", "right"), ("because", "left")):
        table.add_column(title, justify="right" if justify == "right" else "left", overflow="fold")
    for guarantee, check in result.checks.items():
        name = str(guarantee) if guarantee in result.expected else f"({guarantee})"
        colour = _COLOURS[check.verdict] if guarantee in result.expected else "dim"
        table.add_row(name, f"[{colour}]{check.verdict}[/]", f"{check.violations:,}", check.because)
    console.print(table)
    console.print(
        f"{result.verdict}: expected {', '.join(result.expected)} ({result.expectation}); "
        f"{result.events:,} events, {result.messages:,} messages, {result.processes} processes "
        f"in {result.wall_s:.1f} s, {result.events_per_s:,.0f} events/s",
        soft_wrap=True,
    )
