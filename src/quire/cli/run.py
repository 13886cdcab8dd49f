"""`quire run`: a live group in processes of its own, its trace, and the proof that its order held."""

from __future__ import annotations

import asyncio
import shlex
import shutil
import signal
import sys
import time
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import mkdtemp
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn
from rich.table import Table

from quire.cli.auditing import COLOURS, EXIT_CODES, audit_run, status
from quire.cli.hosts import say_what_is_missing, say_what_to_type
from quire.cli.report import report_beside
from quire.cli.spark import Master, Remote, place
from quire.cli.summary import add_costs, add_counts, add_details
from quire.live.runs.fleet import Fleet, FleetFailed, Watch, free_addresses, is_local
from quire.live.runs.parts import LiveSummary, assemble
from quire.live.runs.plan import Plan, read_plan
from quire.live.runs.progress import Progress as MemberProgress
from quire.live.services.registry import SERVICES
from quire.model.errors import BadInput
from quire.protocols.registry import convert_options
from quire.simulation.config import parse_members, parse_options
from quire.trace.store import check_new

if TYPE_CHECKING:
    from quire.pipeline import Audit

_EXIT_INTERRUPTED = 130

MEMBERS_MAX = 64
TIMEOUT_S = 10.0
MESSAGES = 10_000
PROTOCOL = "single-phase"


