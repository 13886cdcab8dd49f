"""Text columns: cuts them out of a file's bytes, and parses them as times."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from quire.pipeline.compiled import compiled
from quire.pipeline.hashing import bytes_of
from quire.pipeline.importing.values import parse_time

_QUOTE, _COLON = ord('"'), ord(":")
_WHOLE = r"^([0-9]{1,18}|[0-8][0-9]{18})$"
_ISO = r"^(1[7-9]|2[01])[0-9][0-9]-[0-9][0-9]-[0-9][0-9][T ][0-9][0-9]:[0-9][0-9]:[0-9][0-9](\.[0-9]{1,9})?Z?$"


def is_text(data: bytes) -> bool:
    """Whether the data is valid UTF-8."""
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def cut_texts(data: np.ndarray, spans: np.ndarray, wanted: np.ndarray | None = None) -> Any:
    """The texts at these byte ranges (columns: begin and end); empty where not wanted. They must be UTF-8."""
    lengths = spans[:, 1] - spans[:, 0]
    if wanted is not None:
        lengths = np.where(wanted, lengths, 0)
    offsets = np.concatenate(([0], np.cumsum(lengths))).astype(np.int32)
    letters = np.empty(offsets[-1], np.uint8)
    _copy(data, spans[:, 0], offsets, letters)
    return _as_texts(offsets, letters)


def cut_cells(data: np.ndarray, spans: np.ndarray, doubled: np.ndarray) -> Any:
    """Like `cut_texts`, given the number of doubled quotes in each text."""
    if not doubled.any():
        return cut_texts(data, spans)
    offsets = np.concatenate(([0], np.cumsum(spans[:, 1] - spans[:, 0] - doubled))).astype(np.int32)
    letters = np.empty(offsets[-1], np.uint8)
    _copy_once(data, spans[:, 0], spans[:, 1], offsets, letters)
    return _as_texts(offsets, letters)


def join_texts(first: Any, second: Any) -> Any:
    """The first text, a colon and the second one; only the second one where the first is empty. There must be no nulls."""
    offsets = np.empty(len(first) + 1, np.int32)
    _lay_joined(bytes_of(first)[1], bytes_of(second)[1], offsets)
    letters = np.empty(offsets[-1], np.uint8)
    _join(*bytes_of(first), *bytes_of(second), offsets, letters)
    return _as_texts(offsets, letters)


def _as_texts(offsets: np.ndarray, letters: np.ndarray) -> Any:
    buffers: list[Any] = [None, *(pa.py_buffer(cast(Any, values)) for values in (offsets, letters))]
    return pa.Array.from_buffers(pa.string(), len(offsets) - 1, buffers)


@compiled
def _lay_joined(first: np.ndarray, second: np.ndarray, offsets: np.ndarray) -> None:
    offsets[0] = 0
    for row in range(len(first) - 1):
        before = first[row + 1] - first[row]
        offsets[row + 1] = offsets[row] + before + (before > 0) + second[row + 1] - second[row]


@compiled
def _join(
    first: np.ndarray, first_offsets: np.ndarray, second: np.ndarray, second_offsets: np.ndarray, offsets: np.ndarray,
    letters: np.ndarray,
) -> None:  # fmt: skip
    for row in range(len(offsets) - 1):
        to, before, after = np.uint64(offsets[row]), np.uint64(first_offsets[row]), np.uint64(second_offsets[row])
        length = np.uint64(first_offsets[row + 1]) - before
        for at in range(length):
            letters[to + at] = first[before + at]
        if length > 0:
            letters[to + length] = _COLON
            to += length + np.uint64(1)
        for at in range(np.uint64(second_offsets[row + 1]) - after):
            letters[to + at] = second[after + at]


@compiled
def _copy_once(data: np.ndarray, begin: np.ndarray, end: np.ndarray, offsets: np.ndarray, letters: np.ndarray) -> None:
    """Copy the texts, with doubled quotes reduced to one."""
    for row in range(len(begin)):
        to, at = offsets[row], begin[row]
        while at < end[row] and to < offsets[row + 1]:
            letters[to] = data[at]
            if data[at] == _QUOTE and end[row] - at > offsets[row + 1] - to:
                at += 1
            to += 1
            at += 1


@compiled
def _copy(data: np.ndarray, begin: np.ndarray, offsets: np.ndarray, letters: np.ndarray) -> None:
    for row in range(len(begin)):
        # Indices without a sign: as none can count from the end, whole texts are copied at once.
        start, first = np.uint64(begin[row]), np.uint64(offsets[row])
        for at in range(np.uint64(offsets[row + 1]) - first):
            letters[first + at] = data[start + at]


def read_times(texts: Any) -> Any:
    """Like `parse_time` for a column: common formats are parsed all at once, and other distinct texts once each."""
    texts = pc.if_else(pc.equal(texts, pa.scalar("")), None, texts)
    if texts.null_count == len(texts):
        return pa.nulls(len(texts), pa.int64())
    whole = pc.match_substring_regex(texts, _WHOLE)
    found = pc.if_else(whole, texts, None).cast(pa.int64())
    if found.null_count == texts.null_count:
        return found
    dated = pc.match_substring_regex(texts, _ISO)
    if pc.any(dated).as_py():
        try:
            moments = pc.utf8_rtrim(pc.if_else(dated, texts, None), "Z").cast(pa.timestamp("ns")).cast(pa.int64())
            found = pc.coalesce(found, moments)
        except pa.ArrowInvalid:
            pass  # Some text has an impossible day or hour; it is found below.
    rest = pc.if_else(pc.is_valid(found), None, texts)
    if rest.null_count == len(rest):
        return found
    different = rest.dictionary_encode()
    times = pa.array([parse_time(text) for text in different.dictionary.to_pylist()], pa.int64())
    return pc.coalesce(found, times.take(different.indices))
