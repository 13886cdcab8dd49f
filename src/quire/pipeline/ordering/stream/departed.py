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
    """A file of fingerprints: their first halves, sorted, and then their second halves."""

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
        known = np.load(Path(directory) / file.file, mmap_mode="r")
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
        parts.append(np.load(Path(directory) / kept.pop().file))
    merged = np.concatenate(parts, axis=1)
    name = f"{uuid4().hex}.npy"
    np.save(Path(directory) / name, merged[:, np.argsort(merged[0], kind="stable")])
    return (*kept, Names(name, merged.shape[1]))
