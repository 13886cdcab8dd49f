"""The `quire` command. One module a subcommand; this one holds what they share.

Bad input is one sentence on stderr and exit code 2, never a traceback. Ctrl-C ends with code 130, which
typer makes of it.
"""

from __future__ import annotations

import sys

import typer
from typer.exceptions import TyperException

from quire.cli import audit, bench, causality, export, importing, keys, member, order, report, run, serve, simulate, sweep
from quire.model.errors import QuireError

app = typer.Typer(
    name="quire",
    help="Ordered group communication: pick an order, run it, prove on Spark that it held.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)
app.command("run")(run.run)
app.command("member")(member.member)
app.command("serve")(serve.serve)
app.command("simulate")(simulate.simulate)
app.command("audit")(audit.audit)
app.command("causality")(causality.causality)
app.command("order")(order.order)
app.command("import")(importing.import_)
app.command("export")(export.export)
app.command("sweep")(sweep.sweep)
app.command("report")(report.report)
app.command("keys")(keys.keys)
app.command("bench")(bench.bench)

EXIT_BAD_INPUT = 2
EXIT_INTERRUPTED = 130


def main() -> None:
    """The entry point of the `quire` script."""
    try:
        # Outside its standalone mode typer returns the exit code, and raises what it would explain in a box of its own.
        code = app(standalone_mode=False)
    except QuireError as error:
        print(f"quire: {error}", file=sys.stderr)
        code = EXIT_BAD_INPUT
    except TyperException as error:
        message = error.format_message() if hasattr(error, "format_message") else str(error)
        # Asking for help by giving no arguments is not a mistake to explain.
        if message:
            print(f"quire: {' '.join(message.split())} (see quire --help)", file=sys.stderr)
        code = EXIT_BAD_INPUT
    if code == EXIT_INTERRUPTED:
        print("quire: interrupted", file=sys.stderr)
    sys.exit(code)
