"""What it means when the system refuses a write: a place that cannot be written to, or one that is full."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from quire.model.errors import BadInput, CannotWrite, QuireError

# The command was right, and would do its work on another day. All others are mistakes in what was asked for.
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO})


def cannot_write(path: Path, error: OSError) -> QuireError:
    """The sentence for a write that failed, as CannotWrite or as BadInput."""
    sentence = f"cannot write {path}: {reason_of(error)}"
    return CannotWrite(sentence) if error.errno in _FULL else BadInput(sentence)


def reason_of(error: OSError) -> str:
    """What the system says, without what libraries put around it."""
    if error.errno is not None:
        return os.strerror(error.errno)
    return next(iter(str(error).splitlines()), type(error).__name__)


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turn what the system refuses in this block into a sentence about the path."""
    try:
        yield
    except OSError as error:
        raise cannot_write(path, error) from error
