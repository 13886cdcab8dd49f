"""Several commands in one process and one session, as starting either takes seconds: python -m tests.cluster.commands JSON.

Prints a line of JSON for each: the exit code, and what the command said.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from typer.testing import CliRunner

from quire.cli.app import app
from quire.pipeline import session as sessions

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@contextmanager
def one_session() -> Iterator[None]:
    """Every command gets the session that the first of them started, which is stopped in the end."""
    start = sessions.session
    started: dict[str, SparkSession] = {}
    with ExitStack() as stack:

        @contextmanager
        def session(master: str = "local[*]", *, brief: bool = True) -> Iterator[SparkSession]:
            if master not in started:
                started[master] = stack.enter_context(start(master, brief=brief))
            yield started[master]

        sessions.session = session
        yield


def main(commands: list[list[str]]) -> None:
    with one_session():
        for command in commands:
            result = CliRunner().invoke(app, command)
            if result.exception is not None and not isinstance(result.exception, SystemExit):
                raise result.exception
            print(json.dumps({"code": result.exit_code, "said": result.stdout, "error": result.stderr}), flush=True)


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
