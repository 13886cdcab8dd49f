"""`quire member`: one member of a group on this host, for groups over several hosts."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from concurrent.futures import CancelledError
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import msgspec
import typer
from rich.console import Console

from quire.cli.run import override
from quire.live import Group
from quire.live.runs.member import Member, run, stop_on_signals, take_part
from quire.live.runs.parts import description_file
from quire.live.runs.plan import Plan, read_plan
from quire.live.runs.progress import Ended, Progress
from quire.live.services.registry import SERVICES
from quire.model.errors import BadInput, QuireError
from quire.model.messages import MessageId
from quire.protocols.contract import Deliver

_EXIT_NOT_DELIVERED = 3
_EXIT_INTERRUPTED = 130
_READ_BYTES = 1 << 16

END = b""
"""What a member sends when its input has ended; a line always has its newline."""


def member(
    file: Annotated[Path, typer.Argument(metavar="FILE.toml", help="What the group is; the same file at all members.")],
    me: Annotated[int, typer.Option(help="Which member this is, by its place in the list of members.")],
    protocol: Annotated[str | None, typer.Option(help="Instead of what the file says, as are the other options.")] = None,
    option: Annotated[list[str] | None, typer.Option(help="NAME=VALUE, an option of the protocol; repeatable.")] = None,
    messages: Annotated[int | None, typer.Option(help="How many messages each sender sends.")] = None,
    size: Annotated[int | None, typer.Option(help="Bytes of each message.")] = None,
    senders: Annotated[str | None, typer.Option(help="Who sends, like 0,2.")] = None,
    rate: Annotated[float | None, typer.Option(help="Messages a second of each sender.")] = None,
    timeout: Annotated[float | None, typer.Option(help="Seconds of silence after which a member counts as lost.")] = None,
    listen: Annotated[str | None, typer.Option(help="HOST:PORT to listen at, if not the member's address.")] = None,
    insecure: Annotated[bool, typer.Option("--insecure", help="Go without a secret or certificates between hosts.")] = False,
    out: Annotated[Path | None, typer.Option(help="Directory for this member's part of the trace.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace the part that is there.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print how it went as JSON.")] = False,
) -> None:
    """Be one member of a group over several hosts, as a TOML file describes it.

    Where neither the file nor --messages says how much to send, the lines of standard input are multicast, and every line
    delivered is printed with its origin and number; it ends when the input of all members has ended. Ctrl-C delivers what
    was sent, and ends the group.
    """
    plan = override(
        read_plan(file), protocol=protocol, option=option, senders=senders, insecure=insecure,
        messages=messages, size=size, rate=rate, timeout_s=timeout, listen=listen,
    )  # fmt: skip
    parts = out or (None if plan.out is None else Path(plan.out))
    plan.settings(me)
    if parts is not None and not force and description_file(parts, me).exists():
        raise BadInput(f"{parts} holds a part of member {me} already; choose another --out, or --force to replace it")
    ended = run(_take_part(plan, me, parts, json=json))
    _report(ended, me, parts, lines=plan.messages is None, json=json)


async def _take_part(plan: Plan, me: int, parts: Path | None, *, json: bool) -> Ended:
    console = Console(stderr=True, highlight=False)
    status = console.status(f"member {me} waits for the others") if console.is_terminal and not json else None

    def tell(progress: Progress) -> None:
        if status is not None and plan.messages is not None:
            status.update(f"member {me}: {progress.sent:,} sent, {progress.delivered:,} delivered")
        elif status is not None:
            status.stop()

    if status is not None:
        status.start()
    try:
        if plan.messages is not None:
            return await take_part(plan, me, parts, tell, stop_on_signals)
        if plan.protocol in SERVICES:
            raise BadInput(f"{plan.protocol} does a planned load only; say how much with --messages")
        member = Member(plan, me, parts, tell)
        stop_on_signals(member.stop)
        lines = _Lines(member)
        return await member.take_part(lines.send, lines.print)
    finally:
        if status is not None:
            status.stop()


class _Lines:
    """Standard input as a source of messages, and standard output as what takes them."""

    def __init__(self, member: Member) -> None:
        self._member = member
        self._open = len(member.plan.members)
        """How many members' input has not ended."""
        self._over = asyncio.Event()

    async def send(self, group: Group) -> None:
        """A thread reads, because a file or a terminal cannot be waited for otherwise, and it waits while the group does."""
        loop = asyncio.get_running_loop()
        threading.Thread(target=self._read, args=(group, loop), name="quire-input", daemon=True).start()
        await self._over.wait()

    async def print(self, delivery: Deliver) -> bool:
        run = delivery.run
        text = bytearray()
        for seq, payload in enumerate(run.payloads(), run.first):
            if payload == END:
                self._open -= 1
            else:
                text += f"{MessageId(run.origin, seq)} ".encode() + payload
        if text:
            await asyncio.to_thread(_write, text)
        return not self._open

    def _read(self, group: Group, loop: asyncio.AbstractEventLoop) -> None:
        # The group may have ended meanwhile, which whoever takes the deliveries is told.
        with suppress(QuireError, CancelledError, RuntimeError):
            rest = b""
            while self._member.plan.sends(group.me) and (data := os.read(0, _READ_BYTES)):
                *lines, rest = (rest + data).split(b"\n")
                self._multicast(group, loop, lines)
            self._multicast(group, loop, [rest] if rest else [])
            asyncio.run_coroutine_threadsafe(group.multicast(END), loop).result()

    def _multicast(self, group: Group, loop: asyncio.AbstractEventLoop, lines: list[bytes]) -> None:
        if lines:
            asyncio.run_coroutine_threadsafe(group.multicast_many([line + b"\n" for line in lines]), loop).result()
            self._member.sent += len(lines)


def _write(text: bytes | bytearray) -> None:
    sys.stdout.buffer.write(text)
    sys.stdout.buffer.flush()


def _report(ended: Ended, me: int, parts: Path | None, *, lines: bool, json: bool) -> None:
    if json and not lines:
        print(msgspec.json.encode({"member": me, **msgspec.to_builtins(ended)}).decode())
    if ended.error:
        print(f"quire: {ended.error}", file=sys.stderr)
        raise typer.Exit(_EXIT_NOT_DELIVERED)
    if not json:
        kept = "" if parts is None else f"; its part of the trace is in {parts}"
        print(
            f"member {me}: {ended.sent:,} sent, {ended.delivered:,} delivered{kept}", file=sys.stderr if lines else sys.stdout
        )
    if ended.stopped:
        raise typer.Exit(_EXIT_INTERRUPTED)
