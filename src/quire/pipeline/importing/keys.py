"""Causes that are named: which record sent the message that another delivers, and which span is another's parent.

Names are spread over buckets, and each bucket is joined by one task: no task sees all names.
"""

from __future__ import annotations

from hashlib import blake2b
from zlib import crc32

import msgspec
import numpy as np
import pyarrow as pa

from quire.pipeline.importing.defects import Defect, DefectKind, Defects
from quire.pipeline.importing.records import schema_of
from quire.pipeline.importing.scratch import EDGES, Scratch, load_batch
from quire.trace.kinds import DELIVER, SEND, VIEW

_KEYS = schema_of(
    [
        ("execution", pa.int32()),
        ("name", pa.string()),
        ("row", pa.int64()),
        ("kind", pa.int8()),
        ("cause", pa.bool_()),
        ("file", pa.int32()),
        ("line", pa.int64()),
        ("content", pa.int64()),
    ]
)
_JOINED = schema_of([("row", pa.int64()), ("source", pa.int32()), ("index", pa.int64()), ("again", pa.bool_())])
"""An edge; or, where `again`, a record that sends what another had sent."""


class JoinTask(msgspec.Struct, tag="join"):
    scratch: Scratch
    files: tuple[str, ...]
    unit: str
    run: int
    hosts: tuple[str, ...]
    processes: tuple[int, ...]
    """Those that have records."""
    bucket: int
    caused: bool
    """Records name records that they follow, not messages: at their own host, too."""


class Joined(msgspec.Struct):
    defects: Defects


class CollectTask(msgspec.Struct, tag="collect"):
    """What the buckets found for some processes, in one file each."""

    scratch: Scratch
    run: int
    processes: tuple[int, ...]
    buckets: int


class Collected(msgspec.Struct):
    causes_max: int


def save_keys(scratch: Scratch, run: int, process: int, table: pa.Table, buckets: int) -> None:
    """A process's names, a batch for each bucket."""
    rows: list[list[dict[str, object]]] = [[] for _ in range(buckets)]
    columns = (table[name].to_pylist() for name in ("execution", "key", "causes", "kind", "file", "line", "order", "text"))
    for row, (execution, key, causes, kind, file, line, order, text) in enumerate(zip(*columns, strict=True)):
        content = crc32(f"{order} {causes} {text}".encode())
        for name, is_cause in [(key, False)] * (key is not None) + [(cause, True) for cause in causes or ()]:
            record = {
                "execution": execution, "name": name, "row": row, "kind": kind, "cause": is_cause, "file": file,
                "line": line, "content": content,
            }  # fmt: skip
            rows[crc32(name.encode()) % buckets].append(record)
    with pa.OSFile(scratch.path("keys", run, process), "wb") as file, pa.ipc.new_file(file, _KEYS) as writer:
        for bucket in rows:
            writer.write_batch(pa.RecordBatch.from_pylist(bucket, _KEYS))


class _Sender(msgspec.Struct, order=True):
    file: int
    line: int
    process: int
    row: int
    kind: int
    content: int


def join(task: JoinTask) -> Joined:
    defects = Defects([], {})
    names: dict[tuple[int, str], list[_Sender]] = {}
    batches = {process: load_batch(task.scratch.path("keys", task.run, process), task.bucket) for process in task.processes}
    asked: list[tuple[int, dict[str, object]]] = []
    for process, batch in batches.items():
        for record in batch.to_pylist():
            if record["cause"]:
                asked.append((process, record))
            else:
                sender = _Sender(record["file"], record["line"], process, record["row"], record["kind"], record["content"])
                names.setdefault((record["execution"], record["name"]), []).append(sender)
    found: dict[int, list[tuple[int, int, int, bool]]] = {process: [] for process in task.processes}
    for (_, name), senders in names.items():
        # Who logged it first sent it; and of its own sends the first is the one that counts.
        senders.sort()
        first = min((sender for sender in senders if sender.process == senders[0].process), key=lambda sender: sender.row)
        senders.remove(first)
        senders.insert(0, first)
        for sender in senders[1:]:
            found[sender.process].append((sender.row, first.process, first.row, True))
            if sender.kind != SEND:
                same = (sender.process, sender.content) == (first.process, first.content)
                other = f"{task.files[first.file]} {task.unit} {first.line}"
                _report(
                    task, defects, sender.process, sender.file, sender.line,
                    DefectKind.REPEATED if same else DefectKind.CONTRADICTING,
                    f"{name} repeats {other}" if same else f"{name} is also the name of {other}, which differs",
                )  # fmt: skip
    for process, record in asked:
        row, name, kind = int(str(record["row"])), str(record["name"]), record["kind"]
        senders = names.get((int(str(record["execution"])), name), [])
        names_message = kind in (DELIVER, VIEW)
        if senders and (task.caused or names_message or senders[0].process != process):
            found[process].append((row, senders[0].process, senders[0].row, False))
        elif not senders:
            what = "it delivers" if kind == DELIVER else "it read" if kind == VIEW else "it names"
            _report(task, defects, process, int(str(record["file"])), int(str(record["line"])), DefectKind.NOT_THERE,
                  f"{what} {name}, which does not exist")  # fmt: skip
            if names_message:
                found[process].append((row, -1, _nobodys(name), False))
    path = task.scratch.path("joined", task.run, task.bucket)
    with pa.OSFile(path, "wb") as file, pa.ipc.new_file(file, _JOINED) as writer:
        for process in range(len(task.hosts)):
            writer.write_batch(_batch(sorted(found.get(process, []))))
    return Joined(defects)


def collect(task: CollectTask) -> Collected:
    most = 0
    for process in task.processes:
        paths = [task.scratch.path("joined", task.run, bucket) for bucket in range(task.buckets)]
        joined = pa.Table.from_batches([load_batch(path, process) for path in paths], _JOINED)
        rows, source, index, again = (np.asarray(joined[name]) for name in _JOINED.names)
        order = np.lexsort((index, source, rows))
        rows, source, index, again = rows[order], source[order], index[order], again[order]
        edges = ~again
        if edges.any():
            most = max(most, int(np.bincount(rows[edges]).max()))
        for stage, chosen in (("edges", edges), ("again", again)):
            columns = [pa.array(rows[chosen]), pa.array(source[chosen]), pa.array(index[chosen])]
            task.scratch.save(stage, task.run, process, pa.table(columns, schema=EDGES))
    return Collected(most)


def _batch(rows: list[tuple[int, int, int, bool]]) -> pa.RecordBatch:
    columns = [[row[at] for row in rows] for at in range(4)]
    return pa.record_batch(
        [pa.array(column, field.type) for column, field in zip(columns, _JOINED, strict=True)], schema=_JOINED
    )


def _nobodys(name: str) -> int:
    """A number for a message that nobody sent: the same wherever it is delivered."""
    return int.from_bytes(blake2b(name.encode(), digest_size=6).digest(), "big")


def _report(task: JoinTask, defects: Defects, process: int, file: int, line: int, kind: DefectKind, because: str) -> None:
    defects.add(Defect(task.files[file], line, task.hosts[process], kind, because, task.unit))
