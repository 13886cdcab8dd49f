"""Formats the commands to type next, in the form in which the user can call them."""

from __future__ import annotations

import shlex
import shutil
import sys
from pathlib import Path


def call(*words: str | Path) -> str:
    """A command line that calls this same program again."""
    return shlex.join([_program(), *map(str, words)])


def _program() -> str:
    """`quire`, or its path if the shell would not find it or would find another one."""
    called = Path(sys.argv[0])
    found = shutil.which("quire")
    if called.name != "quire" or not called.exists() or (found is not None and called.samefile(found)):
        return "quire"
    return str(called)