def run(
    protocol: Annotated[str | None, typer.Option(help="Name of the protocol; single-phase if not given.")] = None,
    option: Annotated[list[str] | None, typer.Option(help="NAME=VALUE, an option of the protocol; repeatable.")] = None,
    members: Annotated[int | None, typer.Option(help="How many members the group has; 3 if not given.")] = None,
    messages: Annotated[int | None, typer.Option(help="How many messages each sender sends; 10000 if not given.")] = None,
    size: Annotated[int | None, typer.Option(help="Bytes of each message; 64 if not given.")] = None,
    senders: Annotated[str | None, typer.Option(help="Who sends, like 0,2; everybody if not given.")] = None,
    rate: Annotated[
        float | None, typer.Option(help="Messages a second of each sender; as fast as can be if not given.")
    ] = None,
    timeout: Annotated[float | None, typer.Option(help="Seconds of silence after which a member counts as lost.")] = None,
    hosts: Annotated[
        Path | None, typer.Option(help="TOML file with the members' addresses; starts those of this machine.")
    ] = None,
    insecure: Annotated[bool, typer.Option("--insecure", help="Go without a secret or certificates between hosts.")] = False,
    collect: Annotated[
        Path | None, typer.Option(help="Run nothing: make a run of the parts that members left in this directory.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Directory for the run; runs/NAME if not given.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace the run that is there.")] = False,
    no_audit: Annotated[bool, typer.Option("--no-audit", help="Do not check the orders, and write no report.")] = False,
    no_report: Annotated[bool, typer.Option("--no-report", help="Write no report.")] = False,
    master: Master = None,
    remote: Remote = None,
    json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Run a live group on real sockets, write its trace, check on Spark that its order held, and report.

    Exit code 0: the promised orders hold; 1: they are violated; 2: bad input; 3: it could not be decided, or a member
    was lost; 130: interrupted, after everything sent was delivered.
    """
    began, where = time.perf_counter(), place(master, remote)
    if collect is not None:
        if out is None:
            raise BadInput("--collect needs --out: where the run is to go")
        check_new(out, force=force)
        summary = _assemble(collect, out, force=force)
    else:
        plan = override(
            _plan(hosts, members), protocol=protocol, option=option, senders=senders, insecure=insecure,
            messages=messages, size=size, rate=rate, timeout_s=timeout,
        )  # fmt: skip
        plan = _complete(plan, grow=hosts is None)
        out = out or Path("runs") / plan.run_name(plan.settings(0))
        check_new(out, force=force)
        _check_runnable(plan)
        local = [member for member, address in enumerate(plan.members) if hosts is None or is_local(address)]
        summary = _run(plan, local, hosts, out, force=force, json=json)
    summary = msgspec.structs.replace(summary, wall_s=round(time.perf_counter() - began, 6))
    try:
        audit = None if no_audit else audit_run(out, where)
    except KeyboardInterrupt:
        print(f"quire: the run is in {out}, but was not audited", file=sys.stderr)
        raise
    report = None if audit is None or no_report else report_beside(out, audit)
    if json:
        print(msgspec.json.encode({**msgspec.to_builtins(summary), "audit": audit, "report": report}).decode())
    else:
        _show(summary, audit, report)
    if audit is not None:
        raise typer.Exit(EXIT_CODES[audit.verdict])


def override(
    plan: Plan, *, protocol: str | None, option: Sequence[str] | None, senders: str | None, insecure: bool, **given: object
) -> Plan:
    """The plan with what the command line says instead, and single-phase where nobody says what to run."""
    if protocol is not None:
        kept = plan.options if protocol == plan.protocol else {}
        plan = msgspec.structs.replace(plan, protocol=protocol, order=None, options=kept)
    elif plan.protocol is None and plan.order is None:
        plan = msgspec.structs.replace(plan, protocol=PROTOCOL)
    given["options"] = parse_options(option) if option else None
    given["senders"] = None if senders is None else parse_members(senders)
    given["insecure"] = insecure or None
    return msgspec.structs.replace(plan, **{name: value for name, value in given.items() if value is not None})


def _plan(hosts: Path | None, members: int | None) -> Plan:
    if hosts is None:
        count = 3 if members is None else members
        if not 1 <= count <= MEMBERS_MAX:
            raise BadInput(f"members must be from 1 to {MEMBERS_MAX}, each a process on this machine, not {count}")
        return Plan(members=free_addresses(count), timeout_s=TIMEOUT_S)
    plan = read_plan(hosts)
    if members not in (None, len(plan.members)):
        raise BadInput(f"{hosts} has {len(plan.members)} members, not {members}; leave --members out")
    return plan


def _complete(plan: Plan, *, grow: bool) -> Plan:
    """The plan with a load, and where it may `grow`, with all the processes that a service needs for its members."""
    service = SERVICES.get(plan.protocol or "")
    if plan.messages is None:
        plan = msgspec.structs.replace(plan, messages=MESSAGES if service is None else service.messages)
    if service is None or not grow:
        return plan
    needed = service.processes(len(plan.members), convert_options(service.name, service.options, plan.options))
    if needed > MEMBERS_MAX:
        raise BadInput(f"that takes {needed} processes on this machine, and {MEMBERS_MAX} may be; ask for fewer")
    return msgspec.structs.replace(plan, members=free_addresses(needed))


def _check_runnable(plan: Plan) -> None:
    """Find out before any process starts whether all of them could."""
    for member in range(len(plan.members)):
        plan.settings(member)


def _run(plan: Plan, local: Sequence[int], hosts: Path | None, out: Path, *, force: bool, json: bool) -> LiveSummary:
    """Run the members that are of this machine; the summary of the run, or an end with what is still missing of it."""
    remote = [member for member in range(len(plan.members)) if member not in local]
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        parts = Path(mkdtemp(prefix=f".{out.name}.", dir=out.parent))
    except OSError as error:
        raise BadInput(f"cannot write {out}: {error.strerror}") from error
    try:
        if remote:
            assert hosts is not None
            kept = _parts_of(out, force=force)
            say_what_to_type(plan, remote, hosts)
        _run_fleet(plan, local, parts)
        if not remote:
            return _assemble(parts, out, force=force)
        shutil.rmtree(kept, ignore_errors=True)
        parts.rename(kept)
    finally:
        shutil.rmtree(parts, ignore_errors=True)
    say_what_is_missing(plan, remote, kept, out, json=json)
    raise typer.Exit(EXIT_CODES["undecided"])


def _parts_of(out: Path, *, force: bool) -> Path:
    """Where the parts of this machine wait for those of the others."""
    kept = out.with_name(f"{out.name}.parts")
    if kept.exists() and not force:
        raise BadInput(f"{kept} exists already; remove it, choose another --out, or --force to replace it")
    return kept


def _assemble(parts: Path, out: Path, *, force: bool) -> LiveSummary:
    with status("collecting the trace"):
        return assemble(parts, out, force=force)


def _run_fleet(plan: Plan, local: Sequence[int], parts: Path) -> None:
    fleet = Fleet(plan, local, parts)
    try:
        with _Interruption() as interruption, _progress(plan, local) as fleet.watch:
            asyncio.run(interruption.may_end(fleet.run))
    except FleetFailed as error:
        print(f"quire: {error}; no run was written", file=sys.stderr)
        raise typer.Exit(EXIT_CODES["undecided"]) from None
    except asyncio.CancelledError:
        print(f"quire: {_how_far(fleet)}; no run was written", file=sys.stderr)
        raise typer.Exit(_EXIT_INTERRUPTED) from None


class _Interruption:
    """Ctrl-C has the members drain; a second one does not wait for that. From the first moment to the last, because there
    is none at which a person may not change their mind."""

    def __init__(self) -> None:
        self._came = False
        self._cancel: Callable[[], object] | None = None

    def __enter__(self) -> _Interruption:
        self._before = {number: signal.signal(number, self._come) for number in (signal.SIGINT, signal.SIGTERM)}
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    async def may_end(self, work: Callable[[], Coroutine[object, object, None]]) -> None:
        task, loop = asyncio.current_task(), asyncio.get_running_loop()
        assert task is not None
        self._cancel = lambda: loop.call_soon_threadsafe(task.cancel)
        if self._came:
            raise asyncio.CancelledError
        await work()

    def _come(self, *_: object) -> None:
        self._came = True
        if self._cancel is not None:
            with suppress(RuntimeError):  # The loop may be closed by now.
                self._cancel()


def _how_far(fleet: Fleet) -> str:
    if fleet.unheard():
        members = ", ".join(map(str, fleet.unheard()))
        return f"member {members} did not end in time, so some messages may not be delivered everywhere"
    failed = [ended.error for ended in fleet.ended.values() if ended.error]
    if failed:
        return failed[0]
    sent = sum(ended.sent for ended in fleet.ended.values())
    return f"the {sent:,} messages that were sent are delivered everywhere" if sent else "nothing was sent"


@contextmanager
def _progress(plan: Plan, local: Sequence[int]) -> Iterator[Watch | None]:
    """A bar a member on stderr for a person who watches; nothing for a file or another program."""
    if not sys.stderr.isatty():
        yield None
        return
    columns = (
        TextColumn("member {task.description}"), BarColumn(), TaskProgressColumn(),
        TextColumn("{task.completed:,.0f} delivered"), TextColumn("[dim]{task.fields[state]}"),
    )  # fmt: skip
    with Progress(*columns, console=Console(stderr=True), transient=True) as bars:
        total = None if plan.protocol in SERVICES else plan.messages_in_all()
        tasks = {member: bars.add_task(str(member), total=total, state="joining") for member in local}

        def watch(member: int, progress: MemberProgress) -> None:
            state = "joining" if not progress.delivered else "done" if progress.delivered == total else ""
            bars.update(tasks[member], completed=progress.delivered, state=state)

        yield watch


def _show(summary: LiveSummary, audit: Audit | None, report: str | None) -> None:
    title = f"{summary.protocol}, {summary.members} member{'s' * (summary.members > 1)}, live"
    table = Table(title=title, show_header=False, title_justify="left")
    table.add_column(style="bold")
    table.add_column(overflow="fold")
    add_counts(table, summary, {})
    table.add_row("deliveries/s", f"{summary.deliveries_per_s:,.0f} at the slowest member")
    add_costs(table, summary)
    add_details(table, summary.details)
    table.add_row("digest", summary.digest)
    table.add_row("run", escape(str(summary.trace)))
    if audit is not None:
        table.add_section()
        for guarantee, check in audit.checks.items():
            verdict = f"[{COLOURS[check.verdict]}]{check.verdict}[/]"
            if guarantee not in audit.expected:
                verdict = f"[dim]{check.verdict}, not promised[/]"
            elif check.violations:
                verdict += f" {check.violations:,} times: {escape(check.because)}"
            table.add_row(str(guarantee), verdict)
        table.add_row("audited", f"{audit.events:,} events on Spark in {audit.wall_s:.1f} s")
    if report is not None:
        table.add_row("report", escape(report))
    console = Console()
    console.print(table)
    command = escape(shlex.join(["quire", "audit", str(summary.trace)]))
    what = "every verdict with its reason" if audit is not None else "check the orders on Spark"
    console.print(f"next: [bold]{command}[/bold]  ({what})", highlight=False, soft_wrap=True)
