"""Spark follows members that run: the reader of the stream, without a session, against members that can be looked at."""

from __future__ import annotations

import asyncio
import threading

import pyarrow as pa
import pytest

pytest.importorskip("pyspark")

from pyspark.sql.pandas.types import from_arrow_schema

from quire.model.errors import BadInput
from quire.pipeline.members_source import MembersStreamReader
from quire.pipeline.source import QuireDataSource, _plain
from quire.trace.schema import SCHEMA
from tests.live.test_observing import changing, read_all

SPARK_SCHEMA = from_arrow_schema(_plain(SCHEMA))


def rows(reader: MembersStreamReader, start: dict[str, object], end: dict[str, object]) -> list[dict[str, object]]:
    batches = [batch for partition in reader.partitions(start, end) for batch in reader.read(partition)]
    return pa.Table.from_batches(batches).to_pylist() if batches else []


def test_a_stream_of_members_has_every_event_once_and_in_the_order_of_each_member() -> None:
    found: list[dict[str, object]] = []

    def follow(addresses: str, offsets: list[dict[str, object]]) -> None:
        reader = MembersStreamReader(addresses, None, SPARK_SCHEMA)
        end = reader.latestOffset(offsets[-1], None)
        found.extend(rows(reader, offsets[-1], end))
        offsets.append(end)

    async def main() -> None:
        async with changing() as (groups, shown):
            readers = [asyncio.create_task(read_all(group)) for group in groups.values()]
            offsets: list[dict[str, object]] = [{}]
            for _ in range(3):
                for group in groups.values():
                    await group.execute(b"hello")
                await asyncio.to_thread(follow, ",".join(shown.values()), offsets)
            assert threading.current_thread() is threading.main_thread()
            assert all(not reader.done() for reader in readers)

    asyncio.run(main())
    processes = {row["process"] for row in found}
    assert len(processes) == 3
    for process in processes:
        own = [row for row in found if row["process"] == process]
        assert [row["pos"] for row in own] == list(range(len(own)))
        assert sum(row["kind"] == "send" for row in own) == 3


def test_options_that_make_no_sense_are_refused() -> None:
    for options in ({}, {"path": "x", "members": "127.0.0.1:1"}):
        with pytest.raises(BadInput, match="needs a path"):
            QuireDataSource(dict(options))
    with pytest.raises(BadInput, match="HOST:PORT"):
        QuireDataSource({"members": "nowhere"}).streamReader(SPARK_SCHEMA)
    with pytest.raises(BadInput, match="readStream"):
        QuireDataSource({"members": "127.0.0.1:1"}).reader(SPARK_SCHEMA)


def test_members_that_are_not_there_yet_are_waited_for() -> None:
    reader = MembersStreamReader("127.0.0.1:1", None, SPARK_SCHEMA)
    assert reader.latestOffset({}, None) == {}
