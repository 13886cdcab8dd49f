"""The encoding in which tasks and results travel through Spark: one binary value, msgpack with arrays as raw bytes.

Unlike a pickle, it cannot run code when it is decoded, and the same bytes work on a cluster and over Spark Connect. What the
driver holds for many tasks at once is packed: columns of numbers that grow slowly, or repeat, take a fraction of their size.
"""

from __future__ import annotations

import math
from typing import Any, Final, TypeVar

import msgspec
import numpy as np
import pyarrow as pa

_PACKING: Final = "zstd"
_T = TypeVar("_T")


def encode(value: object) -> bytes:
    """Encode any msgspec struct, including the arrays in it."""
    return msgspec.msgpack.encode(value, enc_hook=_from_array)


def pack(value: object) -> bytes:
    """Like `encode`, but smaller: its arrays of whole numbers are compressed."""
    return msgspec.msgpack.encode(value, enc_hook=_from_array_packed)


def decode(data: bytes, kind: type[_T]) -> _T:
    """Decode a value, packed or not. Its arrays are writable copies."""
    return msgspec.msgpack.decode(data, type=kind, dec_hook=_to_array)


def _from_array(value: object) -> object:
    if isinstance(value, np.ndarray):
        return (value.dtype.str, value.shape, np.ascontiguousarray(value).tobytes())
    raise NotImplementedError(f"cannot encode {type(value).__name__}")


def _from_array_packed(value: object) -> object:
    if not isinstance(value, np.ndarray) or value.dtype.kind not in "iu" or not value.size:
        return _from_array(value)
    steps = np.diff(value, axis=0, prepend=value.dtype.type(0))
    # Steps are small, so that their higher bytes are alike: those of one place are put together.
    planes = steps.reshape(-1, 1).view(np.uint8).T.tobytes()
    return (value.dtype.str, value.shape, pa.compress(planes, codec=_PACKING, asbytes=True), True)


def _to_array(kind: type, value: object) -> object:
    if kind is np.ndarray and isinstance(value, list):
        dtype, shape, data, *packed = value
        if packed:
            return _unpack(np.dtype(dtype), shape, data)
        return np.frombuffer(data, dtype=dtype).reshape(shape).copy()
    raise NotImplementedError(f"cannot decode {kind.__name__}")


def _unpack(dtype: np.dtype[Any], shape: list[int], data: bytes) -> np.ndarray:
    size = math.prod(shape) * dtype.itemsize
    planes = np.frombuffer(pa.decompress(data, decompressed_size=size, codec=_PACKING, asbytes=True), np.uint8)
    steps = np.ascontiguousarray(planes.reshape(dtype.itemsize, -1).T).view(dtype).reshape(shape)
    return np.cumsum(steps, axis=0, dtype=dtype)
