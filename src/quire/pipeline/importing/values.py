"""Parses values as other systems write them: JSON, times, whole numbers, and vector clocks."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from decimal import Decimal
from email.utils import parsedate_to_datetime
from typing import Any

import msgspec

from quire.model.errors import BadInput
from quire.pipeline.importing.records import check_names

_INT64 = 1 << 63
_COLON = re.compile(rb'"\s*:')
_WHOLE = re.compile(r"[-+]?\d{1,19}")
_SECONDS = re.compile(r"[-+]?\d{1,11}\.\d{1,18}")
_FINER = re.compile(r"(?<=:\d\d)[.,](\d+)")
_FORMS = (
    "%d/%b/%Y:%H:%M:%S %z", "%d/%b/%Y:%H:%M:%S", "%Y/%m/%d %H:%M:%S", "%d.%m.%Y %H:%M:%S",
    "%b %d %H:%M:%S %Y", "%a %b %d %H:%M:%S %Y",
)  # fmt: skip
"""The time formats of web servers, Go, and `date`."""


class NotJson(ValueError):
    """What is wrong with a text that should be JSON."""


def read_json(text: str | bytes, kind: Any = Any) -> Any:
    """Parse JSON; raises NotJson if it is invalid, not of this type or nested too deeply, or if an object has a key twice,
    since it is unclear which of the two values is meant."""
    try:
        found = msgspec.json.decode(text, type=kind)
        if isinstance(found, dict | list) and _may_repeat(text if isinstance(text, bytes) else text.encode(), found):
            json.loads(text, object_pairs_hook=_once)
        return found
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise NotJson(str(error)) from error
    except RecursionError as error:
        raise NotJson("it is nested too deep") from error


def _may_repeat(text: bytes, found: dict[str, Any] | list[Any]) -> bool:
    """Whether an object may have a repeated key: there are more colons after quotes than keys. In correct JSON the numbers are
    equal, unless strings contain such colons; so nearly everything is parsed only once."""
    colons = len(_COLON.findall(text)) if b'" :' in text or b'"\t:' in text else text.count(b'":')
    return colons != len(found) and colons > _count_keys(found)


def _count_keys(value: Any) -> int:
    if isinstance(value, dict):
        return len(value) + sum(_count_keys(each) for each in value.values() if isinstance(each, dict | list))
    return sum(_count_keys(each) for each in value if isinstance(each, dict | list))


def _once(pairs: list[tuple[str, Any]]) -> None:
    names = [name for name, _ in pairs]
    if len(set(names)) < len(names):
        raise NotJson(f"it has the key {next(name for name in names if names.count(name) > 1)[:60]!r} twice")


def parse_time(value: Any) -> int | None:
    """Nanoseconds since 1970: a whole number is taken as is; a number with a decimal point is seconds; else ISO 8601, or one of
    the formats of logs and mails. None for anything else."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value if abs(value) < _INT64 else None
    if isinstance(value, float):
        return _nanoseconds(repr(value))
    if not isinstance(value, str):
        return None
    text = value.strip()
    if _WHOLE.fullmatch(text):
        number = int(text)
        return number if abs(number) < _INT64 else None
    if _SECONDS.fullmatch(text):
        return _nanoseconds(text)
    moment = _moment(text)
    if moment is None:
        return None
    whole = int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).replace(microsecond=0).timestamp())
    finer = _FINER.search(text)
    found = whole * 1_000_000_000 + (int(finer[1][:9].ljust(9, "0")) if finer else moment.microsecond * 1000)
    return found if abs(found) < _INT64 else None


def _moment(text: str) -> datetime | None:
    # Python parses at most six decimals; the caller adds the rest.
    plain = _FINER.sub("", text) if _FINER.search(text) else text
    for form in (datetime.fromisoformat, parsedate_to_datetime):
        try:
            return form(plain.replace(",", ".") if form is datetime.fromisoformat else plain)
        except (ValueError, TypeError, OverflowError):
            continue
    for pattern in _FORMS:
        try:
            return datetime.strptime(plain, pattern)
        except ValueError:
            continue
    return None


def _nanoseconds(seconds: str) -> int | None:
    try:
        found = int(Decimal(seconds).scaleb(9))
    except (ArithmeticError, ValueError):
        return None
    return found if abs(found) < _INT64 else None


def whole_number(value: Any, what: str, where: str) -> int | None:
    """A 64-bit integer, or None."""
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
    """Parse a vector clock: a JSON object from hosts to counts. Entries of 0 are dropped."""
    plain = text if isinstance(text, bytes) else text.encode()
    if b'\\"' in plain[:64] and plain.startswith(b'{\\"'):
        plain = plain.replace(b'\\"', b'"')  # Some loggers write the clock inside a JSON string.
    try:
        clock: dict[str, int] = read_json(plain, dict[str, int])
    except NotJson as error:
        raise BadInput(f"{where}: the clock is not a JSON object from hosts to whole numbers: {error}") from error
    least, most = min(clock.values(), default=1), max(clock.values(), default=1)
    if least < 0 or most >= 2**53:
        host, count = next((host, count) for host, count in clock.items() if not 0 <= count < 2**53)
        raise BadInput(f"{where}: the clock's entry for {host!r} is {count}, which is not a count")
    if not least:
        clock = {host: count for host, count in clock.items() if count}
    check_names(tuple(clock), "host in the clock", where)
    return clock
