"""Long traces of every kind that a check asks for, made without running anything: some are right, some have one fault."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from quire.model.orders import Guarantee
from quire.trace.kinds import DELIVER, KINDS, SEND, VIEW
from quire.trace.schema import SCHEMA, Outcome, RunInfo
from quire.trace.store import RunWriter
from quire.trace.views import ViewEvent

_RUN = "benchmark"


class Rows(NamedTuple):
    """Events that happen alike; anything may be one number for all of them. Words are codes, -1 for none."""

    process: Any
    lamport: np.ndarray
    kind: Any
    origin: Any
    seq: Any
    group: Any = -1
    object: Any = -1
    op: Any = -1
    txn: Any = -1


class LongTrace(NamedTuple):
    members: int
    rows: Sequence[Rows]
    words: Mapping[str, Sequence[str]] = {}
    dests: Sequence[int] = ()
    """To whom all messages go; nobody: that is not recorded."""
    settings: Mapping[str, object] = {}
    timed: bool = True
    """Whether logical times are recorded."""


def write_long(directory: Path, trace: LongTrace) -> int:
    """Write the run, and say how many events it has."""
    names = Rows._fields
    whole = {
        name: np.concatenate([np.broadcast_to(getattr(rows, name), len(rows.lamport)) for rows in trace.rows]) for name in names
    }
    order = np.lexsort((whole["lamport"], whole["process"]))
    whole = {name: column[order] for name, column in whole.items()}
    bounds = np.searchsorted(whole["process"], np.arange(trace.members + 1))
    with RunWriter(directory, _RUN) as writer:
        for process, (low, high) in enumerate(pairwise(bounds)):
            writer.append(process, _table(trace, {name: column[low:high] for name, column in whole.items()}))
        writer.finish(
            RunInfo(
                run=_RUN, source=_RUN, protocol=_RUN, options={}, members=trace.members, groups={},
                promises=(Guarantee.INTEGRITY,), settings=dict(trace.settings),
                outcome=Outcome(complete=True, messages=0, deliveries=0),
            )
        )  # fmt: skip
    return len(order)


def _table(trace: LongTrace, rows: Mapping[str, np.ndarray]) -> pa.Table:
    size = len(rows["lamport"])
    columns: dict[str, Any] = {
        "run": _coded(np.zeros(size), [_RUN], np.int8),
        "process": pa.array(rows["process"], pa.int32()),
        "pos": pa.array(np.arange(size), pa.int64()),
        "kind": _coded(rows["kind"], KINDS, np.int8),
        "origin": pa.array(rows["origin"], pa.int32()),
        "seq": pa.array(rows["seq"], pa.int64()),
    }
    if trace.timed:
        columns["lamport"] = pa.array(rows["lamport"], pa.int64())
    if trace.dests:
        is_send = rows["kind"] == SEND
        offsets = np.concatenate(([0], np.cumsum(np.where(is_send, len(trace.dests), 0)))).astype(np.int32)
        everyone = np.tile(np.array(trace.dests, np.int32), int(is_send.sum()))
        kind = SCHEMA.field("dests").type
        columns["dests"] = pa.ListArray.from_arrays(
            pa.array(offsets, pa.int32()), pa.array(everyone, pa.int32()), type=kind, mask=pa.array(~is_send)
        )
    for name, words in trace.words.items():
        columns[name] = _coded(rows[name], words, np.int32)
    return pa.table([columns.get(field.name, pa.nulls(size, field.type)) for field in SCHEMA], schema=SCHEMA)


def _coded(codes: np.ndarray, words: Sequence[str], kind: type) -> Any:
    """Only the words that are used, as whoever records a trace would write them."""
    used, own = np.unique(codes, return_inverse=True)
    lacking = int(used[0] < 0) if len(used) else 0
    own = own.reshape(-1).astype(kind) - kind(lacking)
    return pa.DictionaryArray.from_arrays(
        pa.array(own, mask=own < 0), pa.array([words[int(code)] for code in used[lacking:]], pa.string())
    )


def groups(events: int, *, count: int, swapped: bool = False, timed: bool = True) -> LongTrace:
    """Eight members in so many groups, each message sent to one of them and delivered by all members in one order; one member
    may deliver two messages the other way round."""
    members = 8
    messages = events // (members + 1)
    number = np.arange(messages)
    sender, seq, group = number % members, number // members, number // members % count
    time = number * 4
    rows = [Rows(sender, time, SEND, sender, seq, group)]
    for member in range(members):
        at = time + 1
        if swapped and member == 0:
            at[messages // 2 // members * members] += 5  # After the next one, which goes to the same group.
        rows.append(Rows(member, at, DELIVER, sender, seq, group))
    names = [f"g{each:03d}" for each in range(count)]
    return LongTrace(members, rows, {"group": names}, tuple(range(members)), timed=timed)


def memberships(events: int, *, count: int) -> LongTrace:
    """The same, and every group has been founded, with all members, and records it."""
    trace = groups(events, count=count)
    members = trace.members
    later = [rows._replace(lamport=rows.lamport + members * count) for rows in trace.rows]
    process, group = np.repeat(np.arange(members), count), np.tile(np.arange(count), members)
    # The founders join one after the other; each sees those that join after itself.
    views = []
    for joining in range(members):
        there = process <= joining
        views.append(Rows(process[there], joining * count + group[there], VIEW, joining, joining, group[there], op=0))
    return trace._replace(rows=[*views, *later], words={**trace.words, "op": ["join"]})


def transactions(events: int, *, stale: bool = False) -> LongTrace:
    """Five clients transfer between two of 100,000 accounts, one transaction after the other, at three replicas. One may read
    what another has overwritten."""
    clients, replicas, accounts = 5, 3, 100_000
    count = events // 16
    number, rng = np.arange(count), np.random.default_rng(7)
    client, turn = number % clients, number // clients
    pair = np.stack((rng.integers(0, accounts // 2, count), rng.integers(accounts // 2, accounts, count)), axis=1)
    seen = np.stack([_last_before(pair[:, side]) for side in range(2)], axis=1)
    if stale:
        late = int(np.flatnonzero((seen[:, 0] >= 0) & (seen[seen[:, 0], 0] >= 0))[-1])
        seen[late, 0] = seen[seen[late, 0], 0]
    time, home = number * 10 + 1, client + replicas
    rows = []
    for side in range(2):
        thing, source = pair[:, side], seen[:, side]
        ask, write = turn * 5 + side, turn * 5 + 2 + side
        rows.append(Rows(home, time + 2 * side, SEND, home, ask, object=thing, op=0, txn=number))
        origin = np.where(source >= 0, home[source], home)
        version = np.where(source >= 0, turn[source] * 5 + 2 + side, ask)
        rows.append(Rows(home, time + 2 * side + 1, VIEW, origin, version, object=thing, op=0, txn=number))
        rows.append(Rows(home, time + 4 + side, SEND, home, write, object=thing, op=1, txn=number))
        rows += [Rows(each, time + 7 + side, DELIVER, home, write, object=thing, op=1, txn=number) for each in range(replicas)]
    rows.append(Rows(home, time + 6, SEND, home, turn * 5 + 4, op=2, txn=number))
    rows += [Rows(each, time + 9, DELIVER, home, turn * 5 + 4, op=2, txn=number) for each in range(replicas)]
    words = {
        "object": [f"account{each}" for each in range(accounts)],
        "op": ["r", "w", "commit"],
        "txn": [f"{each + 1}.{each % clients}" for each in range(count)],
    }
    return LongTrace(clients + replicas, rows, words)


def _last_before(things: np.ndarray) -> np.ndarray:
    """Of each the last one before it that is about the same thing; -1: it is the first."""
    order = np.argsort(things, kind="stable")
    before = np.full(len(things), -1, np.int64)
    same = things[order[1:]] == things[order[:-1]]
    before[order[1:][same]] = order[:-1][same]
    return before


def calls(events: int, *, late: bool = False) -> LongTrace:
    """Roots at eight members call one of 10,000 objects, each of which has two replicas, and wait for both answers. At one
    replica two conflicting requests may begin in the other order."""
    members, objects = 8, 10_000
    count = events // 7
    number, rng = np.arange(count), np.random.default_rng(7)
    home, thing, op = number % members, rng.integers(0, objects, count), rng.integers(0, 2, count)
    at = np.stack((thing % members, (thing + 1 + thing // members % (members - 1)) % members), axis=1)
    time = number * 16
    began = np.stack((time + 1, time + 5), axis=1)
    if late:
        follows = _last_before(thing)
        second = int(np.flatnonzero((follows >= 0) & (op == 1) & (op[follows] == 1))[-1])
        began[follows[second], 0] = time[second] + 9
    sent = np.stack((time, began[:, 0] + 1, began[:, 1] + 1), axis=1)
    seq = _numbers(np.stack((home, at[:, 0], at[:, 1]), axis=1), sent)
    rows = [Rows(home, time, SEND, home, seq[:, 0], object=thing, op=op, txn=number)]
    for side in range(2):
        instance, answer = count * (side + 1) + number, seq[:, 1 + side]
        rows.append(Rows(at[:, side], began[:, side], DELIVER, home, seq[:, 0], object=thing, op=op, txn=instance))
        rows.append(Rows(at[:, side], sent[:, 1 + side], SEND, at[:, side], answer, op=2, txn=instance))
        rows.append(Rows(home, sent[:, 1 + side] + 1, DELIVER, at[:, side], answer, op=2, txn=number))
    words = {
        "object": [f"object{each}" for each in range(objects)],
        "op": ["get", "set", "ok"],
        "txn": [f"root{each}" for each in range(count)]
        + [f"{home[each]}:{seq[each, 0]}/object{thing[each]}@{at[each, side]}" for side in range(2) for each in range(count)],
    }
    listed = {"get": ["set"], "set": ["get", "set"]}
    return LongTrace(members, rows, words, settings={"conflicts": dict.fromkeys(words["object"], listed)})


def _numbers(sender: np.ndarray, sent: np.ndarray) -> np.ndarray:
    """Of every message its number at its sender."""
    order = np.lexsort((sent.reshape(-1), sender.reshape(-1)))
    own = sender.reshape(-1)[order]
    numbers = np.empty(len(order), np.int64)
    numbers[order] = np.arange(len(order)) - np.searchsorted(own, own)
    return numbers.reshape(sender.shape)


def views(events: int) -> LongTrace:
    """Eight members in one group, in five views one after the other, and each message carries an operation of a session."""
    trace = groups(events, count=1)
    members, sent = trace.members, len(trace.rows[0].lamport)
    changes = np.arange(5) * (sent // 5)
    began = trace.rows[0].lamport[changes]
    everyone = " ".join(f"{member}.1" for member in range(members))
    rows = [
        rows._replace(lamport=rows.lamport * 2 + 2, txn=members - 1 + rows.origin, group=0) for rows in trace.rows
    ]  # fmt: skip
    rows += [Rows(member, began * 2 + 1, VIEW, member, np.arange(5), 0, 0, 0, 0) for member in range(members)]
    sessions = ["1", *(f"unused{each}" for each in range(members - 2)), *(f"s{member}+1" for member in range(members))]
    words = {**trace.words, "object": [everyone], "op": [ViewEvent.INSTALL.value], "txn": sessions}
    return trace._replace(rows=rows, words=words)
