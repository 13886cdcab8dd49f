"""The names of a host's events, and the names that they give their causes, as fingerprints and cut into buckets.

One task joins each bucket (`joining.py`), so no task sees all names, and none needs their texts.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from quire.pipeline.fingerprints import fingerprints
from quire.pipeline.importing.records import schema_of
from quire.pipeline.importing.scratch import Scratch

KEYS = schema_of(
    [
        ("high", pa.int64()),
        ("low", pa.int64()),
        ("row", pa.int64()),
        ("at", pa.int64()),
        ("cause", pa.bool_()),
        ("kind", pa.int8()),
    ]
)
"""`row` is the record that has the name or, if `cause` is set, that gives it to a cause; `at` is then the index of the name
among those that the host's records give to their causes."""


def save_keys(scratch: Scratch, run: int, process: int, table: pa.Table, buckets: int, secret: int) -> None:
    """Save a process's names, one batch per bucket."""
    key, causes = table["key"].combine_chunks(), table["causes"].combine_chunks()
    own = np.flatnonzero(np.asarray(pc.is_valid(key)))
    asked = np.repeat(np.arange(table.num_rows), np.asarray(pc.list_value_length(causes).fill_null(0)))
    row = np.concatenate((own, asked))
    execution = np.asarray(table["execution"])
    prints = np.concatenate((
        fingerprints(key.drop_null(), execution[own], secret), fingerprints(pc.list_flatten(causes), execution[asked], secret)
    ))  # fmt: skip
    bucket = ((prints[:, 1] & 0xFFFF) % buckets).astype(np.uint16)
    order = np.argsort(bucket, kind="stable")
    edges = np.searchsorted(bucket[order], np.arange(buckets + 1)).tolist()
    columns = (
        prints[:, 0], prints[:, 1], row, np.concatenate((own, np.arange(len(asked)))), np.arange(len(row)) >= len(own),
        np.asarray(table["kind"])[row],
    )  # fmt: skip
    keys = pa.record_batch([pa.array(column[order]) for column in columns], schema=KEYS)
    with pa.OSFile(scratch.path("keys", run, process), "wb") as file, pa.ipc.new_file(file, KEYS) as writer:
        for begin, end in pairwise(edges):
            writer.write_batch(keys.slice(begin, end - begin))
