"""What transactions did, and whether doing it one after the other by timestamp gives the same."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from quire.protocols.transactions.cells import Value
from quire.protocols.transactions.timestamps import UNWRITTEN, Timestamp, Version


class Did(NamedTuple):
    """A read that saw, or a write that made, this version."""

    op: str
    key: str
    version: Version
    value: Value


History = dict[Timestamp, list[Did]]
State = dict[str, tuple[Version, Value]]
NEVER: tuple[Version, Value] = (UNWRITTEN, None)


def wrong_order(history: Mapping[Timestamp, list[Did]], committed: Iterable[Timestamp]) -> str | None:
    """What differs when the committed transactions are carried out again in the order of their timestamps."""
    state: State = {}
    for t in sorted(committed):
        for did in history[t]:
            if did.op == "w":
                state[did.key] = did.version, did.value
            elif state.get(did.key, NEVER) != (did.version, did.value):
                return f"{t} read {did.key} as {did.version}, which in order is {state.get(did.key, NEVER)[0]}"
    return None


def final_state(history: Mapping[Timestamp, list[Did]], committed: Iterable[Timestamp]) -> State:
    state: State = {}
    for t in sorted(committed):
        state.update({did.key: (did.version, did.value) for did in history[t] if did.op == "w"})
    return state


def dirty_read(history: Mapping[Timestamp, list[Did]], committed: Iterable[Timestamp]) -> str | None:
    """A read, of any transaction, of what another one wrote that did not commit."""
    clean = frozenset(committed)
    for t, dids in history.items():
        for did in dids:
            if did.op == "r" and did.version != UNWRITTEN and did.version.writer not in clean | {t}:
                return f"{t} read {did.key} as {did.version}, which never committed"
    return None
