"""Follow a running group with Spark, cell by cell, as in a notebook: how many messages each member delivered, second by second.

    python examples/follow_group.py

It founds a group of three members here, so that there is something to follow. To follow one of your own, join it with
`observe="127.0.0.1:9400"` and give the addresses of its members instead.
"""

# %% A group to follow: three members in a thread of their own, which talk all the time.
from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING

import quire
from quire.live.ports import free_ports

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ports = free_ports(6)
members = {name: f"127.0.0.1:{port}" for name, port in zip("abc", ports[:3], strict=True)}
observed = {name: f"127.0.0.1:{port}" for name, port in zip("abc", ports[3:], strict=True)}


async def talk(name: str, pause_s: float) -> None:
    async with quire.join("board", me=name, members=members, order="total", observe=observed[name]) as group:
        reading = asyncio.create_task(read(group))
        while not reading.done():
            await group.multicast(b"hello")
            await asyncio.sleep(pause_s)


async def read(group: quire.DynamicGroup) -> None:
    async for _ in group:
        pass


async def everybody() -> None:
    await asyncio.gather(*(talk(name, pause_s) for name, pause_s in zip("abc", (0.01, 0.02, 0.04), strict=True)))


def main(seconds: float = 40.0) -> None:
    threading.Thread(target=lambda: asyncio.run(everybody()), daemon=True).start()

    # %% A session, and the stream of the members' events: the same rows as those of a trace.
    from quire.pipeline.session import session

    with session("local[2]", brief=False) as spark:
        follow(spark, seconds)


def follow(spark: SparkSession, seconds: float) -> None:
    from pyspark.sql import functions as f

    from quire.pipeline.source import register

    register(spark)
    events = spark.readStream.format("quire").option("members", ",".join(observed.values())).load()

    # %% Deliveries of each member by sender and second, in a table in memory that can be asked at any time.
    second = (f.col("time_ns") / 1e9).cast("long").alias("second")
    counted = events.where("kind = 'deliver'").groupBy("process", "origin", second).count()
    query = counted.writeStream.outputMode("complete").format("memory").queryName("deliveries").start()
    query.awaitTermination(timeout=int(seconds))

    # %% Plot it: one bar a second, of all members together.
    rows = spark.sql("select second, sum(count) as messages from deliveries group by second order by second").collect()
    most = max((row.messages for row in rows), default=1)
    for row in rows[-20:]:
        print(f"{row.second % 100_000:>6} s  {'█' * round(60 * row.messages / most):<60} {row.messages:,}")
    query.stop()


if __name__ == "__main__":
    main()
