"""A user's own streaming job, in a process that can be killed: python -m tests.ordering.streaming_job IN OUT.

It orders the events twice, with superseded writes and without them.
"""

from __future__ import annotations

import sys
from pathlib import Path

from quire.pipeline.ordering.significance import Significance
from quire.pipeline.ordering.stream.options import TotalOrder
from quire.pipeline.ordering.stream.query import close_order, order_stream
from quire.pipeline.session import session

SOURCES = tuple(f"s{number}" for number in range(4))
SCHEMA = "source string, clock long, object string, op string, by string, text string"
WITHIN = 40
ORDERS = {
    "all": TotalOrder(sources=SOURCES, idle="wait"),
    "significant": TotalOrder(sources=SOURCES, idle="wait", omit_superseded=Significance(txn="by"), within=WITHIN),
}


def main(events: str, out: str) -> None:
    Path(out).mkdir(exist_ok=True)
    with session("local[2]") as spark:
        queries = []
        for name, order in ORDERS.items():
            frame = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 2).parquet(events)
            queries.append(order_stream(frame, Path(out) / name, order, available_now=True))
        for query in queries:
            query.awaitTermination()
    for name in ORDERS:
        close_order(Path(out) / name)


if __name__ == "__main__":
    main(*sys.argv[1:])
