"""`quire order`: events of several sources, put in one exact order."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import msgspec
import typer
from rich.console import Console

from quire.cli.auditing import status
from quire.cli.order_stream import StreamWishes, order_stream_command
from quire.cli.spark import Master, Remote, place
from quire.model.errors import BadInput
from quire.pipeline.ordering.reading import find_files

FORMATS = ("parquet", "json")


def order(
    source_path: Annotated[Path, typer.Argument(metavar="IN", help="A directory or file of Parquet or JSON lines, or a run.")],
    target: Annotated[Path, typer.Argument(metavar="OUT", help="A new directory for the ordered events.")],
    causal: Annotated[
        bool, typer.Option("--causal", help="By what happened before what; if not given, by (clock, source).")
    ] = False,
    source: Annotated[str | None, typer.Option(help="The column that names an event's source.")] = None,
    clock: Annotated[str | None, typer.Option(help="The column with its logical clock.")] = None,
    vector: Annotated[str | None, typer.Option(help="The column with its vector clock, for --causal.")] = None,
    sources: Annotated[
        str | None, typer.Option(help="a,b,c: all sources, for --stream; whose each entry is, where vectors are arrays.")
    ] = None,
    omit_superseded: Annotated[
        bool, typer.Option("--omit-superseded", help="Leave out writes that a later one of the same object supersedes.")
    ] = False,
    object_column: Annotated[str, typer.Option("--object", help="The column that names what is written.")] = "object",
    op: Annotated[str, typer.Option(help="The column that says what is done to it.")] = "op",
    txn: Annotated[str, typer.Option(help="The column that names its transaction, if there is one.")] = "txn",
    write_word: Annotated[str, typer.Option("--write", help="The word for a write in that column.")] = "write",
    commit_word: Annotated[str, typer.Option("--commit", help="The word for a commit in that column.")] = "commit",
    within: Annotated[
        int | None,
        typer.Option(help="For --stream --omit-superseded: by how many clocks a later write must come; so long may one wait."),
    ] = None,
    to: Annotated[str | None, typer.Option(help="parquet or json; as the input if not given.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace the ordered events that are there.")] = False,
    stream: Annotated[
        bool, typer.Option("--stream", help="Order events while they arrive; the same command goes on where it ended.")
    ] = False,
    idle: Annotated[
        str | None, typer.Option(help="For --stream: `wait` for a silent source, or so many seconds, then go on without it.")
    ] = None,
    heartbeat: Annotated[
        str | None, typer.Option(help="For --stream: the column that is true in rows that only tell a source's clock.")
    ] = None,
    transaction: Annotated[
        str | None, typer.Option(help="For --stream: the column whose value events share that must leave together.")
    ] = None,
    schema: Annotated[str | None, typer.Option(help="For --stream: the columns, like 'source string, clock long'.")] = None,
    files_per_batch: Annotated[int | None, typer.Option(help="For --stream: how many files to take at a time.")] = None,
    once: Annotated[bool, typer.Option("--once", help="For --stream: read what is there, and end.")] = False,
    end: Annotated[bool, typer.Option("--end", help="For --stream --once: nothing more will come, so nothing waits.")] = False,
    master: Master = None,
    remote: Remote = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON only.")] = False,
) -> None:
    """Put events of several sources in one exact order, on Spark: the same bytes however the input is cut into files."""
    from quire.pipeline.ordering.batch import BatchOrder, check_target, order_batch
    from quire.pipeline.ordering.significance import Significance
    from quire.pipeline.session import session

    where = place(master, remote)
    significance = Significance(object=object_column, op=op, txn=txn, write=write_word, commit=commit_word)
    wishes = StreamWishes(
        causal=causal, source=source, clock=clock, vector=vector, sources=sources, idle=idle, heartbeat=heartbeat,
        transaction=transaction, omit_superseded=significance if omit_superseded else None, within=within,
        schema=schema, files_per_batch=files_per_batch, to=to, once=once, end=end,
    )  # fmt: skip
    if stream:
        if force:
            raise BadInput("--force is not for --stream, which goes on with what is there, as it is")
        order_stream_command(source_path, target, wishes, where, json=json)
        return
    if named := wishes.only_for_streams():
        raise BadInput(f"--{named} is for --stream")
    # Before Spark is started, which takes seconds, find out whether there is anything to order, and where to.
    if to is not None and to not in FORMATS:
        raise BadInput(f"--to is {' or '.join(FORMATS)}, not {to!r}")
    if not (source_path / "run.json").is_file():
        find_files(source_path)
    check_target(target, force=force)
    wanted = BatchOrder(
        by="causal" if causal else "total",
        source=source,
        clock=clock,
        vector=vector,
        sources=None if sources is None else tuple(name.strip() for name in sources.split(",")),
        omit_superseded=significance if omit_superseded else None,
        to="parquet" if to == "parquet" else "json" if to == "json" else None,
    )
    with status("starting Spark") as say, session(where, brief=False) as spark:
        say(f"ordering {source_path}")
        done = order_batch(spark, source_path, target, wanted, force=force)
    if json:
        sys.stdout.buffer.write(msgspec.json.encode(done) + b"\n")
        sys.stdout.buffer.flush()
        return
    omitted = f", {done.omitted:,} superseded writes left out" if omit_superseded else ""
    Console(highlight=False).print(
        f"{done.events:,} events in {done.by} order{omitted}: {target}, {done.files} files of {done.format}", soft_wrap=True
    )
