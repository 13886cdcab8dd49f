"""Releases the final events of a streaming total order without superseded writes.

Whether a write is superseded depends on later events. It could wait forever for another write, together with everything behind
it in the order, so the caller limits how far to look ahead: a write is omitted if, within that many clocks after it, a later
write of its run is known to take effect. This rule depends on the order alone, not on when events arrive, so the result does
not depend on arrival either. An event leaves as soon as its fate, and that of everything before it, is decided.

The limit errs on the safe side: every omitted write is superseded, but not every superseded write is omitted.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from quire.pipeline.compiled import compiled
from quire.pipeline.ordering.reading import Format
from quire.pipeline.ordering.significance import Significance
from quire.pipeline.ordering.stream.frontier import Key
from quire.pipeline.ordering.stream.intake import CLOCK_MAX, KEY_CLOCK, KEY_RANK, Waiting, all_waiting
from quire.pipeline.ordering.stream.release import first_of_each, set_apart, with_positions
from quire.pipeline.ordering.stream.writing import write_events

LEAVES, OMITTED, UNKNOWN = 0, 1, 2
_OTHER, _WRITE, _COMMIT = 0, 1, 2
_NEVER = CLOCK_MAX


class SignificantTask(msgspec.Struct, frozen=True, tag="significant"):
    """Write the events of these final slices that can leave by now, without superseded writes."""

    directory: str
    slices: tuple[Waiting, ...]
    clock: str
    significance: Significance
    within: int
    heard: int
    """The smallest clock still to come; above `CLOCK_MAX` if nothing is."""
    position: int
    out: str
    format: Format


class SignificantlyReleased(msgspec.Struct, frozen=True):
    rows: int
    omitted: int
    stop: Key | None
    """The key at which the remaining events begin; None if none remain."""
    rejected: tuple[Waiting, ...]


def release_significant(task: SignificantTask) -> SignificantlyReleased:
    events = all_waiting(task.directory, task.slices)
    rank, position, clock = (np.asarray(events[name]) for name in (KEY_RANK, KEY_CLOCK, task.clock))
    order = np.lexsort((clock, rank, position))
    rank, position, clock = rank[order], position[order], clock[order]
    same = (rank[1:] == rank[:-1]) & (position[1:] == position[:-1])
    kept = np.ones(len(order), np.bool_)
    twins = same & (clock[1:] == clock[:-1])
    if twins.any():
        kept = first_of_each(events.drop_columns([KEY_CLOCK, KEY_RANK]).take(order), twins)
    fate = np.full(len(order), LEAVES)
    fate[kept] = _fates(events.take(order[kept]), position[kept], task)
    unknown = np.flatnonzero(fate == UNKNOWN)
    stop: Key | None = None
    going = len(order)
    if len(unknown):
        # Events with the same key leave together, so the remaining events begin with the first one that has this key.
        going = int(np.flatnonzero(~np.concatenate(([False], same))[: unknown[0] + 1])[-1])
        stop = int(position[going]), int(rank[going])
    order, kept, fate = order[:going], kept[:going], fate[:going]
    leaving = events.take(order[kept & (fate == LEAVES)]).drop_columns([KEY_CLOCK, KEY_RANK])
    if leaving.num_rows:
        write_events(with_positions(leaving, task.position), Path(task.out), task.format)
    rejected: tuple[Waiting, ...] = ()
    if not kept.all():
        others = events.take(order[~kept])
        rejected = (set_apart(task.directory, others, "there is another event of its source with its clock"),)
    return SignificantlyReleased(leaving.num_rows, int((fate == OMITTED).sum()), stop, rejected)


def _fates(events: pa.Table, position: np.ndarray, task: SignificantTask) -> np.ndarray:
    """The fate of each event, given all of them in order."""
    words = task.significance
    op, target = events[words.op], events[words.object]
    objects = _codes(target)
    txns = _codes(events[words.txn]) if words.txn in events.column_names else np.full(len(position), -1, np.int64)
    kinds = np.full(len(position), _OTHER)
    kinds[_is(op, words.commit)] = _COMMIT
    kinds[_is(op, words.write) & (objects >= 0)] = _WRITE
    # Writes of one transaction to one object share a number.
    pairs = np.unique(objects * (txns.max(initial=-1) + 2) + txns, return_inverse=True)[1].astype(np.int64)
    return decide(position, objects, txns, pairs, kinds, min(task.within, CLOCK_MAX), min(task.heard, CLOCK_MAX),
                  task.heard > CLOCK_MAX)  # fmt: skip


@compiled
def decide(
    position: np.ndarray, objects: np.ndarray, txns: np.ndarray, pairs: np.ndarray, kinds: np.ndarray,
    within: int, heard: int, all_heard: bool,
) -> np.ndarray:  # fmt: skip
    """The fate of each event. Goes backwards, so that a superseding write is seen before the superseded one."""
    count = len(position)
    fate = np.zeros(count, np.int64)
    object_count, txn_count, pair_count = 0, 0, 0
    for event in range(count):
        object_count = max(object_count, objects[event] + 1)
        txn_count = max(txn_count, txns[event] + 1)
        pair_count = max(pair_count, pairs[event] + 1)
    committed = np.full(txn_count, _NEVER)  # The clock of the next commit of a transaction.
    effective = np.full(object_count, _NEVER)  # In the run: the earliest clock at which a write is known to take effect.
    undecided = np.zeros(object_count, np.int64)  # In the run: writes whose transaction has not committed yet.
    runs = np.zeros(object_count, np.int64)  # Runs passed so far: the later ones in the order.
    rewritten = np.full(pair_count, _NEVER)
    rewritten_in = np.full(pair_count, -1)
    for event in range(count - 1, -1, -1):
        target, txn, pair, here = objects[event], txns[event], pairs[event], position[event]
        if kinds[event] == _COMMIT:
            if txn >= 0:
                committed[txn] = here
            continue
        if target < 0:
            continue
        if kinds[event] == _OTHER:
            runs[target] += 1
            effective[target] = _NEVER
            undecided[target] = 0
            continue
        horizon = here + within if here <= _NEVER - 1 - within else _NEVER - 1
        again = rewritten[pair] if txn >= 0 and rewritten_in[pair] == runs[target] else _NEVER
        if min(effective[target], again) <= horizon:
            fate[event] = OMITTED
        elif not (all_heard or horizon < heard or (runs[target] > 0 and undecided[target] == 0)):
            fate[event] = UNKNOWN
        if txn < 0:
            effective[target] = min(effective[target], here)
        elif committed[txn] < _NEVER:
            effective[target] = min(effective[target], committed[txn])
        else:
            undecided[target] += 1
        rewritten[pair], rewritten_in[pair] = here, runs[target]
    return fate


def _codes(column: Any) -> np.ndarray:
    """Codes for the values, from 0 on; equal values have equal codes, and null is -1."""
    if pa.types.is_null(column.type):
        return np.full(len(column), -1, np.int64)
    encoded = column.combine_chunks().dictionary_encode()
    return np.asarray(encoded.indices.fill_null(-1)).astype(np.int64)


def _is(column: Any, word: str) -> np.ndarray:
    return np.asarray(pc.equal(column, pa.scalar(word)).fill_null(False))
