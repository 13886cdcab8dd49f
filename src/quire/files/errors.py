"""Translates errors of failed writes: a wrong path is the caller's mistake, a full or failing disk is not."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from quire.model.errors import BadInput, CannotWrite, QuireError

# With these errors the request was right, and could work another time. All others are mistakes in the request.
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO})


def cannot_write(path: Path, error: OSError) -> QuireError:
    """The error for a write that failed: CannotWrite or BadInput, in one sentence."""
    sentence = f"cannot write {path}: {reason_of(error)}"
    return CannotWrite(sentence) if error.errno in _FULL else BadInput(sentence)


def reason_of(error: OSError) -> str:
    """The system's own error text, without what libraries add."""
    if error.errno is not None:
        return os.strerror(error.errno)
    return next(iter(str(error).splitlines()), type(error).__name__)


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turn OSErrors in this block into errors about the path."""
    try:
        yield
    except OSError as error:
        raise cannot_write(path, error) from error
