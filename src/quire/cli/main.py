"""The entry point of the `quire` script: turns errors and interruptions of all commands into messages and exit codes.

Bad input gives one sentence on stderr and exit code 2. A correct command that could not be carried out, for example because the
disk is full, gives one sentence and exit code 3. An interrupted command says so and exits with 130. There is never a traceback,
from the first moment to the last, so this module imports nothing slow before it can handle an interruption.
"""

from __future__ import annotations

import os
import signal
import sys
from typing import NoReturn

EXIT_BAD_INPUT = 2
EXIT_FAILED = 3
EXIT_INTERRUPTED = 130

_INTERRUPTIONS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def main() -> NoReturn:
    try:
        for number in _INTERRUPTIONS[1:]:
            if signal.getsignal(number) == signal.SIG_DFL:
                signal.signal(number, _interrupt)
        code = _run()
    except KeyboardInterrupt:
        code = EXIT_INTERRUPTED
    for number in _INTERRUPTIONS:
        signal.signal(number, signal.SIG_IGN)  # It is ending.
    if code == EXIT_INTERRUPTED:
        print("quire: interrupted", file=sys.stderr)
    sys.exit(_told(code))


def _interrupt(*_: object) -> NoReturn:
    raise KeyboardInterrupt


def _run() -> int:
    from typer.exceptions import TyperException

    from quire.cli.app import app
    from quire.files.errors import reason_of
    from quire.model.errors import CannotWrite, QuireError, SparkFailed

    try:
        # Outside its standalone mode typer returns the exit code, and raises what it would explain in a box of its own.
        return app(standalone_mode=False) or 0
    except (CannotWrite, SparkFailed) as error:
        return _complain(error, EXIT_FAILED)
    except QuireError as error:
        return _complain(error, EXIT_BAD_INPUT)
    except OSError as error:
        return _complain(f"{error.filename}: {reason_of(error)}" if error.filename else reason_of(error), EXIT_FAILED)
    except TyperException as error:
        message = error.format_message() if hasattr(error, "format_message") else str(error)
        return _complain(f"{' '.join(message.split())} (see quire --help)", EXIT_BAD_INPUT)


def _complain(sentence: object, code: int) -> int:
    from quire.cli.legible import legible

    print(f"quire: {legible(str(sentence))}", file=sys.stderr)
    return code


def _told(code: int) -> int:
    """The exit code, after flushing the output, which may fail because nobody reads it any more."""
    try:
        sys.stdout.flush()
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return code or _complain(f"cannot print: {error.strerror}", EXIT_FAILED)
    return code
