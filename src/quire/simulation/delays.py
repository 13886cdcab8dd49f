"""Delay models: how long a packet travels between two members.

A model is written as text, in milliseconds:

constant:10               always 10
uniform:5:15              anything from 5 to 15
exponential:10            10 on average, most of them less, some far more
matrix:[[0, 5], [7, 0]]   row: source, column: destination; each a number or the text of another model
matrix:FILE.json          the same from a file
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from quire.model.errors import BadInput
from quire.simulation.randomness import Uniform, exponential_ns

NANOSECONDS_PER_MS = 1_000_000
TIME_MS_MAX = 1e9

_FORMS = "constant:MS, uniform:MS:MS, exponential:MS or matrix:FILE"


def to_ns(milliseconds: float, what: str) -> int:
    """Milliseconds of simulated time as whole nanoseconds; `what` names it in the error."""
    # Written so that NaN, which compares false with everything, is refused too.
    if not 0 <= milliseconds <= TIME_MS_MAX:
        raise BadInput(f"{what} must be from 0 to {TIME_MS_MAX:.0f} ms, not {milliseconds}")
    return round(milliseconds * NANOSECONDS_PER_MS)


def ms_text(nanoseconds: int) -> str:
    """Nanoseconds as the shortest text in milliseconds."""
    return repr(nanoseconds / NANOSECONDS_PER_MS).removesuffix(".0")


class Constant(msgspec.Struct, frozen=True):
    delay_ns: int

    def draw(self, uniform: Uniform) -> int:  # noqa: ARG002
        return self.delay_ns

    def usual_ns_max(self) -> int:
        """A delay that few packets exceed; timers are based on it."""
        return self.delay_ns

    def text(self) -> str:
        return f"constant:{ms_text(self.delay_ns)}"


class Between(msgspec.Struct, frozen=True):
    low_ns: int
    high_ns: int

    def draw(self, uniform: Uniform) -> int:
        return self.low_ns + int(uniform() * (self.high_ns - self.low_ns))

    def usual_ns_max(self) -> int:
        return self.high_ns

    def text(self) -> str:
        return f"uniform:{ms_text(self.low_ns)}:{ms_text(self.high_ns)}"


class Exponential(msgspec.Struct, frozen=True):
    mean_ns: int

    def draw(self, uniform: Uniform) -> int:
        return exponential_ns(self.mean_ns, uniform)

    def usual_ns_max(self) -> int:
        return 3 * self.mean_ns

    def text(self) -> str:
        return f"exponential:{ms_text(self.mean_ns)}"


PairDelay = Constant | Between | Exponential


class Delays(msgspec.Struct, frozen=True):
    """The delay model of every ordered pair of members: one for all, or a matrix of them."""

    rows: tuple[tuple[PairDelay, ...], ...]

    def between(self, source: int, destination: int) -> PairDelay:
        return self.rows[0][0] if len(self.rows) == 1 else self.rows[source][destination]

    def constant_ns(self) -> int | None:
        """The one delay of all packets, if there is one."""
        only = self.rows[0][0]
        return only.delay_ns if len(self.rows) == 1 and isinstance(only, Constant) else None

    def usual_ns_max(self) -> int:
        return max(model.usual_ns_max() for row in self.rows for model in row)

    def text(self) -> str:
        """The model as self-contained text: a matrix is written out, even if it came from a file."""
        if len(self.rows) == 1:
            return self.rows[0][0].text()
        return "matrix:" + msgspec.json.encode([[model.text() for model in row] for row in self.rows]).decode()


def parse_delays(text: str, members: int) -> Delays:
    """The delay models that a text describes, for a group of so many members; raises BadInput."""
    kind, _, rest = text.partition(":")
    if kind == "matrix":
        return _parse_matrix(rest, members)
    return Delays(((_parse_pair(text),),))


def _parse_pair(text: str) -> PairDelay:
    kind, *numbers = text.split(":")
    try:
        times = [to_ns(float(number), f"the delay {text!r}") for number in numbers]
    except ValueError as error:
        raise BadInput(f"the delay {text!r} holds something that is not a number; write {_FORMS}") from error
    match kind, times:
        case "constant", [delay]:
            return Constant(delay)
        case "uniform", [low, high]:
            if low > high:
                raise BadInput(f"the delay {text!r} must give the smaller bound first")
            return Between(low, high)
        case "exponential", [mean]:
            return Exponential(mean)
    raise BadInput(f"there is no delay model {text!r}; write {_FORMS}")


def _parse_matrix(rest: str, members: int) -> Delays:
    source: bytes = rest.encode()
    if not rest.lstrip().startswith("["):
        try:
            source = Path(rest).read_bytes()
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else error
            raise BadInput(f"cannot read the delay matrix {rest!r}: {reason}") from error
    try:
        rows = msgspec.json.decode(source, type=list[list[float | str]])
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BadInput(f"the delay matrix must be JSON, a list of rows of numbers or delay models: {error}") from error
    if len(rows) != members or any(len(row) != members for row in rows):
        raise BadInput(f"the delay matrix must have {members} rows of {members} for a group of {members}")
    return Delays(tuple(tuple(_parse_cell(cell) for cell in row) for row in rows))


def _parse_cell(cell: float | str) -> PairDelay:
    return _parse_pair(cell) if isinstance(cell, str) else Constant(to_ns(cell, "a delay in the matrix"))
