"""A user's own streaming job, in a process that can be killed: python -m tests.ordering.streaming_job IN OUT."""

from __future__ import annotations

import sys

from quire.pipeline.ordering.stream.query import close_order, order_stream
from quire.pipeline.ordering.stream.wishes import TotalOrder
from quire.pipeline.session import session

SOURCES = tuple(f"s{number}" for number in range(4))
SCHEMA = "source string, clock long, text string"


def main(events: str, out: str) -> None:
    with session("local[2]") as spark:
        frame = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 2).parquet(events)
        order_stream(frame, out, TotalOrder(sources=SOURCES, idle="wait"), available_now=True).awaitTermination()
    close_order(out)


if __name__ == "__main__":
    main(*sys.argv[1:])
