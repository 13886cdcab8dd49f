"""How values become bytes, which are what a store keeps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec

from quire.model.payloads import as_bytes


class Codec(NamedTuple):
    """`encode` must give the same bytes for equal values: they are compared when a transaction is tried again."""

    encode: Callable[[Any], bytes]
    decode: Callable[[bytes], Any]


BYTES = Codec(lambda value: as_bytes(value, "a value"), lambda value: value)
"""Values are bytes already."""
JSON = Codec(msgspec.json.Encoder(order="sorted").encode, msgspec.json.decode)
"""Values are whatever JSON can say."""
