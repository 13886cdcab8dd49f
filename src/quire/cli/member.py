"""`quire member`: one member of a group on this host, for groups over several hosts."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from quire.cli.observing import Observe, ObserveTokenFile

if TYPE_CHECKING:
    from quire.live.runs.progress import Ended

_EXIT_NOT_DELIVERED = 3
_EXIT_INTERRUPTED = 130


def member(
    file: Annotated[
        Path, typer.Argument(metavar="FILE.toml", help="Description of the group; the same file for every member.")
    ],
    me: Annotated[int, typer.Option(help="Which member this is, by its position in the list of members.")],
    protocol: Annotated[str | None, typer.Option(help="Overrides the file, as do the other options.")] = None,
    option: Annotated[list[str] | None, typer.Option(help="NAME=VALUE, an option of the protocol; repeatable.")] = None,
    messages: Annotated[int | None, typer.Option(help="How many messages each sender sends.")] = None,
    size: Annotated[int | None, typer.Option(help="Bytes of each message.")] = None,
    senders: Annotated[str | None, typer.Option(help="Who sends, like 0,2.")] = None,
    rate: Annotated[float | None, typer.Option(help="Messages a second of each sender.")] = None,
    timeout: Annotated[float | None, typer.Option(help="Seconds of silence after which a member counts as lost.")] = None,
    join: Annotated[float | None, typer.Option(help="Seconds to wait for the other members to join.")] = None,
    listen: Annotated[str | None, typer.Option(help="HOST:PORT to listen at, if not the member's address.")] = None,
    insecure: Annotated[bool, typer.Option("--insecure", help="Use neither a secret nor certificates between hosts.")] = False,
    out: Annotated[Path | None, typer.Option(help="Directory for this member's part of the trace.")] = None,
    observe: Observe = None,
    observe_token_file: ObserveTokenFile = None,
    json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Run one member of a group over several hosts, as described by a TOML file.

    If neither the file nor --messages says how much to send, the lines of standard input are multicast, and every line
    delivered is printed with its origin and number; it ends when the input of all members has ended. Ctrl-C delivers what
    was sent, and leaves the group, which goes on; where the protocol's groups are fixed, it ends.
    """
    from quire.cli.planning import override
    from quire.cli.taking_part import take_part_here
    from quire.live.runs.member import run
    from quire.live.runs.plan import read_plan

    plan = override(
        read_plan(file), protocol=protocol, option=option, senders=senders, insecure=insecure,
        messages=messages, size=size, rate=rate, timeout_s=timeout, join_s=join, listen=listen,
    )  # fmt: skip
    if observe is not None:
        addresses = tuple(observe if member == me else "" for member in range(len(plan.members)))
        plan = msgspec.structs.replace(plan, observe=addresses)
    if observe_token_file is not None:
        plan = msgspec.structs.replace(plan, observe_token_file=str(observe_token_file))
    parts = out or (None if plan.out is None else Path(plan.out))
    plan.check(me)
    ended, interrupted = run(take_part_here(plan, me, parts, json=json))
    _report(ended, me, parts, lines=plan.messages is None, json=json)
    if interrupted:
        raise typer.Exit(_EXIT_INTERRUPTED)


def _report(ended: Ended, me: int, parts: Path | None, *, lines: bool, json: bool) -> None:
    if json and not lines:
        print(msgspec.json.encode({"member": me, **msgspec.to_builtins(ended)}).decode())
    if ended.error:
        print(f"quire: {ended.error}", file=sys.stderr)
        raise typer.Exit(_EXIT_NOT_DELIVERED)
    if not json:
        early = "; the group was closed before everything was sent" if ended.stopped else ""
        kept = "" if parts is None else f"; its part of the trace is in {parts}"
        said = f"member {me}: {ended.sent:,} sent, {ended.delivered:,} delivered{early}{kept}"
        print(said, file=sys.stderr if lines else sys.stdout)
