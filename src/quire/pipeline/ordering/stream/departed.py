"""The names of the events that have left a stream: has an event that another one follows left before?

A stream has no end, so the names are kept on disk, as sorted fingerprints of 16 bytes each. Each micro-batch adds a file,
and files of similar size are merged, so there are few, and a name is found by a binary search in each.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any
from uuid import uuid4

import msgspec
import numpy as np

from quire.pipeline.fingerprints import fingerprints


class Names(msgspec.Struct, frozen=True):
    """A file of fingerprints: their first halves, sorted, and then their second halves, as bare 64-bit numbers. (NumPy reads
    the header of a file of its own by parsing Python, at which two threads at once may fail in CPython 3.11.)"""

    file: str
    count: int


def halves(names: Any, secret: int) -> np.ndarray:
    """The fingerprints of a column of strings, as two rows of 64-bit halves."""
    if not len(names):
        return np.empty((2, 0), np.int64)
    return np.ascontiguousarray(fingerprints(names, np.zeros(len(names), np.int64), secret).T)


def have_left(directory: str, files: Sequence[Names], wanted: np.ndarray) -> np.ndarray:
    """Which of these fingerprints are in the files."""
    found = np.zeros(wanted.shape[1], np.bool_)
    for file in files:
        known = np.memmap(Path(directory) / file.file, np.int64, "r", shape=(2, file.count))
        begin, end = (np.searchsorted(known[0], wanted[0], side=side) for side in ("left", "right"))
        # Two names with equal first halves are hardly ever met, but all of them count.
        for step in range(int((end - begin).max(initial=0))):
            at = np.minimum(begin + step, file.count - 1)
            found |= (begin + step < end) & (known[1][at] == wanted[1])
    return found


def with_more(directory: str, files: Sequence[Names], more: np.ndarray) -> tuple[Names, ...]:
    """The files with these fingerprints added. Files that are merged stay on disk until nobody needs them."""
    if not more.shape[1]:
        return tuple(files)
    kept, parts = list(files), [more]
    while kept and kept[-1].count <= 2 * sum(part.shape[1] for part in parts):
        parts.append(np.fromfile(Path(directory) / kept.pop().file, np.int64).reshape(2, -1))
    merged = np.concatenate(parts, axis=1)
    name = uuid4().hex
    merged[:, np.argsort(merged[0], kind="stable")].tofile(Path(directory) / name)
    return (*kept, Names(name, merged.shape[1]))
