"""Texts in columns: cut out of the bytes of a file, and read as times."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from quire.pipeline.compiled import compiled
from quire.pipeline.importing.values import parse_time

_WHOLE = r"^[0-9]{1,18}$"
_ISO = r"^(1[7-9]|2[01])[0-9][0-9]-[0-9][0-9]-[0-9][0-9][T ][0-9][0-9]:[0-9][0-9]:[0-9][0-9](\.[0-9]{1,9})?$"


def cut_texts(data: np.ndarray, spans: np.ndarray, wanted: np.ndarray | None = None) -> Any:
    """The texts that begin and end there, two columns; empty where they are not wanted. They must be UTF-8."""
    lengths = spans[:, 1] - spans[:, 0]
    if wanted is not None:
        lengths = np.where(wanted, lengths, 0)
    offsets = np.concatenate(([0], np.cumsum(lengths))).astype(np.int32)
    letters = np.empty(offsets[-1], np.uint8)
    _copy(data, spans[:, 0], offsets, letters)
    buffers: list[Any] = [None, *(pa.py_buffer(cast(Any, values)) for values in (offsets, letters))]
    return pa.Array.from_buffers(pa.string(), len(spans), buffers)


@compiled
def _copy(data: np.ndarray, begin: np.ndarray, offsets: np.ndarray, letters: np.ndarray) -> None:
    for row in range(len(begin)):
        first = offsets[row]
        for at in range(offsets[row + 1] - first):
            letters[first + at] = data[begin[row] + at]


def read_times(texts: Any) -> Any:
    """What `parse_time` says of each of them: the usual forms all at once, and each of the others once."""
    empty = pc.equal(texts, pa.scalar(""))
    if pc.all(empty).as_py() is not False:
        return pa.nulls(len(texts), pa.int64())
    texts = pc.if_else(empty, None, texts)
    whole = pc.match_substring_regex(texts, _WHOLE)
    found = pc.if_else(whole, texts, None).cast(pa.int64())
    dated = pc.match_substring_regex(texts, _ISO)
    if pc.any(dated).as_py():
        try:
            moments = pc.if_else(dated, texts, None).cast(pa.timestamp("ns")).cast(pa.int64())
            found = pc.coalesce(found, moments)
        except pa.ArrowInvalid:
            pass  # There is no such day or hour; which it is, is found out below.
    rest = pc.if_else(pc.is_valid(found), None, texts)
    if rest.null_count == len(rest):
        return found
    different = rest.dictionary_encode()
    times = pa.array([parse_time(text) for text in different.dictionary.to_pylist()], pa.int64())
    return pc.coalesce(found, times.take(different.indices))
