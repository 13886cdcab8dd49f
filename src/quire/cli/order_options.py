"""The options of `quire order`, in groups: the sort keys, the omission of writes, the output, and streaming."""

from __future__ import annotations

from typing import Annotated

import msgspec
import typer

from quire.model.errors import BadInput
from quire.pipeline.ordering.significance import Significance


class KeyOptions(msgspec.Struct, frozen=True, kw_only=True):
    """By what events are ordered."""

    causal: Annotated[bool, typer.Option("--causal", help="Causal order; if not given, total order by (clock, source).")] = (
        False
    )
    source: Annotated[str | None, typer.Option(help="The column that names an event's source.")] = None
    clock: Annotated[
        str | None,
        typer.Option(help="The column with its logical clock; a.b is a field, and a,b are compared one after another."),
    ] = None
    vector: Annotated[str | None, typer.Option(help="The column with its vector clock, for --causal.")] = None
    id: Annotated[
        str | None, typer.Option(help="The column with the names of events that say in --after which others they follow.")
    ] = None
    after: Annotated[
        str | None, typer.Option(help="The column with the names of the events that an event follows, for --id.")
    ] = None
    sources: Annotated[
        str | None, typer.Option(help="a,b,c: all sources, for --stream; also the order of the entries of array vectors.")
    ] = None

    def source_names(self) -> tuple[str, ...] | None:
        return None if self.sources is None else tuple(name.strip() for name in self.sources.split(","))


class OmissionOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Which writes are left out, and how they are recognised."""

    omit_superseded: Annotated[
        bool, typer.Option("--omit-superseded", help="Leave out writes that a later one of the same object supersedes.")
    ] = False
    object: Annotated[str, typer.Option(help="The column with the object that is written.")] = "object"
    op: Annotated[str, typer.Option(help="The column with the operation.")] = "op"
    txn: Annotated[str, typer.Option(help="The column that names its transaction, if there is one.")] = "txn"
    write: Annotated[str, typer.Option(help="The value of that column that means a write.")] = "write"
    commit: Annotated[str, typer.Option(help="The value of that column that means a commit.")] = "commit"
    within: Annotated[
        int | None,
        typer.Option(
            help="For --stream --omit-superseded: how many clocks to look ahead for a later write; writes may wait as long."
        ),
    ] = None

    def significance(self) -> Significance | None:
        """How superseded writes are recognised; None if they are kept."""
        if not self.omit_superseded:
            return None
        return Significance(object=self.object, op=self.op, txn=self.txn, write=self.write, commit=self.commit)


class ResultOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What is written."""

    to: Annotated[str | None, typer.Option(help="parquet or json; as the input if not given.")] = None
    force: Annotated[bool, typer.Option("--force", help="Replace existing ordered events.")] = False

    def check_format(self) -> None:
        if self.to not in (None, "parquet", "json"):
            raise BadInput(f"--to must be parquet or json, not {self.to!r}")


class StreamOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How events are ordered while they arrive."""

    stream: Annotated[
        bool, typer.Option("--stream", help="Order events while they arrive; the same command resumes where it stopped.")
    ] = False
    idle: Annotated[
        str | None, typer.Option(help="For --stream: `wait` for silent sources, or continue without one after SECONDS.")
    ] = None
    heartbeat: Annotated[
        str | None,
        typer.Option(help="For --stream: the column that is true in heartbeats, which only advance a source's clock."),
    ] = None
    transaction: Annotated[
        str | None, typer.Option(help="For --stream: the column with the transaction; its events are released together.")
    ] = None
    transaction_position: Annotated[
        str | None,
        typer.Option(
            help="For --stream: the column with the position of the transaction, the same at every source; its events, of all "
            "sources, are released together, in this order."
        ),
    ] = None
    schema: Annotated[str | None, typer.Option(help="For --stream: the schema, like 'source string, clock long'.")] = None
    files_per_batch: Annotated[int | None, typer.Option(help="For --stream: the maximum number of files in a micro-batch.")] = (
        None
    )
    once: Annotated[bool, typer.Option("--once", help="For --stream: process the files that exist, and exit.")] = False
    end: Annotated[bool, typer.Option("--end", help="For --stream --once: the input is complete, so release everything.")] = (
        False
    )


class OrderRequest(msgspec.Struct, frozen=True):
    """Everything that the command line says of an order."""

    keys: KeyOptions
    omission: OmissionOptions
    result: ResultOptions
    streaming: StreamOptions

    def check(self) -> None:
        """Refuse what does not go together, whatever the events are like."""
        self.result.check_format()
        if self.streaming.stream:
            if self.result.force:
                raise BadInput("--force cannot be combined with --stream, which continues an existing order")
            if self.streaming.end and not self.streaming.once:
                raise BadInput("--end says that the input is complete, so it needs --once")
            return
        given = {**msgspec.structs.asdict(self.streaming), "within": self.omission.within}
        if named := [name for name, value in given.items() if value not in (None, False)]:
            raise BadInput(f"--{named[0].replace('_', '-')} is for --stream")
