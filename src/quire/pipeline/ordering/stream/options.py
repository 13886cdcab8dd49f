"""The options of a streaming order: which order, by which columns, and what to do about silent sources."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

import msgspec

from quire.model.errors import BadInput
from quire.pipeline.ordering.significance import Significance
from quire.pipeline.ordering.writing import POSITION

SOURCES_MAX = 4096

_WHOLE_NUMBERS = ("tinyint", "smallint", "int", "bigint")
_VECTORS = ("array<int>", "array<bigint>", "map<string,int>", "map<string,bigint>")

Idle = Literal["wait"] | float


class TotalOrder(msgspec.Struct, frozen=True, kw_only=True, tag="total"):
    """Order by (clock, source). A source promises that its clock increases from one event to the next."""

    sources: tuple[str | int, ...]
    """All sources: an order can be known to be final only if it is known who may still send."""
    idle: Idle
    """What to do about a silent source: `"wait"` for it, or go on without it after this many seconds."""
    source: str = "source"
    clock: str = "clock"
    heartbeat: str | None = None
    """A column that is true in heartbeats: rows that are no events, but only report their source's clock."""
    transaction: str | None = None
    """A column that names the transaction: consecutive events of a source with the same value leave together."""
    transaction_position: str | None = None
    """A column with the position of an event's transaction among all transactions. It is the same for all events of a
    transaction at all sources, and never decreases within a source. Events are then ordered by it, and clocks need to be
    comparable only within a source. All events of a transaction, over all sources, leave together."""
    omit_superseded: Significance | None = None
    """If given, omit superseded writes, which these columns and values identify."""
    within: int | None = None
    """How far ahead to look: a write is omitted only if one within this many clocks supersedes it; until then it may wait."""

    @property
    def in_runs(self) -> bool:
        """Whether an event's key depends on its neighbours from the same source, so that a source must not be split."""
        return self.transaction is not None or self.transaction_position is not None


class CausalOrder(msgspec.Struct, frozen=True, kw_only=True, tag="causal"):
    """Order by vector clocks: an event leaves when everything that happened before it has left."""

    sources: tuple[str | int, ...]
    source: str = "source"
    vector: str = "vector"
    """The column of vector clocks: how many events of each source happened before the event, including itself. An array in the
    order of the sources, or a map from their names."""


class FollowingOrder(msgspec.Struct, frozen=True, kw_only=True, tag="following"):
    """Order events that name the events they follow: an event leaves when all events that it names have left."""

    id: str
    """The column with the event's name; no two events have the same."""
    after: str
    """The column with the names of the events that it follows: an array, or text with spaces, commas or semicolons between."""

    @property
    def sources(self) -> tuple[str | int, ...]:
        """Empty: it does not matter where an event comes from."""
        return ()


OrderOptions = TotalOrder | CausalOrder | FollowingOrder


def settle(options: OrderOptions, columns: Mapping[str, str]) -> OrderOptions:
    """The options with the sources sorted and converted to their column's type. Raises BadInput if the columns (name to Spark
    type) do not fit the options."""
    if POSITION in columns:
        raise BadInput(f"the events have a column {POSITION!r} already; rename it, because the order is written there")
    if isinstance(options, FollowingOrder):
        return options
    names = [options.source]
    if isinstance(options, TotalOrder):
        others = (options.heartbeat, options.transaction, options.transaction_position)
        names += [options.clock, *(name for name in others if name is not None)]
    else:
        names.append(options.vector)
    for name in names:
        if name not in columns:
            raise BadInput(f"the events have no column {name!r}, only {', '.join(columns)}")
    if isinstance(options, TotalOrder):
        _check_type(options.clock, columns, _WHOLE_NUMBERS, "whole numbers")
        if options.heartbeat is not None:
            _check_type(options.heartbeat, columns, ("boolean",), "true or false")
        _check_transactions(options, columns)
        _check_omission(options, columns)
        if options.idle != "wait" and not 0 < options.idle < float("inf"):
            raise BadInput(f"idle must be 'wait' or a positive number of seconds, not {options.idle!r}")
    else:
        _check_type(options.vector, columns, _VECTORS, "arrays or maps of whole numbers")
    return msgspec.structs.replace(options, sources=_settle_sources(options, columns[options.source]))


def _check_transactions(options: TotalOrder, columns: Mapping[str, str]) -> None:
    if options.transaction_position is None:
        return
    _check_type(options.transaction_position, columns, _WHOLE_NUMBERS, "whole numbers")
    if options.transaction is not None or options.omit_superseded is not None:
        raise BadInput("a transaction's position goes neither with `transaction` nor with omit_superseded")


def _check_omission(options: TotalOrder, columns: Mapping[str, str]) -> None:
    significance = options.omit_superseded
    if significance is None:
        if options.within is not None:
            raise BadInput("`within` needs omit_superseded")
        return
    if options.within is None or options.within < 0:
        raise BadInput("`within` must be 0 or more: how many clocks to look ahead for a later write")
    for name in (significance.object, significance.op):
        if name not in columns:
            raise BadInput(f"the events have no column {name!r}, which says what is superseded")
    _check_type(significance.op, columns, ("string",), "words")


def _check_type(name: str, columns: Mapping[str, str], wanted: Sequence[str], words: str) -> None:
    if columns[name] not in wanted:
        raise BadInput(f"column {name!r} must hold {words}, but is {columns[name]}")


def _settle_sources(options: TotalOrder | CausalOrder, kind: str) -> tuple[str | int, ...]:
    if not 1 <= len(options.sources) <= SOURCES_MAX:
        raise BadInput(f"name from 1 to {SOURCES_MAX} sources: an order is final only when every source has been heard from")
    sources: list[str | int]
    if kind in _WHOLE_NUMBERS:
        try:
            sources = [int(source) for source in options.sources]
        except ValueError:
            raise BadInput(f"column {options.source!r} is {kind}, so the sources must be whole numbers") from None
    elif kind == "string":
        sources = [str(source) for source in options.sources]
    else:
        raise BadInput(f"column {options.source!r} must hold names or whole numbers, but is {kind}")
    if len(set(sources)) != len(sources):
        raise BadInput("a source is named twice")
    # A vector's entries are in the order in which the caller names the sources; for clocks, sorted sources break ties.
    return tuple(sources) if isinstance(options, CausalOrder) else tuple(sorted(sources))
