"""The options of `quire simulate`, in groups: what is sent, over what network, and what goes wrong."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, TypeVar

import msgspec
import typer

from quire.simulation.config import (
    FaultConfig,
    NetworkConfig,
    WorkloadConfig,
    parse_crash,
    parse_members,
    parse_partition,
    parse_pause,
)

Fault = TypeVar("Fault")


class WorkloadOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What is sent, when, and to whom."""

    messages: Annotated[int, typer.Option(help="How many messages each sender sends.")] = 100
    senders: Annotated[str | None, typer.Option(help="Who sends, like 0,3; all members if not given.")] = None
    interval: Annotated[float, typer.Option(help="Mean ms between two submissions of a sender.")] = 50.0
    spacing: Annotated[str, typer.Option(help="even or poisson.")] = "even"
    burst: Annotated[int, typer.Option(help="Submissions in a burst.")] = 1
    batch: Annotated[int, typer.Option(help="Messages in one submission.")] = 1
    size: Annotated[int, typer.Option(help="Bytes of each message.")] = 64
    mode: Annotated[str, typer.Option(help="pipelined, or blocking: wait for each submission's local delivery.")] = "pipelined"
    broadcast: Annotated[
        float | None,
        typer.Option(help="Fraction of submissions to all members; by default 1, or 0 if the protocol can address some."),
    ] = None
    multicast: Annotated[
        float | None, typer.Option(help="Fraction of submissions to a random subset; 0.2 if it can. The rest go to one member.")
    ] = None

    def config(self) -> WorkloadConfig:
        return WorkloadConfig(
            senders=None if self.senders is None else parse_members(self.senders),
            messages=self.messages,
            interval_ms=self.interval,
            spacing=self.spacing,
            burst=self.burst,
            batch=self.batch,
            size=self.size,
            mode=self.mode,
            broadcast=self.broadcast,
            multicast=self.multicast,
        )


class NetworkOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What happens to packets on their way."""

    delay: Annotated[str, typer.Option(help="constant:MS, uniform:MS:MS, exponential:MS, or matrix:FILE (JSON rows).")] = (
        "constant:10"
    )
    reorder: Annotated[bool, typer.Option("--reorder", help="Let packets overtake each other.")] = False
    loss: Annotated[float, typer.Option(help="Probability that a packet is lost.")] = 0.0
    duplicate: Annotated[float, typer.Option(help="Probability that a packet is duplicated.")] = 0.0
    links: Annotated[
        str, typer.Option(help="auto: connections where the protocol needs them; raw: never, to see what breaks.")
    ] = "auto"

    def config(self) -> NetworkConfig:
        return NetworkConfig(**msgspec.structs.asdict(self))


class FaultOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What goes wrong with members."""

    crash: Annotated[list[str] | None, typer.Option(help="MEMBER@MS; repeatable.")] = None
    detect: Annotated[
        float | None, typer.Option(help="Ms that a member may be silent before it is excluded; 1000 if not given.")
    ] = None
    pause: Annotated[list[str] | None, typer.Option(help="MEMBER@MS+MS: when, and for how long; repeatable.")] = None
    partition: Annotated[list[str] | None, typer.Option(help="0,1/2,3@MS+MS: sides, when, how long; repeatable.")] = None
    faults: Annotated[
        str | None,
        typer.Option(help="Faults to inject, like 'kill 2@1s, stop 3@2s for 4s, restart 2@10s'; see docs/live.md."),
    ] = None

    def config(self) -> FaultConfig:
        return FaultConfig(
            crashes=_each(parse_crash, self.crash),
            detect_ms=self.detect,
            pauses=_each(parse_pause, self.pause),
            partitions=_each(parse_partition, self.partition),
            words=self.faults or "",
        )


def _each(parse: Callable[[str], Fault], texts: list[str] | None) -> tuple[Fault, ...]:
    return tuple(map(parse, texts or ()))
