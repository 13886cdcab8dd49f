"""Codecs for values: a store keeps bytes, and a codec converts values to bytes and back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec

from quire.model.payloads import as_bytes


class Codec(NamedTuple):
    """`encode` must return the same bytes for equal values: they are compared when a transaction is retried."""

    encode: Callable[[Any], bytes]
    decode: Callable[[bytes], Any]


BYTES = Codec(lambda value: as_bytes(value, "a value"), lambda value: value)
"""Values are bytes."""
JSON = Codec(msgspec.json.Encoder(order="sorted").encode, msgspec.json.decode)
"""Values are anything that JSON can represent."""
