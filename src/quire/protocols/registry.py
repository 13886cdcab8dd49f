"""Registry of all protocols by name, which also checks their options.

Options are a frozen struct per protocol; their types, choices and bounds are read from it, so that there is one
place that says what exists and what it may be.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Literal, TypeVar, get_args, get_origin

import msgspec

from quire.model.errors import BadInput
from quire.protocols import causal_vector, coordinator, fifo, hierarchy, matrix, single_phase, two_phase
from quire.protocols.contract import Protocol

OptionsType = TypeVar("OptionsType", bound=msgspec.Struct)


class Entry(msgspec.Struct, frozen=True):
    name: str
    summary: str
    protocol: type[Protocol]
    options: type[msgspec.Struct]


_ENTRIES = (
    Entry(
        "single-phase",
        "total and causal order in one phase (Sun, Maheshwari)",
        single_phase.SinglePhase,
        single_phase.SinglePhaseOptions,
    ),
    Entry("fifo", "sender order only", fifo.Fifo, fifo.FifoOptions),
    Entry(
        "causal-vector", "causal order by vector clocks (CBCAST)", causal_vector.CausalVector, causal_vector.CausalVectorOptions
    ),
    Entry(
        "two-phase", "total order by proposals and a final number (Skeen, ISIS)", two_phase.TwoPhase, two_phase.TwoPhaseOptions
    ),
    Entry(
        "hierarchy", "causal order over clusters of clusters (Yen, Chi, Huang)", hierarchy.Hierarchy, hierarchy.HierarchyOptions
    ),
    Entry("matrix", "causal order by a matrix of counts (Raynal, Schiper, Toueg)", matrix.FlatMatrix, matrix.MatrixOptions),
    Entry("coordinator", "causal and total order by one member", coordinator.FlatCoordinator, coordinator.CoordinatorOptions),
)
Choice = tuple[str, Mapping[str, object]]
PROTOCOLS: Mapping[str, Entry] = {entry.name: entry for entry in _ENTRIES}

_TOTAL: Choice = ("single-phase", {"lookahead": 64})
# With this option members acknowledge with logical times ahead of their clocks, so that most messages of a lone sender wait for
# nobody, and no message waits longer than without it.
_BY_ORDER: Mapping[str, Choice] = {"fifo": ("fifo", {}), "causal": ("causal-vector", {}), "total": _TOTAL, "acyclic": _TOTAL}


def find(name: str, others: Iterable[str] = ()) -> Entry:
    """The protocol of that name; raises BadInput with a list of those that exist, and of `others` that would do."""
    entry = PROTOCOLS.get(name)
    if entry is None:
        raise BadInput(f"there is no protocol {name!r}; choose one of {', '.join((*PROTOCOLS, *others))}")
    return entry


def for_order(order: str) -> Choice:
    """The protocol that provides this order at the least cost, and the options that suit an application; raises BadInput with a
    list of the orders that exist."""
    if order not in _BY_ORDER:
        raise BadInput(f"there is no order {order!r}; choose one of {', '.join(_BY_ORDER)}")
    return _BY_ORDER[order]


def option_name(field: str) -> str:
    """An option as people write it: `lock-step` for the field `lock_step`."""
    return field.replace("_", "-")


def describe(kind: object) -> str:
    """What an option of this type may be, as the end of a sentence that refuses something else."""
    if get_origin(kind) is Literal:
        *most, last = map(str, get_args(kind))
        return f"choose {', '.join(most)} or {last}" if most else f"it must be {last}"
    if kind is bool:
        return "it must be true or false"
    base, *metas = get_args(kind) if get_origin(kind) is Annotated else (kind,)
    if base is str:
        return "it must be text"
    if base is not int:
        return "it must be a number" if base is float else f"it must be of type {base}"
    bounds = [meta for meta in metas if isinstance(meta, msgspec.Meta)]
    low = max((meta.ge for meta in bounds if meta.ge is not None), default=None)
    high = min((meta.le for meta in bounds if meta.le is not None), default=None)
    if low is None:
        return "it must be a whole number" + ("" if high is None else f" of at most {high}")
    return f"it must be a whole number from {low}" + (" up" if high is None else f" to {high}")


def read_options(name: str, given: Mapping[str, object]) -> msgspec.Struct:
    """The options of a protocol from names and values (text is converted); raises BadInput in one sentence.

    An option may be written with hyphens or underscores, but once.
    """
    return convert_options(name, find(name).options, given)


def convert_options(name: str, kind: type[OptionsType], given: Mapping[str, object]) -> OptionsType:
    """Options of this kind for whatever has this name, in the same way."""
    fields = {field.name: field for field in msgspec.structs.fields(kind)}
    values: dict[str, object] = {}
    for option, value in given.items():
        field = fields.get(option.replace("-", "_"))
        if field is None:
            known = ", ".join(map(option_name, fields))
            raise BadInput(f"{name} has no option {option!r}; it has {known or 'none'}")
        if field.name in values:
            raise BadInput(f"{name} was given {option_name(field.name)} twice")
        try:
            values[field.name] = msgspec.convert(value, field.type, strict=False)
        except msgspec.ValidationError as error:
            raise BadInput(f"{name} cannot take {option}={value}: {describe(field.type)}") from error
    return kind(**values)


def create(
    name: str,
    me: int,
    members: int,
    options: msgspec.Struct | Mapping[str, object] | None = None,
    clusters: Sequence[str] = (),
) -> Protocol:
    """One member's protocol object. `options` is a mapping of names to values or what `read_options` returned; `clusters` are
    the names of the members' clusters, for a protocol to which they matter."""
    entry = find(name)
    if not isinstance(options, msgspec.Struct):
        options = read_options(name, options or {})
    if any(clusters) and entry.protocol.clustered:
        return entry.protocol(me, members, options, tuple(clusters))  # type: ignore[call-arg]
    return entry.protocol(me, members, options)  # type: ignore[call-arg]
