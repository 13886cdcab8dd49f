"""What every process of a service under faults does: it says how it stands, keeps notes, and ends when it is asked to."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any


def say(**what: Any) -> None:
    """To whoever started this process."""
    sys.stdout.write(json.dumps(what) + "\n")
    sys.stdout.flush()


class Notes:
    """What happened here, line by line in a file. Whatever was noted is there, should the process be killed right after."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def __call__(self, *what: Any) -> None:
        os.write(self._file, json.dumps(what).encode() + b"\n")


def read_notes(path: Path) -> list[list[Any]]:
    """The last line of a process that was killed may be cut off."""
    return [json.loads(line) for line in path.read_bytes().split(b"\n")[:-1]]


def run(main: Callable[[dict[str, Any], asyncio.Event], Coroutine[Any, Any, None]]) -> None:
    """Run with the settings in the only argument, and an event that is set when the process is to end."""

    async def until_ended() -> None:
        over = asyncio.Event()
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, over.set)
        await main(json.loads(sys.argv[1]), over)
        say(ended=True)

    asyncio.run(until_ended())
