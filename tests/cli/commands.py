"""A real `quire` as a terminal runs it: in a process group of its own, with everything that it starts in sight."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from tests.kit.patience import PATIENCE_S

_LOOK_S = 0.01
"""Who looks all the time keeps those from working who are looked for."""


class Command:
    """Use it in `with`, which leaves no process, however the test went."""

    def __init__(
        self,
        *words: str | Path,
        temporary: Path,
        ignoring: signal.Signals | None = None,
        interrupted_by_import: str | None = None,
    ) -> None:
        """`interrupted_by_import`: Ctrl-C comes when the command begins to import this module, which no test could time."""
        temporary.mkdir(exist_ok=True)
        interrupting = {} if interrupted_by_import is None else _interrupting(interrupted_by_import, temporary.parent)
        shell = [] if ignoring is None else ["sh", "-c", f'trap "" {ignoring.name[3:]}; exec "$@"', "sh"]
        self.process = subprocess.Popen(
            [*shell, Path(sys.executable).with_name("quire"), *words],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
            env={**os.environ, **_temporary(temporary), **interrupting},
        )  # fmt: skip
        self.started: dict[int, str] = {}
        """Every process that was seen, and when it began."""

    def __enter__(self) -> Command:
        return self

    def __exit__(self, *_: object) -> None:
        for pid in [*self.alive(), self.process.pid]:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.process.communicate()

    def wait_for_process(self, *words: str) -> None:
        """Wait until there is a process below this one whose command line has one of these words."""
        self._wait_until(
            lambda: any(word in line for line in self._look().values() for word in words), f"{words[0]} was never started"
        )

    def wait_for_file(self, directory: Path, pattern: str) -> None:
        self._wait_until(lambda: any(directory.glob(pattern)), f"{pattern} was never there")

    def _wait_until(self, condition: Callable[[], bool], complaint: str) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while not condition():
            assert self.process.poll() is None, self.process.communicate()
            assert time.monotonic() < deadline, complaint
            time.sleep(_LOOK_S)

    def interrupt(self, *, group: bool, number: signal.Signals = signal.SIGINT) -> None:
        """As Ctrl-C at a terminal does, or as `kill` does."""
        if group:
            os.killpg(self.process.pid, number)
        else:
            self.process.send_signal(number)

    def end(self) -> tuple[int, str, str]:
        """Exit code, standard output and standard error."""
        out, complaints = self.process.communicate(timeout=PATIENCE_S)
        return self.process.returncode, out, complaints

    def alive(self) -> list[int]:
        """Which of the processes that were seen below this one are still there."""
        self._look()
        return [pid for pid, began in self.started.items() if _began(pid) == began]

    def wait_until_alone(self) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while self.alive():
            assert time.monotonic() < deadline, [_read(f"/proc/{pid}/cmdline") for pid in self.alive()]
            time.sleep(_LOOK_S)

    def _look(self) -> Mapping[int, str]:
        found = dict(_below(self.process.pid))
        self.started |= {pid: began for pid in found if (began := _began(pid)) is not None}
        return found


_INTERRUPT = """
import os, signal, sys

class Interrupt:
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            sys.meta_path.remove(self)
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Interrupt())
"""


def _interrupting(module: str, directory: Path) -> dict[str, str]:
    """What has a Python interrupt itself when it imports this module."""
    folder = directory / "interrupting"
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(_INTERRUPT.format(module=module))
    return {"PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}


def _temporary(directory: Path) -> dict[str, str]:
    """Where Python and Java put temporary files."""
    java = f"{os.environ.get('SPARK_SUBMIT_OPTS', '')} -Djava.io.tmpdir={directory}"
    return {"TMPDIR": str(directory), "SPARK_LOCAL_DIRS": str(directory), "SPARK_SUBMIT_OPTS": java}


def _below(pid: int) -> Iterator[tuple[int, str]]:
    try:
        for task in Path(f"/proc/{pid}/task").iterdir():
            for child in map(int, (task / "children").read_text().split()):
                yield child, Path(f"/proc/{child}/cmdline").read_text().replace("\0", " ")
                yield from _below(child)
    except OSError:
        return


def _read(path: str) -> str:
    try:
        return Path(path).read_text()
    except OSError:
        return ""


def _began(pid: int) -> str | None:
    """When a process began, which tells it from a later one of the same number; None for one that is gone, or as good as."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] in "ZX" else fields[19]
