"""The encoding in which tasks and results travel through Spark: one binary value, msgpack with arrays as raw bytes.

Unlike a pickle, it cannot run code when it is decoded, and the same bytes work on a cluster and over Spark Connect.
"""

from __future__ import annotations

from typing import TypeVar

import msgspec
import numpy as np

_T = TypeVar("_T")


def encode(value: object) -> bytes:
    """Encode any msgspec struct, including the arrays in it."""
    return msgspec.msgpack.encode(value, enc_hook=_from_array)


def decode(data: bytes, kind: type[_T]) -> _T:
    """Decode a value. Its arrays are writable copies."""
    return msgspec.msgpack.decode(data, type=kind, dec_hook=_to_array)


def _from_array(value: object) -> object:
    if isinstance(value, np.ndarray):
        return (value.dtype.str, value.shape, np.ascontiguousarray(value).tobytes())
    raise NotImplementedError(f"cannot encode {type(value).__name__}")


def _to_array(kind: type, value: object) -> object:
    if kind is np.ndarray and isinstance(value, list):
        dtype, shape, data = value
        return np.frombuffer(data, dtype=dtype).reshape(shape).copy()
    raise NotImplementedError(f"cannot decode {kind.__name__}")
