"""The `quire` command and its subcommands, each of which is imported only when it is called.

Most subcommands use libraries that take a second to load. Showing help, or calling one, should not wait for the libraries of
the others; so the commands' modules, too, import what they need only when they are called.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Annotated, Any, NamedTuple

import typer
from typer.core import TyperGroup

from quire.cli.extras import needing_spark

EXIT_USAGE = 2


class Command(NamedTuple):
    function: str
    """The module in this package, and the function's name there."""
    summary: str
    """Its line in the list of commands; its own help says more."""
    needs_spark: bool = False
    """Whether it cannot work without the extra `spark`."""


COMMANDS = {
    "run": Command("run:run", "Run a live group, write its trace, prove its order."),
    "collect": Command("collect:collect", "Combine what the processes of a group recorded into one run."),
    "member": Command("member:member", "Run one member of a group over several hosts."),
    "serve": Command("serve:serve", "Run a sequencer of the sequencing service."),
    "watch": Command("watch:watch", "Watch what runs, on a page or in the terminal."),
    "simulate": Command("simulate:simulate", "Run a protocol in the seeded simulator, and write its trace."),
    "audit": Command("audit:audit", "Check which orders hold in a run's trace.", needs_spark=True),
    "causality": Command("causality:causality", "Say what happened before what in a trace.", needs_spark=True),
    "order": Command("order:order", "Put events of several sources in one exact order.", needs_spark=True),
    "import": Command("importing:import_", "Import the logs of another system as a run.", needs_spark=True),
    "export": Command("export:export", "Export a run for ShiViz.", needs_spark=True),
    "sweep": Command("sweep:sweep", "Measure a grid of simulations.", needs_spark=True),
    "report": Command("report:report", "Write one HTML file about a run or a sweep.", needs_spark=True),
    "journal": Command("journal:journal", "Show and check what a process keeps on disk."),
    "keys": Command("keys:keys", "Make certificates, or a secret, for a group."),
    "bench": Command("bench:bench", "Benchmark live groups against bare sockets and ZeroMQ."),
}

# Help in plain text: drawing it in boxes takes three times as long as everything else that is needed for it.
_STYLE: dict[str, Any] = {"rich_markup_mode": None, "pretty_exceptions_enable": False, "add_completion": False}


class _Commands(TyperGroup):
    """The group knows names and summaries only, until a command is called."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name, _, rest = super().resolve_command(ctx, args)
        return name, load(str(name)), rest


def load(name: str) -> Any:
    """A subcommand with its options."""
    module, _, function = COMMANDS[name].function.partition(":")
    command = getattr(import_module(f"quire.cli.{module}"), function)
    alone = typer.Typer(**_STYLE)
    alone.command(name)(needing_spark(command) if COMMANDS[name].needs_spark else command)
    return typer.main.get_command(alone)


app = typer.Typer(name="quire", cls=_Commands, **_STYLE)


def _show_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        print(f"quire {version('quire')}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def quire(
    context: typer.Context,
    version: Annotated[  # noqa: ARG001
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Ordered group communication: pick an order, run it, prove on Spark that it held."""
    if context.invoked_subcommand is None:
        print(context.get_help(), file=sys.stderr)
        raise typer.Exit(EXIT_USAGE)


def _called_by_name() -> None:
    """Stands for a subcommand until it is called."""


for _name, _command in COMMANDS.items():
    app.command(_name, help=_command.summary)(_called_by_name)
