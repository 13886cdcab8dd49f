"""Single files that are there whole or not at all, and in the place of nothing but an earlier one of the same kind."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from quire.files.errors import writing
from quire.files.replacing import scratch_for
from quire.model.errors import BadInput


def check_file(path: Path, is_ours: Callable[[Path], bool], what: str, *, force: bool) -> None:
    """Refuse a file that exists, unless it is to be replaced and is of this kind (or empty)."""
    if path.is_dir():
        raise BadInput(f"{path} is a directory; name a file")
    if not os.path.lexists(path):
        return
    if not force:
        raise BadInput(f"{path} exists already; choose another name, or use --force to replace it")
    if not path.is_file() or (path.stat().st_size and not is_ours(path)):
        raise BadInput(f"{path} is not {what}, so it will not be replaced")


def write_file(path: Path, write: Callable[[Path], object]) -> None:
    """Write a file elsewhere, and move it into place when it is complete. If the path is a link, its target is replaced."""
    with writing(path), scratch_for(path) as scratch:
        whole = scratch.path / "whole"
        write(whole)
        os.replace(whole, path.resolve())
