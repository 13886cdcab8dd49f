"""`quire serve`: a sequencer of the sequencing service."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from quire.cli.observing import Observe, ObserveTokenFile, read_token_file
from quire.model.errors import BadInput

if TYPE_CHECKING:
    from quire.live.errors import GroupFailed
    from quire.live.services.surviving.server import SurvivingServer
    from quire.live.services.visiting import HubHost

_EXIT_FAILED = 3


def serve(
    listen: Annotated[str, typer.Option(help="HOST:PORT of this sequencer.")] = "127.0.0.1:7400",
    peers: Annotated[
        str | None,
        typer.Option(
            help="HOST:PORT,… of all sequencers including this one, the same list at each; leave out for a single one."
        ),
    ] = None,
    me: Annotated[int | None, typer.Option(help="Which of the peers this is, if --listen is not among them.")] = None,
    backups: Annotated[
        int | None,
        typer.Option(
            help="How many other sequencers know what one knows, and continue when it is lost; 0: what its clients know is "
            "enough to continue. If not given, the service ends with it."
        ),
    ] = None,
    register: Annotated[
        str | None,
        typer.Option(
            help="With --backups: HOST:PORT,… of all sequencers for their register; if not given, their own ports plus 1000."
        ),
    ] = None,
    journal: Annotated[
        Path | None,
        typer.Option(
            help="With --backups: directory in which this sequencer keeps the register, so that the service continues after "
            "all sequencers were lost at once."
        ),
    ] = None,
    service: Annotated[str | None, typer.Option(help="Name of the service; quire if not given.")] = None,
    option: Annotated[list[str] | None, typer.Option(help="NAME=VALUE, like order=hybrid; repeatable.")] = None,
    secret_file: Annotated[Path | None, typer.Option(help="File with the secret, which clients need too.")] = None,
    certificates: Annotated[
        Path | None, typer.Option(help="This sequencer's folder of certificates, made by `quire keys`.")
    ] = None,
    insecure: Annotated[bool, typer.Option("--insecure", help="Use neither a secret nor certificates between hosts.")] = False,
    timeout: Annotated[
        float | None, typer.Option(help="Seconds of silence after which another counts as lost; 10 if not given.")
    ] = None,
    join: Annotated[float | None, typer.Option(help="Seconds to wait for the other sequencers; 600 if not given.")] = None,
    trace: Annotated[Path | None, typer.Option(help="Directory for this sequencer's part of the trace.")] = None,
    observe: Observe = None,
    observe_token_file: ObserveTokenFile = None,
) -> None:
    """Run a sequencer until it is stopped by Ctrl-C or SIGTERM. Clients use quire.connect.

    Exit code 0: stopped; 2: bad input; 3: another sequencer was lost.
    """
    from quire.live.network_options import JOIN_S, TIMEOUT_S, Certificates, read_secret_file
    from quire.live.runs.member import run
    from quire.live.services.sequencers import SERVICE
    from quire.live.services.sequencers import serve as make_server
    from quire.simulation.config import parse_options

    addresses = [listen] if peers is None else peers.split(",")
    if me is None:
        if listen not in addresses:
            raise BadInput(f"{listen} is not among the peers; say with --me which of them this is")
        me = addresses.index(listen)
    host = make_server(
        addresses,
        me,
        service=SERVICE if service is None else service,
        options=parse_options(option or ()),
        backups=backups,
        register=None if register is None else register.split(","),
        journal=journal,
        secret=None if secret_file is None else read_secret_file(secret_file),
        certificates=None if certificates is None else Certificates.of(certificates),
        insecure=insecure,
        timeout_s=TIMEOUT_S if timeout is None else timeout,
        join_s=JOIN_S if join is None else join,
        listen=listen,
        trace=trace,
        observe=observe,
        observe_token=read_token_file(observe_token_file),
    )
    failure = run(_serve(host, me, listen))
    if failure is not None:
        print(f"quire: {failure}", file=sys.stderr)
        raise typer.Exit(_EXIT_FAILED)


async def _serve(host: HubHost | SurvivingServer, me: int, listen: str) -> GroupFailed | None:
    from quire.live.errors import GroupFailed
    from quire.live.runs.member import stop_on_signals

    stopped = asyncio.Event()
    stop_on_signals(stopped.set)
    try:
        async with host:
            print(f"quire: sequencer {me} serves at {listen}", file=sys.stderr, flush=True)
            waits = [asyncio.ensure_future(stopped.wait()), asyncio.ensure_future(host.until_ended())]
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            for wait in waits:
                wait.cancel()
    except GroupFailed as error:
        return error
    return None
