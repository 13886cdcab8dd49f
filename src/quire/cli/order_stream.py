"""`quire order --stream`: put events in order while they arrive, until it is stopped or has read what there is."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import typer
from rich.console import Console

from quire.cli.auditing import EXIT_CODES, status
from quire.model.errors import BadInput
from quire.pipeline.ordering.significance import Significance

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from quire.pipeline.ordering.stream.ledger import State
    from quire.pipeline.ordering.stream.wishes import Idle, Wishes

_LOOK_S = 1
_CORRUPT = "_corrupt_record"


class StreamWishes(msgspec.Struct, frozen=True, kw_only=True):
    """What the command line says of a stream, as it says it."""

    causal: bool
    source: str | None
    clock: str | None
    vector: str | None
    sources: str | None
    idle: str | None
    heartbeat: str | None
    transaction: str | None
    omit_superseded: Significance | None
    within: int | None
    schema: str | None
    files_per_batch: int | None
    to: str | None
    once: bool
    end: bool

    def only_for_streams(self) -> str | None:
        """The first of these that makes no sense for a batch, if there is one."""
        given = ("idle", "heartbeat", "transaction", "within", "schema", "files_per_batch", "once", "end")
        return next((name.replace("_", "-") for name in given if getattr(self, name) not in (None, False)), None)


def order_stream_command(events: Path, out: Path, wishes: StreamWishes, where: str, *, json: bool) -> None:
    """Run the stream and say how it went."""
    from quire.pipeline.ordering.stream.ledger import Ledger
    from quire.pipeline.session import session

    form = _format(events)
    wanted = _wanted(wishes, events, form)
    if wishes.end and not wishes.once:
        raise BadInput("--end says that nothing more will come, so it needs --once")
    if wishes.to not in (None, "parquet", "json"):
        raise BadInput(f"--to is parquet or json, not {wishes.to!r}")
    Ledger(out).check_place()
    with status("starting Spark") as say, session(where, brief=False) as spark:
        frame = _read(spark, events, form, wishes)
        state = _run(frame, out, wanted, wishes, say)
    if json:
        sys.stdout.buffer.write(msgspec.json.encode(_summary(state, out)) + b"\n")
        sys.stdout.buffer.flush()
    else:
        Console(highlight=False).print(_told(state, out), soft_wrap=True)


def _format(path: Path) -> str:
    if not path.is_dir():
        if path.exists():
            raise BadInput(f"{path} is a file; a stream is a directory to which files are added")
        return "quire"
    names = {file.suffix for file in path.iterdir()}
    if (path / "run.json").exists() or ".head" in names:
        return "quire"
    if ".parquet" in names:
        return "parquet"
    if names & {".json", ".jsonl", ".ndjson"}:
        return "json"
    raise BadInput(f"{path} holds no .parquet or .json files yet, and no run; put a first file there")


def _wanted(wishes: StreamWishes, path: Path, form: str) -> Wishes:
    from quire.pipeline.ordering.stream.wishes import CausalOrder, TotalOrder

    sources: tuple[str | int, ...] = ()
    if form == "quire":
        from quire.pipeline.source import members_of

        sources = tuple(range(members_of(path)))
    if wishes.sources is not None:
        sources = tuple(name.strip() for name in wishes.sources.split(","))
    if not sources:
        raise BadInput("a stream needs --sources a,b,c: an order is final only when all of them were heard")
    if wishes.omit_superseded is None and wishes.within is not None:
        raise BadInput("--within is for --omit-superseded")
    if wishes.causal:
        if wishes.idle is not None or wishes.heartbeat is not None or wishes.transaction is not None:
            raise BadInput(
                "--idle, --heartbeat and --transaction are for total order; in causal order nobody waits for a silent source"
            )
        if wishes.omit_superseded is not None:
            raise BadInput(
                "--omit-superseded goes with --stream in total order only: which of two writes is the later one would "
                "depend on when they arrive"
            )
        return CausalOrder(sources=sources, source=wishes.source or "source", vector=wishes.vector or "vector")
    if wishes.omit_superseded is not None and wishes.within is None:
        raise BadInput("say by how many clocks a write must be superseded to be left out of a stream: --within CLOCKS")
    own = ("process", "lamport") if form == "quire" else ("source", "clock")
    return TotalOrder(
        sources=sources,
        idle=_idle(wishes.idle),
        source=wishes.source or own[0],
        clock=wishes.clock or own[1],
        heartbeat=wishes.heartbeat,
        transaction=wishes.transaction,
        omit_superseded=wishes.omit_superseded,
        within=wishes.within,
    )


def _idle(text: str | None) -> Idle:
    if text is None:
        raise BadInput("say what to do about a source that is silent: --idle wait, or --idle SECONDS to go on without it")
    if text == "wait":
        return "wait"
    try:
        return float(text)
    except ValueError:
        raise BadInput(f"--idle is 'wait' or a number of seconds, not {text!r}") from None


def _read(spark: SparkSession, path: Path, form: str, wishes: StreamWishes) -> DataFrame:
    from pyspark.errors import PySparkException

    if form == "quire":
        from quire.pipeline.source import register

        register(spark)
        return spark.readStream.format("quire").load(str(path.absolute()))
    try:
        if wishes.schema is not None:
            schema: Any = wishes.schema
        else:
            known = spark.read.format(form).load(str(path))
            schema = ", ".join(f"`{field.name}` {field.dataType.simpleString()}" for field in known.schema.fields)
        if form == "json" and _CORRUPT not in schema:
            schema += f", {_CORRUPT} string"
        reader = spark.readStream.schema(schema)
        if wishes.files_per_batch is not None:
            reader = reader.option("maxFilesPerTrigger", wishes.files_per_batch)
        return reader.format(form).load(str(path))
    except PySparkException as error:
        raise BadInput(f"{path} cannot be read: {str(error).strip().splitlines()[0]}") from None


def _run(frame: DataFrame, out: Path, wanted: Wishes, wishes: StreamWishes, say: Any) -> State | None:
    from pyspark.errors import PySparkException

    from quire.pipeline.ordering.stream.query import close_order, order_progress

    try:
        _follow(frame, out, wanted, wishes, lambda: say(_told(order_progress(out), out)))
    except KeyboardInterrupt:
        print(f"quire: stopped; {_told(order_progress(out), out)}; the same command goes on from there", file=sys.stderr)
        raise
    except PySparkException as error:
        text = str(error)
        if found := re.search(r"BadInput: (.+)", text):
            raise BadInput(found[1].strip()) from None
        print(f"quire: the order stopped, because Spark failed: {text.strip().splitlines()[0]}", file=sys.stderr)
        raise typer.Exit(EXIT_CODES["undecided"]) from None
    return close_order(out) if wishes.end and order_progress(out) is not None else order_progress(out)


def _follow(frame: DataFrame, out: Path, wanted: Wishes, wishes: StreamWishes, look: Callable[[], None]) -> None:
    from quire.pipeline.ordering.stream.query import order_stream

    query = order_stream(frame, out, wanted, form="json" if wishes.to == "json" else "parquet", available_now=wishes.once)
    try:
        while not query.awaitTermination(_LOOK_S):
            look()
    finally:
        query.stop()  # Over Connect it would go on without this command.


def _summary(state: State | None, out: Path) -> dict[str, object]:
    return {
        "out": str(out),
        "left": state.left if state else 0,
        "waiting": state.waiting_events() if state else 0,
        "rejected": state.rejected if state else 0,
        "omitted": state.omitted if state else 0,
        "micro_batches": state.batch + 1 if state else 0,
    }


def _told(state: State | None, out: Path) -> str:
    if state is None:
        return f"nothing has left yet: {out}"
    rejected = f", {state.rejected:,} rejected (in {out}/_rejected, with the reason)" if state.rejected else ""
    omitted = f", {state.omitted:,} superseded writes left out" if state.omitted else ""
    return f"{state.left:,} events in order, {state.waiting_events():,} waiting{omitted}{rejected}: {out}"
