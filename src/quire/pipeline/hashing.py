"""Hashes of texts that are the same in every process, unlike Python's own, which are seeded per process."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from quire.pipeline.compiled import compiled, piece


@piece
def mix_in(mixed: int, part: int) -> int:
    """Add one part to a 32-bit Fowler-Noll-Vo hash."""
    return (((mixed ^ int(part)) & 0xFFFFFFFF) * 16777619) & 0xFFFFFFFF


@compiled
def hash_texts(letters: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """The hash of each text, the same in every process."""
    hashes = np.empty(len(offsets) - 1, np.int64)
    for row in range(len(hashes)):
        mixed = 0
        for at in range(offsets[row], offsets[row + 1]):
            mixed = mix_in(mixed, letters[at])
        hashes[row] = mixed
    return hashes


def bytes_of(texts: Any) -> tuple[np.ndarray, np.ndarray]:
    """The bytes of the texts, and the offsets at which each begins and the last ends."""
    _, offsets, letters = texts.buffers()
    if letters is None or not letters.size:
        letters = pa.py_buffer(b"\0")
    edges = np.frombuffer(offsets, np.int32)[texts.offset : texts.offset + len(texts) + 1]
    return np.frombuffer(letters, np.uint8), edges
