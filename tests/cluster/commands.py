"""Several commands in one process, which starts Spark's own machinery once: python -m tests.cluster.commands JSON.

Prints a line of JSON for each: the exit code, and what the command said.
"""

from __future__ import annotations

import json
import sys

from typer.testing import CliRunner

from quire.cli.main import app


def main(commands: list[list[str]]) -> None:
    for command in commands:
        result = CliRunner().invoke(app, command)
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        print(json.dumps({"code": result.exit_code, "said": result.stdout, "error": result.stderr}), flush=True)


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
