"""A disk of its own for each process on this machine: file systems in memory, which can be filled up and freed again.

They need root and the command `mount`. Everything that is mounted is unmounted again; what a killed command has left behind is
removed by the next one.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from quire.files.scratch import Scratch
from quire.model.errors import BadInput

_ROOM = "50%"
"""The size of a disk, as a share of this machine's memory; only what is written takes any."""


class Disks:
    def __init__(self, paths: list[Path]) -> None:
        self.paths = paths

    def fill(self, disk: int) -> None:
        """From now on nothing more fits on a disk."""
        while True:
            usage = os.statvfs(self.paths[disk])
            used = (usage.f_blocks - usage.f_bfree) * usage.f_frsize
            with suppress(subprocess.CalledProcessError):  # Something was written meanwhile.
                _command("mount", "-o", f"remount,size={max(used, usage.f_frsize)}", str(self.paths[disk]))
                return

    def make_room(self, disk: int) -> None:
        _command("mount", "-o", f"remount,size={_ROOM}", str(self.paths[disk]))


@contextmanager
def disks(count: int) -> Iterator[Disks]:
    """So many disks. Raises BadInput where they cannot be made."""
    if os.geteuid() != 0 or shutil.which("mount") is None:
        raise BadInput("disks that can be full need root and the command mount")
    with Scratch.temporary("disks") as scratch, ExitStack() as stack:
        made = [scratch.path / f"disk{number}" for number in range(count)]
        try:
            _unmount_left_behind()
            for path in made:
                path.mkdir()
                _command("mount", "-t", "tmpfs", "-o", f"size={_ROOM}", f"quire{os.getpid()}", str(path))
                stack.callback(_unmount, path)
        except subprocess.CalledProcessError as error:
            raise BadInput(f"this machine lets nobody mount a disk: {error.stderr.strip()}") from error
        yield Disks(made)


def _unmount_left_behind() -> None:
    """Their file systems carry the id of the process that mounted them."""
    mounted = Path("/proc/mounts")
    for maker, path in re.findall(r"^quire(\d+) (\S+) tmpfs ", mounted.read_text() if mounted.exists() else "", re.MULTILINE):
        try:
            os.kill(int(maker), 0)
        except ProcessLookupError:
            _unmount(Path(path.encode().decode("unicode_escape")))


def _unmount(path: Path) -> None:
    with suppress(subprocess.CalledProcessError):
        _command("umount", "--lazy", str(path))


def _command(name: str, *arguments: str) -> None:
    command = [shutil.which(name) or name, *arguments]
    subprocess.run(command, check=True, capture_output=True, text=True)  # noqa: S603 - our own words.
