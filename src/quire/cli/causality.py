"""`quire causality`: what happened before what in a trace."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer
from rich.console import Console
from rich.table import Table

from quire.cli.legible import legible
from quire.cli.spark import Master, Remote, requested_address
from quire.cli.workers import few_events, workers
from quire.files.errors import writing
from quire.files.replacing import scratch_for
from quire.model.errors import BadInput
from quire.model.messages import MessageId

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from quire.pipeline import Causality
    from quire.pipeline.causality.critical import Stretch
    from quire.pipeline.causality.events import Described, Event, Named, Place
    from quire.pipeline.causality.queries import Share

EXIT_CONTRADICTION = 1
_SHOWN = 40


def causality(
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="The run directory.")],
    past: Annotated[str | None, typer.Option(metavar="EVENT", help="List what happened before this event, like 2@57.")] = None,
    future: Annotated[str | None, typer.Option(metavar="EVENT", help="List what happened after this event.")] = None,
    concurrent: Annotated[str | None, typer.Option(metavar="EVENT", help="List what is concurrent with this event.")] = None,
    relation: Annotated[
        tuple[str, str] | None, typer.Option(metavar="EVENT EVENT", help="Which of the two happened first, if any.")
    ] = None,
    critical_path: Annotated[
        str | None, typer.Option(metavar="events|time", help="Show the chain that determined when the last event could happen.")
    ] = None,
    first: Annotated[
        str | None, typer.Option(metavar="REGEX", help="List the matching events that no other match precedes, like (?i)error.")
    ] = None,
    pairs: Annotated[
        str | None, typer.Option(metavar="REGEX", help="List the pairs of matching events that are concurrent.")
    ] = None,
    each: Annotated[
        bool,
        typer.Option("--each", help="Answer --critical-path and --first for every execution of an import that has several."),
    ] = False,
    column: Annotated[str, typer.Option(help="The column that --first and --pairs search.")] = "text",
    limit: Annotated[int, typer.Option(help="How many pairs to list.")] = 100,
    out: Annotated[
        Path | None, typer.Option(help="Write every event with its vector time to this directory, as Parquet.")
    ] = None,
    master: Master = None,
    remote: Remote = None,
    segments: Annotated[
        int | None, typer.Option(help="Number of segments processed in parallel; does not change the answer.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON only.")] = False,
) -> None:
    """Say what happened before what in a trace: in all of it, around an event, or where an error began.

    An event is PROCESS@POSITION, like 2@57, or ORIGIN:NUMBER for the sending of a message, like 0:17. In an imported
    trace it is HOST@NUMBER, like alpha@57, FILE:LINE, or what the log calls it.
    Exit code 0: answered; 1: the logs contradict each other, with the cycle; 2: bad input.
    """
    from quire.cli.executions import show_each
    from quire.pipeline.causality.cycles import Contradiction
    from quire.pipeline.causality.events import parse_event
    from quire.pipeline.causality.executions import check_single
    from quire.pipeline.causality.tasks import CAUSALITY
    from quire.pipeline.causality.times import follow
    from quire.pipeline.layout import check_segments, lay_out
    from quire.trace.schema import BY_TIMES, LOCAL_ORDER
    from quire.trace.store import open_run

    # Before Spark is started, which takes seconds, find out whether there is anything to ask.
    named = [text for text in (past, future, concurrent, *(relation or ())) if text is not None]
    where = requested_address(master, remote)
    check_segments(segments)
    if each:
        others = {"--past": past, "--future": future, "--concurrent": concurrent, "--relation": relation, "--pairs": pairs}
        if refused := [name for name, value in {**others, "--out": out}.items() if value is not None]:
            raise BadInput(f"--each answers --critical-path and --first, not {', '.join(refused)}")
        show_each(where, directory, critical_path, first, column, json)
        return
    check_single(directory)
    stored = open_run(directory)
    layout = lay_out(stored)
    asked = [parse_event(text, layout.hosts) for text in named]
    if out is not None and out.exists():
        raise BadInput(f"{out} exists already; choose another name")
    # What is written is written by Spark.
    with workers(where, small=few_events(layout) and out is None, doing=f"following {directory}") as (run, spark):
        try:
            found = follow(run(CAUSALITY), directory, segments=segments)
        except Contradiction as contradiction:
            _show_contradiction(contradiction, json)
            raise typer.Exit(EXIT_CONTRADICTION) from None
        events = [_find(found, name) for name in asked]
        answer = _Answer(found, by_times=stored.info.settings.get(LOCAL_ORDER) == BY_TIMES)
        for name, wanted in (("past", past), ("future", future), ("concurrent", concurrent)):
            if wanted is not None:
                answer.around(name, events.pop(0))
        if relation is not None:
            answer.relation(*events)
        if critical_path is not None:
            answer.path(critical_path)
        if first is not None:
            answer.first(first, column)
        if pairs is not None:
            answer.pairs(pairs, column, limit)
        if out is not None:
            assert spark is not None
            _write(found.frame(spark), out)
            answer.data["out"] = str(out)
        if not answer.data:
            answer.whole()
    if json:
        sys.stdout.buffer.write(msgspec.json.encode(answer.summary() | answer.data) + b"\n")
        sys.stdout.buffer.flush()
        return
    console = Console(highlight=False, markup=False)
    for shown in answer.shown:
        console.print(shown, soft_wrap=isinstance(shown, str))
    console.print(answer.sentence(), soft_wrap=True)


def _write(frame: DataFrame, out: Path) -> None:
    """Write a frame to a new directory, whole or not at all."""
    with writing(out):
        scratch = scratch_for(out)
    with scratch:
        frame.write.parquet(str(scratch.path / "whole"))
        with writing(out):
            (scratch.path / "whole").rename(out)


class _Answer:
    """What was asked, for machines (`data`) and for people (`shown`)."""

    def __init__(self, found: Causality, *, by_times: bool) -> None:
        self._found, self._by_times = found, by_times
        hosts = found.layout.hosts or [str(process) for process in range(found.layout.world.members)]
        self._hosts: Sequence[str] = [*map(legible, hosts)]
        self.data: dict[str, Any] = {}
        self.shown: list[Table | str] = []

    def summary(self) -> dict[str, object]:
        found = self._found
        return {
            "events": found.layout.events,
            "processes": found.layout.world.members,
            "messages": found.messages,
            "logical_times": "rebuilt" if found.rebuilt else "recorded",
            **({"local_order": "times"} if self._by_times else {}),
            "segments": len(found.segments),
        }

    def sentence(self) -> str:
        found = self._found
        times = "rebuilt from the logs" if found.rebuilt else "as recorded"
        local = "; where the log orders nothing, events of one host are in the order of their times" if self._by_times else ""
        return (
            f"{found.layout.events:,} events, {found.messages:,} messages, {found.layout.world.members} processes; "
            f"logical times {times}{local}"
        )

    def whole(self) -> None:
        pairs = self._found.pairs()
        total = max(pairs.ordered + pairs.concurrent, 1)
        self.data["pairs"] = {"ordered": pairs.ordered, "concurrent": pairs.concurrent}
        self.shown.append(
            f"{pairs.ordered:,} pairs of events are ordered ({pairs.ordered / total:.1%}), {pairs.concurrent:,} are concurrent"
        )

    def around(self, name: str, event: Event) -> None:
        around = self._found.around(event)
        shares: Sequence[Share] = getattr(around, name)
        edges = [_edge(name, share) for share in shares]
        described = self._found.describe([event, *edges])
        self.data[name] = {
            "event": described[event],
            "clock": around.clock,
            "events": sum(share.events for share in shares),
            "shares": [
                {"process": share.process, "first": share.first, "last": share.end - 1, "edge": described[edge]}
                for share, edge in zip(shares, edges, strict=True)
            ],
        }
        table = _table(f"{name} of {self._name(event)}", "process", "events", "positions", "nearest")
        for share, edge in zip(shares[:_SHOWN], edges, strict=False):
            table.add_row(
                self._hosts[share.process], f"{share.events:,}", f"{share.first} to {share.end - 1}", _words(described[edge])
            )
        self.shown.append(table)

    def relation(self, one: Event, other: Event) -> None:
        relation = self._found.relation(one, other)
        self.data["relation"] = {"one": str(one), "other": str(other), "relation": relation}
        words = {"before": "happened before", "after": "happened after", "concurrent": "is concurrent with", "same": "is"}
        self.shown.append(f"{self._name(one)} {words[relation]} {self._name(other)}")

    def path(self, by: str) -> None:
        path = self._found.critical_path(by)
        self.data["critical_path"] = {"by": by, "length": path.length, "stretches": path.stretches}
        table = _table(
            f"critical path by {by}: {path.length:,} events", "process", "positions", "reached by", "after ms", "for ms"
        )
        for before, stretch in zip([None, *path.stretches], path.stretches[:_SHOWN], strict=False):
            table.add_row(
                self._hosts[stretch.process],
                f"{stretch.first_pos} to {stretch.last_pos}",
                self._reached_by(stretch, before),
                _ms(stretch.waited_ns),
                _ms(stretch.lasted_ns),
            )
        if len(path.stretches) > _SHOWN:
            table.add_row(f"and {len(path.stretches) - _SHOWN:,} more")
        self.shown.append(table)

    def _reached_by(self, stretch: Stretch, before: Stretch | None) -> str:
        """The message by which a process was reached; in an imported trace, the event that had sent it."""
        if before is None or stretch.message is None:
            return ""
        if not self._found.layout.hosts:
            return str(MessageId(*stretch.message))
        return f"{self._hosts[before.process]}@{before.last_pos}"

    def first(self, pattern: str, column: str) -> None:
        events = self._found.first(pattern, column)
        described = self._found.describe(events)
        self.data["first"] = [described[event] for event in events]
        table = _table(f"causally first of {pattern!r}", "event", "what")
        for event in events[:_SHOWN]:
            table.add_row(self._name(event), _words(described[event]))
        self.shown.append(table if events else f"nothing matches {pattern!r}")

    def pairs(self, pattern: str, column: str, limit: int) -> None:
        pairs = self._found.concurrent_pairs(pattern, column, limit=limit)
        described = self._found.describe([event for pair in pairs for event in pair])
        self.data["concurrent_pairs"] = [[described[one], described[other]] for one, other in pairs]
        table = _table(f"concurrent pairs of {pattern!r}", "event", "what", "event", "what")
        for one, other in pairs[:_SHOWN]:
            table.add_row(self._name(one), _words(described[one]), self._name(other), _words(described[other]))
        self.shown.append(table if pairs else f"no two matches of {pattern!r} are concurrent")

    def _name(self, event: Event) -> str:
        return f"{self._hosts[event.process]}@{event.pos}"


def _find(found: Causality, name: Event | MessageId | Place | Named) -> Event:
    from quire.pipeline.causality.events import Event

    if isinstance(name, MessageId):
        return found.sending(name)
    return name if isinstance(name, Event) else found.at(name)


def _edge(name: str, share: Share) -> Event:
    """The event of a share that is nearest to the one asked about."""
    from quire.pipeline.causality.events import Event

    return Event(share.process, share.end - 1 if name == "past" else share.first)


def _show_contradiction(contradiction: Any, json: bool) -> None:
    if json:
        sys.stdout.buffer.write(msgspec.json.encode({"because": str(contradiction), "cycle": contradiction.cycle}) + b"\n")
        sys.stdout.buffer.flush()
    else:
        Console(highlight=False, markup=False).print(legible(str(contradiction)), soft_wrap=True)


def _table(title: str, *columns: str) -> Table:
    table = Table(title=title, title_justify="left", box=None, pad_edge=False, header_style="bold")
    for column in columns:
        table.add_column(column, overflow="fold")
    return table


def _words(event: Described) -> str:
    """What an event is: of one that was imported, what the log said, and where."""
    if event.file is None:
        said = [f"@{event.pos}", event.kind, event.message, event.text]
    else:
        text = event.text or " ".join(filter(None, (event.kind, event.message)))
        said = [f"@{event.pos}", text, f"({PurePath(event.file).name}:{event.line})"]
    return legible(" ".join(word for word in said if word))


def _ms(nanoseconds: int | None) -> str:
    return "" if nanoseconds is None else f"{nanoseconds / 1e6:.3f}"
