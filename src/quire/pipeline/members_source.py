"""The streaming source `quire` for running members: their events as rows, as they happen.

    spark.readStream.format("quire").option("members", "127.0.0.1:9400,127.0.0.1:9401").load()

A member keeps only the end of its trace: a stream that falls further behind fails and says so. Events that a killed member had
not handed over yet are lost.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import msgspec
import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.pandas.types import to_arrow_schema

from quire.http.addresses import read_http_address
from quire.http.client import Client, Unanswered
from quire.model.errors import BadInput
from quire.trace.rows import spread
from quire.trace.tables import as_records
from quire.trace.tail import Excerpt

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

OPTION = "members"
TOKEN_OPTION = "token"  # noqa: S105 - The name of an option.


class Excerpted(InputPartition):
    """A range of the records of one incarnation of a member."""

    def __init__(self, address: str, incarnation: int, since: int, until: int) -> None:
        self.address = address
        self.incarnation = incarnation
        self.since = since
        self.until = until


class MembersStreamReader(DataSourceStreamReader):
    """The offset holds, for each address, the incarnation of the member and how many of its records were read."""

    def __init__(self, members: str, token: str | None, schema: StructType) -> None:
        self._addresses = [address.strip() for address in members.split(",")]
        for address in self._addresses:
            read_http_address(address)
        self._token = token
        self._schema = schema

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 - Spark's name.
        return {}

    def latestOffset(self, start: dict[str, Any], limit: Any) -> dict[str, Any]:  # noqa: N802, ARG002
        end = dict(start)
        for address in self._addresses:
            before = start.get(address, {"incarnation": 0, "records": 0})
            try:
                excerpt = self._ask(address, before["records"])
                if excerpt.description is not None and excerpt.description.incarnation != before["incarnation"]:
                    excerpt = self._ask(address, 0)
            except Unanswered:
                continue  # The member may start later, or come back.
            if excerpt.description is not None and excerpt.records:
                end[address] = {"incarnation": excerpt.description.incarnation, "records": excerpt.until}
        return end

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        found: list[InputPartition] = []
        for address, until in end.items():
            before = start.get(address, {"incarnation": 0, "records": 0})
            since = before["records"] if before["incarnation"] == until["incarnation"] else 0
            if until["records"] > since:
                found.append(Excerpted(address, until["incarnation"], since, until["records"]))
        return found

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, Excerpted)
        wanted, since = to_arrow_schema(self._schema), partition.since
        while since < partition.until:
            try:
                excerpt = self._ask(partition.address, since)
            except Unanswered:
                return
            described = excerpt.description
            if described is None or described.incarnation != partition.incarnation:
                return
            # A stream that has read nothing yet begins with what the member still has; a later one must not miss any record.
            if excerpt.first > since and partition.since:
                raise BadInput(
                    f"{partition.address} keeps its events from {excerpt.first} on, and {since} is wanted: read faster"
                )
            records = as_records(excerpt.records)[: partition.until - excerpt.first]
            if not len(records):
                return
            table = spread(described.identity.run, described.process, excerpt.rows, excerpt.meaning(), records)
            since = excerpt.first + len(records)
            yield from table.select(wanted.names).cast(wanted).combine_chunks().to_batches()

    def _ask(self, address: str, since: int) -> Excerpt:
        async def ask() -> bytes:
            client = Client(read_http_address(address), self._token)
            try:
                return await client.get(f"/trace?since={since}")
            finally:
                client.close()

        return msgspec.msgpack.decode(asyncio.run(ask()), type=Excerpt)
