"""`quire order --stream`: put events in order while they arrive, until it is stopped or has read what there is."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import typer
from rich.console import Console

from quire.cli.auditing import EXIT_CODES
from quire.cli.order_options import KeyOptions, OrderRequest, StreamOptions
from quire.cli.status import status
from quire.model.errors import BadInput

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from quire.pipeline.ordering.reading import Format
    from quire.pipeline.ordering.stream.ledger import State
    from quire.pipeline.ordering.stream.options import CausalOrder, FollowingOrder, Idle, OrderOptions, TotalOrder

_LOOK_S = 1
_CORRUPT = "_corrupt_record"


def order_stream_command(events: Path, out: Path, request: OrderRequest, where: str, *, json: bool) -> None:
    """Run the stream and say how it went."""
    from quire.pipeline.ordering.stream.ledger import Ledger
    from quire.pipeline.session import session

    form = _format(events)
    options = _order_options(request, events, form)
    Ledger(out).check_target()
    with status("starting Spark") as say, session(where, brief=False) as spark:
        frame = _read(spark, events, form, request.streaming)
        state = _run(frame, out, options, request, say)
    if json:
        sys.stdout.buffer.write(msgspec.json.encode(_summary(state, out)) + b"\n")
        sys.stdout.buffer.flush()
    else:
        Console(highlight=False).print(_sentence(state, out), soft_wrap=True)


def _format(path: Path) -> str:
    if not path.is_dir():
        if path.exists():
            raise BadInput(f"{path} is a file; a stream is a directory to which files are added")
        return "quire"
    names = {file.suffix for file in path.iterdir()}
    if (path / "run.json").exists() or ".events" in names:
        return "quire"
    if ".parquet" in names:
        return "parquet"
    if names & {".json", ".jsonl", ".ndjson"}:
        return "json"
    raise BadInput(f"{path} holds no .parquet or .json files yet, and no run; put a first file there")


def _order_options(request: OrderRequest, path: Path, form: str) -> OrderOptions:
    if not request.omission.omit_superseded and request.omission.within is not None:
        raise BadInput("--within is for --omit-superseded")
    if request.keys.id is not None or request.keys.after is not None:
        return _following(request)
    sources = _sources(request.keys, path, form)
    return _causal(request, sources) if request.keys.causal else _total(request, sources, form)


def _sources(keys: KeyOptions, path: Path, form: str) -> tuple[str | int, ...]:
    sources: tuple[str | int, ...] = ()
    if form == "quire":
        from quire.pipeline.source import members_of

        sources = tuple(range(members_of(path)))
    sources = keys.source_names() or sources
    if not sources:
        raise BadInput("a stream needs --sources a,b,c: an order is final only when every source has been heard from")
    return sources


def _following(request: OrderRequest) -> FollowingOrder:
    from quire.pipeline.ordering.following import check_following
    from quire.pipeline.ordering.stream.options import FollowingOrder

    keys = request.keys
    check_following(keys.id, keys.after, keys.source, keys.vector)
    if keys.clock is not None or keys.sources is not None:
        raise BadInput("with --stream, --id and --after need neither --clock nor --sources: events leave as soon as they may")
    _check_causal(request)
    assert keys.id is not None
    assert keys.after is not None
    return FollowingOrder(id=keys.id, after=keys.after)


def _causal(request: OrderRequest, sources: tuple[str | int, ...]) -> CausalOrder:
    from quire.pipeline.ordering.stream.options import CausalOrder

    _check_causal(request)
    return CausalOrder(sources=sources, source=request.keys.source or "source", vector=request.keys.vector or "vector")


def _check_causal(request: OrderRequest) -> None:
    streaming = request.streaming
    of_total = (streaming.idle, streaming.heartbeat, streaming.transaction, streaming.transaction_position)
    if any(option is not None for option in of_total):
        raise BadInput(
            "--idle, --heartbeat, --transaction and --transaction-position are for total order; "
            "a causal order does not wait for silent sources"
        )
    if request.omission.omit_superseded:
        raise BadInput(
            "with --stream, --omit-superseded needs total order: in causal order, which of two writes is the "
            "later one would depend on when they arrive"
        )


def _total(request: OrderRequest, sources: tuple[str | int, ...], form: str) -> TotalOrder:
    from quire.pipeline.ordering.stream.options import TotalOrder

    keys, omission, streaming = request.keys, request.omission, request.streaming
    if omission.omit_superseded and omission.within is None:
        raise BadInput("with --stream, --omit-superseded needs --within CLOCKS: how soon a later write must come")
    source, clock = ("process", "lamport") if form == "quire" else ("source", "clock")
    return TotalOrder(
        sources=sources,
        idle=_idle(streaming.idle),
        source=keys.source or source,
        clock=keys.clock or clock,
        heartbeat=streaming.heartbeat,
        transaction=streaming.transaction,
        transaction_position=streaming.transaction_position,
        omit_superseded=omission.significance(),
        within=omission.within,
    )


def _idle(text: str | None) -> Idle:
    if text is None:
        raise BadInput("say what to do about silent sources: --idle wait, or --idle SECONDS to continue without them")
    if text == "wait":
        return "wait"
    try:
        return float(text)
    except ValueError:
        raise BadInput(f"--idle is 'wait' or a number of seconds, not {text!r}") from None


def _read(spark: SparkSession, path: Path, form: str, streaming: StreamOptions) -> DataFrame:
    from pyspark.errors import PySparkException

    if form == "quire":
        from quire.pipeline.source import register

        register(spark)
        return spark.readStream.format("quire").load(str(path.absolute()))
    try:
        if streaming.schema is not None:
            schema: Any = streaming.schema
        else:
            known = spark.read.format(form).load(str(path))
            schema = ", ".join(f"`{field.name}` {field.dataType.simpleString()}" for field in known.schema.fields)
        if form == "json" and _CORRUPT not in schema:
            schema += f", {_CORRUPT} string"
        reader = spark.readStream.schema(schema)
        if streaming.files_per_batch is not None:
            reader = reader.option("maxFilesPerTrigger", streaming.files_per_batch)
        return reader.format(form).load(str(path))
    except PySparkException as error:
        raise BadInput(f"{path} cannot be read: {str(error).strip().splitlines()[0]}") from None


def _run(frame: DataFrame, out: Path, options: OrderOptions, request: OrderRequest, say: Any) -> State | None:
    from pyspark.errors import PySparkException

    from quire.pipeline.ordering.stream.query import close_order, order_progress
    from quire.pipeline.session import reason_of_failure

    try:
        _follow(frame, out, options, request, lambda: say(_sentence(order_progress(out), out)))
    except KeyboardInterrupt:
        print(f"quire: stopped; {_sentence(order_progress(out), out)}; the same command resumes there", file=sys.stderr)
        raise
    except PySparkException as error:
        text = str(error)
        if found := re.search(r"BadInput: (.+)", text):
            raise BadInput(found[1].strip()) from None
        print(f"quire: the order stopped, because Spark failed: {reason_of_failure(error)}", file=sys.stderr)
        raise typer.Exit(EXIT_CODES["undecided"]) from None
    return close_order(out) if request.streaming.end and order_progress(out) is not None else order_progress(out)


def _follow(frame: DataFrame, out: Path, options: OrderOptions, request: OrderRequest, look: Callable[[], None]) -> None:
    from quire.pipeline.ordering.stream.query import order_stream

    form: Format = "json" if request.result.to == "json" else "parquet"
    query = order_stream(frame, out, options, form=form, available_now=request.streaming.once)
    try:
        while not query.awaitTermination(_LOOK_S):
            look()
    finally:
        with suppress(Exception):  # Who was interrupted here has ended it before, with everything else.
            query.stop()  # Over Connect it would go on without this command.


def _summary(state: State | None, out: Path) -> dict[str, object]:
    return {
        "out": str(out),
        "left": state.left if state else 0,
        "waiting": state.waiting_events() if state else 0,
        "rejected": state.rejected if state else 0,
        "omitted": state.omitted if state else 0,
        "missing": state.missing if state else 0,
        "micro_batches": state.batch + 1 if state else 0,
    }


def _sentence(state: State | None, out: Path) -> str:
    if state is None:
        return f"no event is released yet: {out}"
    rejected = f", {state.rejected:,} rejected (in {out}/_rejected, with the reason)" if state.rejected else ""
    omitted = f", {state.omitted:,} superseded writes left out" if state.omitted else ""
    if state.missing:
        omitted += f", {state.missing:,} × an event follows one that is not there"
    return f"{state.left:,} events in order, {state.waiting_events():,} waiting{omitted}{rejected}: {out}"
