"""`quire run`: a live group in processes of its own, its trace, and the proof that its order held."""

from __future__ import annotations

import time
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from quire.cli.backups import Backups
from quire.cli.extras import check_spark
from quire.cli.spark import Master, Remote, requested_address

if TYPE_CHECKING:
    from quire.model.faults import Fault


def run(
    protocol: Annotated[str | None, typer.Option(help="Name of the protocol; single-phase if not given.")] = None,
    option: Annotated[list[str] | None, typer.Option(help="NAME=VALUE, an option of the protocol; repeatable.")] = None,
    members: Annotated[int | None, typer.Option(help="How many members the group has; 3 if not given.")] = None,
    backups: Backups = None,
    clusters: Annotated[
        str | None, typer.Option(help="The cluster of each member of a hierarchy that survives faults, like a,a,b/c,b/c.")
    ] = None,
    messages: Annotated[int | None, typer.Option(help="How many messages each sender sends; 10000 if not given.")] = None,
    size: Annotated[int | None, typer.Option(help="Bytes of each message; 64 if not given.")] = None,
    senders: Annotated[str | None, typer.Option(help="Who sends, like 0,2; all members if not given.")] = None,
    rate: Annotated[
        float | None, typer.Option(help="Messages a second of each sender; as fast as possible if not given.")
    ] = None,
    timeout: Annotated[float | None, typer.Option(help="Seconds of silence after which a member counts as lost.")] = None,
    join: Annotated[
        float | None, typer.Option(help="Seconds to wait for all members to join; 60 if all are started here.")
    ] = None,
    faults: Annotated[
        str | None,
        typer.Option(
            help="Faults to inject, like 'kill 2@1s, stop 3@2s for 4s, partition 0,1|2,3,4@8s for 5s, restart 2@10s'."
        ),
    ] = None,
    hosts: Annotated[
        Path | None, typer.Option(help="TOML file with the members' addresses; starts those of this machine.")
    ] = None,
    insecure: Annotated[bool, typer.Option("--insecure", help="Use neither a secret nor certificates between hosts.")] = False,
    out: Annotated[Path | None, typer.Option(help="Directory for the run; runs/NAME if not given.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing run.")] = False,
    watch: Annotated[
        bool,
        typer.Option(
            "--watch", help="Open a page about the run while it is made; 200 messages a second if --rate is not given."
        ),
    ] = False,
    no_audit: Annotated[bool, typer.Option("--no-audit", help="Do not check the orders, and write no report.")] = False,
    no_report: Annotated[bool, typer.Option("--no-report", help="Write no report.")] = False,
    master: Master = None,
    remote: Remote = None,
    json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Run a live group on real sockets, write its trace, check that its order held, and report.

    Exit code 0: the promised orders hold; 1: they are violated; 2: bad input; 3: it could not be decided, or the group could
    not go on; 130: interrupted, after everything sent was delivered.
    """
    from quire.cli.ending import conclude
    from quire.cli.planning import JOIN_S, complete, losable_in, make_plan, override, plan_faults
    from quire.cli.running import run_members, run_surviving, run_with_faults
    from quire.cli.watching import observable, watching
    from quire.model.errors import BadInput
    from quire.trace.store import check_new

    began, where = time.perf_counter(), requested_address(master, remote)
    if faults is not None and hosts is not None:
        raise BadInput("--faults needs all members on this machine; leave out --hosts")
    if not no_audit:
        check_spark(", or skip the audit with --no-audit")
    if backups is not None:
        option = [*(option or ()), f"backups={backups}"]
    plan = override(
        make_plan(hosts, members), protocol=protocol, option=option, senders=senders, insecure=insecure,
        clusters=clusters, messages=messages, size=size, rate=rate, timeout_s=timeout, join_s=join,
    )  # fmt: skip
    if hosts is None and join is None:
        # All are started at once, so that nobody has to be waited for any longer.
        plan = msgspec.structs.replace(plan, join_s=JOIN_S)
    wrong: tuple[Fault, ...] = ()
    losable = losable_in(plan)
    if losable and hosts is not None:
        raise BadInput("sequencers with backups are run on this machine; elsewhere, start them by `quire serve`")
    if faults is not None:
        plan, wrong = plan_faults(plan, faults)
    plan = complete(plan, grow=hosts is None)
    out = out or Path("runs") / plan.run_name()
    check_new(out, force=force)
    if watch:
        plan = observable(plan, hosts, wrong)
    with watching(plan, out) if watch else nullcontext():
        if losable:
            summary = run_surviving(plan, losable, wrong, out, force=force)
        elif wrong:
            summary = run_with_faults(plan, wrong, out, force=force)
        else:
            summary = run_members(plan, hosts, out, force=force, json=json)
    summary = msgspec.structs.replace(summary, wall_s=round(time.perf_counter() - began, 6))
    conclude(summary, out, where, audited=not no_audit, reported=not no_report, json=json)
