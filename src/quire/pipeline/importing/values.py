"""Values as other systems write them."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any

from quire.model.errors import BadInput

_INT64 = 1 << 63
_WHOLE = re.compile(r"[-+]?\d{1,19}")


def parse_time(value: Any) -> int | None:
    """Nanoseconds: a whole number is taken as it is, ISO 8601 from 1970 on; anything else is no time."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value if abs(value) < _INT64 else None
    if not isinstance(value, str):
        return None
    if _WHOLE.fullmatch(value):
        number = int(value)
        return number if abs(number) < _INT64 else None
    try:
        moment = datetime.fromisoformat(value.replace(",", "."))
    except ValueError:
        return None
    whole = int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).replace(microsecond=0).timestamp())
    return whole * 1_000_000_000 + moment.microsecond * 1000


def whole_number(value: Any, what: str, where: str) -> int | None:
    """A whole number of 64 bits, or nothing."""
    if value is None or value == "":
        return None
    if isinstance(value, str) and _WHOLE.fullmatch(value):
        value = int(value)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or abs(value) >= _INT64:
        raise BadInput(f"{where}: the {what} {str(value)[:60]!r} is not a whole number")
    return value
