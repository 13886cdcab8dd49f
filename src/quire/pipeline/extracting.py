"""Extracts one execution of a run with several into a new run: the same events, numbered from 0 on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa

from quire.files.errors import writing
from quire.files.replacing import Staging
from quire.model.errors import BadInput
from quire.pipeline.columns import flags, kinds, numbers, present
from quire.pipeline.layout import lay_out, overlapping
from quire.pipeline.reading import TraceReader
from quire.trace.executions import read_executions
from quire.trace.kinds import DELIVER, SEND
from quire.trace.schema import EVENT, IMPLIED, IMPORTED, Outcome
from quire.trace.store import open_run, open_trace, run_parts

_WHAT = "a run directory"


class Extracted(msgspec.Struct, frozen=True):
    execution: str
    events: int
    messages: int
    deliveries: int


def extract_execution(directory: Path, label: str, out: Path, *, force: bool = False) -> Extracted:
    """Write the execution with this label to a new run directory; raises BadInput if there is none."""
    stored = open_run(directory)
    executions = read_executions(directory)
    if executions is None:
        raise BadInput(f"{directory} holds one execution only, which is a run already")
    number = executions.find(label)
    low, high = executions.begins[number : number + 2].tolist()
    name = f"{stored.info.run}#{number + 1}"
    groups = overlapping(lay_out(stored).groups, low, high)
    tables: dict[int, pa.Table] = {}
    with TraceReader(stored.info.run) as reader:
        for own, table in reader.read_files(groups, IMPORTED.names):
            times = numbers(table, "lamport")[0]
            chosen = table.filter(pa.array((times >= low) & (times < high)))
            if chosen.num_rows:
                tables[own[0].process] = chosen
    first = _first_messages(tables, stored.info.members)
    done = Extracted(label, *(sum(counts) for counts in zip(*map(_counts, tables.values()), strict=True)))
    with Staging(out, run_parts, _WHAT, force=force) as staging:
        with writing(out):
            (staging.path / "trace").mkdir()
            for process, table in tables.items():
                with open_trace(staging.path / "trace" / f"p{process:05d}.parquet", IMPORTED) as file:
                    file.write_table(_renumbered(table, name, first))
            settings = {key: value for key, value in stored.info.settings.items() if key != "executions"}
            info = msgspec.structs.replace(
                stored.info, run=name, settings={**settings, "execution": label},
                outcome=Outcome(complete=stored.info.outcome.complete, messages=done.messages, deliveries=done.deliveries),
            )  # fmt: skip
            (staging.path / "run.json").write_bytes(msgspec.json.format(msgspec.json.encode(info)) + b"\n")
        staging.publish()
    return done


def _counts(table: pa.Table) -> tuple[int, int, int]:
    """The numbers of events, messages and deliveries of a process."""
    kind, implied = kinds(table["kind"]), flags(table, IMPLIED)
    seq = numbers(table, "seq")[0]
    return int((~implied).sum()), len(np.unique(seq[kind == SEND])), int(((kind == DELIVER) & ~implied).sum())


def _first_messages(tables: dict[int, pa.Table], members: int) -> np.ndarray:
    """The number of the first message that each process sends here."""
    first = np.zeros(members, np.int64)
    for process, table in tables.items():
        own = (kinds(table["kind"]) == SEND) & (numbers(table, "origin")[0] == process)
        first[process] = numbers(table, "seq")[0][own].min() if own.any() else 0
    return first


def _renumbered(table: pa.Table, run: str, first: np.ndarray) -> pa.Table:
    origin = numbers(table, "origin")[0]
    sent = present(table["origin"]) & (origin >= 0)
    seq = numbers(table, "seq")[0] - np.where(sent, first[np.where(sent, origin, 0)], 0)
    pos, event = numbers(table, "pos")[0], numbers(table, EVENT)[0]
    columns: dict[str, Any] = {
        "run": pa.array([run] * table.num_rows, pa.string()).dictionary_encode(),
        "pos": pa.array(pos - pos[0]),
        "seq": pa.array(seq, mask=~present(table["seq"])),
        EVENT: pa.array(event - event[0]),
    }
    for name, column in columns.items():
        field = IMPORTED.field(name)
        table = table.set_column(table.column_names.index(name), field, column.cast(field.type))
    return table.select(IMPORTED.names).cast(IMPORTED)
