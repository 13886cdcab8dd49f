"""Values as other systems write them."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any

import msgspec

from quire.model.errors import BadInput
from quire.pipeline.importing.records import check_names

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


def parse_clock(text: str | bytes, where: str) -> dict[str, int]:
    """A vector clock, a JSON object from hosts to counts; entries of 0 say nothing."""
    try:
        clock = msgspec.json.decode(text, type=dict[str, int])
    except msgspec.DecodeError as error:
        raise BadInput(f"{where}: the clock is not a JSON object from hosts to whole numbers: {error}") from error
    least, most = min(clock.values(), default=1), max(clock.values(), default=1)
    if least < 0 or most >= 2**53:
        host, count = next((host, count) for host, count in clock.items() if not 0 <= count < 2**53)
        raise BadInput(f"{where}: the clock's entry for {host!r} is {count}, which is not a count")
    if not least:
        clock = {host: count for host, count in clock.items() if count}
    check_names(tuple(clock), "host in the clock", where)
    return clock
