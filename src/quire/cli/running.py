"""Runs the members of a live group on this machine, and collects the run that they record."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from pathlib import Path
from typing import NoReturn, TypeVar

import msgspec
import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn

from quire.cli.auditing import EXIT_CODES
from quire.cli.hosts import say_what_is_missing, say_what_to_type
from quire.cli.status import status
from quire.files.errors import writing
from quire.files.replacing import Staging, scratch_for
from quire.live.runs.collecting import LiveSummary, collect
from quire.live.runs.disks import disks as make_disks
from quire.live.runs.faulty_fleet import FaultyFleet
from quire.live.runs.faulty_service import FaultyService
from quire.live.runs.fleet import Fleet, FleetFailed, Watch, is_local
from quire.live.runs.hosts import Hosts
from quire.live.runs.hosts import hosts as make_hosts
from quire.live.runs.plan import Plan
from quire.live.runs.progress import Progress as MemberProgress
from quire.live.runs.progress import Standing
from quire.live.services.registry import SERVICES
from quire.model.errors import BadInput
from quire.model.faults import Disconnection, Fault, Full
from quire.trace.parts.reader import parts_in

Made = TypeVar("Made")

_EXIT_INTERRUPTED = 130
_PORT = 7000
"""The port of members that each have their own host."""
_INTERRUPTIONS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def run_members(plan: Plan, hosts: Path | None, out: Path, *, force: bool, json: bool) -> LiveSummary:
    """Run the members of this machine; returns the summary of the run, or exits and tells which parts are still missing."""
    for member in range(len(plan.members)):
        plan.check(member)  # Before any process starts, find out whether all of them could.
    local = [member for member, address in enumerate(plan.members) if hosts is None or is_local(address)]
    remote = [member for member in range(len(plan.members)) if member not in local]
    if remote:
        assert hosts is not None
        _run_some(plan, local, remote, hosts, out, force=force, json=json)
    with writing(out):
        scratch = scratch_for(out)
    with scratch:
        fleet = _run_fleet(plan, local, scratch.path)
        with status("collecting the trace"):
            summary = collect(scratch.path, out, observed=fleet.observed, force=force)
        for member, how in fleet.lost.items():
            print(f"quire: member {member} was lost: {how}; the others went on without it", file=sys.stderr)
        return summary


def run_with_faults(plan: Plan, faults: Sequence[Fault], out: Path, *, force: bool) -> LiveSummary:
    """Run a group that changes, have the faults happen to its members, and collect what they recorded."""
    count = len(plan.members)
    with ExitStack() as stack:
        cut, full = ([fault for fault in faults if isinstance(fault, kind)] for kind in (Disconnection, Full))
        made = _made_for(cut, lambda: stack.enter_context(make_hosts(count)))
        disks = _made_for(full, lambda: stack.enter_context(make_disks(count)))
        if made is not None:
            plan = _on_hosts(plan, made)
        for member in range(count):
            plan.check(member)  # Before any process starts, find out whether all of them could.
        with writing(out):
            scratch = stack.enter_context(scratch_for(out))
        fleet = FaultyFleet(plan, faults, scratch.path, made, disks)
        _run_to_its_end(fleet.run, _telling(fleet), lambda: _how_far_it_came(fleet))
        with status("collecting the trace"):
            return collect(scratch.path, out, observed=fleet.observed, happened=fleet.happened, force=force)


def run_surviving(plan: Plan, losable: range, faults: Sequence[Fault], out: Path, *, force: bool) -> LiveSummary:
    """Run a service that goes on without some of its processes, have the faults happen to these, and collect what the others
    recorded."""
    with ExitStack() as stack:
        cut = [fault for fault in faults if isinstance(fault, Disconnection)]
        made = _made_for(cut, lambda: stack.enter_context(make_hosts(len(plan.members))))
        if made is not None:
            plan = msgspec.structs.replace(_on_hosts(plan, made), register=())
        for process in range(len(plan.members)):
            plan.check(process)
        with writing(out):
            scratch = stack.enter_context(scratch_for(out))
        fleet = FaultyService(plan, losable, faults, scratch.path, made)
        _run_to_its_end(fleet.run, _telling(fleet), lambda: _how_far_it_came(fleet))
        with status("collecting the trace"):
            return collect(scratch.path, out, happened=fleet.happened, force=force)


def _on_hosts(plan: Plan, made: Hosts) -> Plan:
    """The plan of processes each of which has a host of its own; nothing else is on that network."""
    return msgspec.structs.replace(plan, members=tuple(f"{address}:{_PORT}" for address in made.ipv4), insecure=True)


def _made_for(faults: Sequence[Fault], make: Callable[[], Made]) -> Made | None:
    """What these faults require, made only if there are any."""
    try:
        return make() if faults else None
    except BadInput as error:
        raise BadInput(f"'{faults[0]}' is not possible here: {error}; kill, stop and restart are possible") from error


def _run_some(
    plan: Plan, local: Sequence[int], remote: Sequence[int], hosts: Path, out: Path, *, force: bool, json: bool
) -> NoReturn:
    """Run the members of this machine, and keep their parts until those of the others are there."""
    kept = out.with_name(f"{out.name}.parts")
    with Staging(kept, parts_in, "a directory of parts", force=force) as staging:
        say_what_to_type(plan, remote, hosts)
        _run_fleet(plan, local, staging.path)
        staging.publish()
    say_what_is_missing(plan, remote, kept, out, json=json)
    raise typer.Exit(EXIT_CODES["undecided"])


def _run_fleet(plan: Plan, local: Sequence[int], parts: Path) -> Fleet:
    fleet = Fleet(plan, local, parts)
    _run_to_its_end(fleet.run, _watching(fleet, plan, local), lambda: _how_far(fleet))
    return fleet


def _run_to_its_end(
    run: Callable[[], Coroutine[object, object, None]], shown: AbstractContextManager[object], how_far: Callable[[], str]
) -> None:
    """Run the members of a fleet, with something shown meanwhile; if that fails or is interrupted, say so and exit."""
    try:
        with _Interruption() as interruption, shown:
            asyncio.run(interruption.may_end(run))
    except FleetFailed as error:
        print(f"quire: {error}; no run was written", file=sys.stderr)
        raise typer.Exit(EXIT_CODES["undecided"]) from None
    except asyncio.CancelledError:
        print(f"quire: {how_far()}; no run was written", file=sys.stderr)
        raise typer.Exit(_EXIT_INTERRUPTED) from None


def _how_far_it_came(fleet: FaultyFleet | FaultyService) -> str:
    """When it was interrupted."""
    if fleet.is_after_the_faults:
        return "the run ended before all messages were delivered"
    return "the run ended before all faults were injected"


@contextmanager
def _telling(fleet: FaultyFleet | FaultyService) -> Iterator[None]:
    """What happened last, for a person who watches."""
    with status("waiting for all members to join") as say:
        fleet.on_happened = lambda happened: say(f"{happened.at_s:.1f} s: {happened.what} {happened.about}")
        yield


class _Interruption:
    """On Ctrl-C, the members drain; a second Ctrl-C does not wait for that. Active from the first moment to the last, because a
    user may interrupt at any time."""

    def __init__(self) -> None:
        self._came = False
        self._cancel: Callable[[], object] | None = None

    def __enter__(self) -> _Interruption:
        heeded = [number for number in _INTERRUPTIONS if signal.getsignal(number) != signal.SIG_IGN]
        self._before = {number: signal.signal(number, self._come) for number in heeded}
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
def _watching(fleet: Fleet, plan: Plan, local: Sequence[int]) -> Iterator[None]:
    with _progress(plan, local) as fleet.watch:
        yield


@contextmanager
def _progress(plan: Plan, local: Sequence[int]) -> Iterator[Watch | None]:
    """One progress bar per member on stderr if it is a terminal; nothing for a file or another program."""
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

        def watch(member: int, progress: MemberProgress | Standing) -> None:
            state = "joining" if not progress.delivered else "done" if progress.delivered == total else ""
            bars.update(tasks[member], completed=progress.delivered, state=state)

        yield watch
