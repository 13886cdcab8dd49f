"""`quire order`: events of several sources, put in one exact order."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from quire.cli.grouping import grouped
from quire.cli.order_options import KeyOptions, OmissionOptions, OrderRequest, ResultOptions, StreamOptions
from quire.cli.spark import SparkOptions


@grouped
def order(
    events: Annotated[Path, typer.Argument(metavar="IN", help="A directory or file of Parquet or JSON lines, or a run.")],
    out: Annotated[Path, typer.Argument(metavar="OUT", help="A new directory for the ordered events.")],
    keys: KeyOptions,
    omission: OmissionOptions,
    result: ResultOptions,
    streaming: StreamOptions,
    spark: SparkOptions,
    json: Annotated[bool, typer.Option("--json", help="Print JSON only.")] = False,
) -> None:
    """Put events of several sources in one exact order, on Spark: the same bytes however the input is cut into files."""
    from quire.cli.order_stream import order_stream_command

    where, request = spark.address(), OrderRequest(keys, omission, result, streaming)
    request.check()
    if streaming.stream:
        order_stream_command(events, out, request, where, json=json)
    else:
        _order_batch(events, out, request, where, json=json)


def _order_batch(events: Path, out: Path, request: OrderRequest, where: str, *, json: bool) -> None:
    from rich.console import Console

    from quire.cli.status import status
    from quire.cli.workers import few_bytes
    from quire.pipeline.ordering.batch import BatchOrder, check_target, order_batch
    from quire.pipeline.ordering.reading import find_files
    from quire.pipeline.session import session

    keys, to = request.keys, request.result.to
    # Before Spark is started, which takes seconds, find out whether there is anything to order, and where to.
    if not (events / "run.json").is_file():
        find_files(events)
    check_target(out, force=request.result.force)
    wanted = BatchOrder(
        by="causal" if keys.causal or keys.id is not None else "total",
        id=keys.id,
        after=keys.after,
        source=keys.source,
        clock=keys.clock,
        vector=keys.vector,
        sources=keys.source_names(),
        omit_superseded=request.omission.significance(),
        to="parquet" if to == "parquet" else "json" if to == "json" else None,
    )
    wanted.check()
    # Spark is made ready for long work only where there is any.
    with status("starting Spark") as say, session(where, brief=few_bytes(events)) as spark:
        say(f"ordering {events}")
        done = order_batch(spark, events, out, wanted, force=request.result.force)
    if json:
        sys.stdout.buffer.write(msgspec.json.encode(done) + b"\n")
        sys.stdout.buffer.flush()
        return
    omitted = f", {done.omitted:,} superseded writes left out" if wanted.omit_superseded is not None else ""
    if done.missing:
        omitted += f", {done.missing:,} × an event follows one that is not there"
    Console(highlight=False).print(
        f"{done.events:,} events in {done.by} order{omitted}: {out}, {done.files} files of {done.format}", soft_wrap=True
    )
