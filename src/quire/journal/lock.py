"""Lock on a journal, so that one process at a time writes to it; it ends with its process, however that ends."""

from __future__ import annotations

import fcntl
import os
import socket
from pathlib import Path

from quire.journal.layout import LOCK
from quire.model.errors import BadInput

_LOCKS = Path("/proc/locks")
_MODE = 0o600


class Lock:
    """Acquired on construction. Raises BadInput, which names the holder, if another process has it."""

    def __init__(self, directory: Path) -> None:
        self._descriptor = os.open(directory / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, _MODE)
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.ftruncate(self._descriptor, 0)
            os.write(self._descriptor, f"process {os.getpid()} on {socket.gethostname()}\n".encode())
        except BlockingIOError:
            holder = _written_in(directory) or "another process"
            os.close(self._descriptor)
            raise BadInput(f"{directory} is in use by {holder}; a journal belongs to one process at a time") from None
        except BaseException:
            os.close(self._descriptor)
            raise

    def release(self) -> None:
        os.close(self._descriptor)


def holder_of(directory: Path) -> str | None:
    """The process that holds the lock now, if the system can tell. The lock is not tried, which could make another fail."""
    try:
        wanted = (directory / LOCK).stat().st_ino
        held = [line.split() for line in _LOCKS.read_text().splitlines()]
    except OSError:
        return None
    # 1: FLOCK  ADVISORY  WRITE 4711 fe:00:6553649 0 EOF
    if any("FLOCK" in words and words[-3].rpartition(":")[2] == str(wanted) for words in held):
        return _written_in(directory) or "another process"
    return None


def _written_in(directory: Path) -> str:
    try:
        return (directory / LOCK).read_text(errors="replace").strip()
    except OSError:
        return ""
