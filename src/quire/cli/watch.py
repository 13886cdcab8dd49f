"""`quire watch`: a page, or a table, about what is running."""

from __future__ import annotations

import asyncio
import sys
import webbrowser
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from quire.cli.observing import read_token_file
from quire.model.errors import BadInput

if TYPE_CHECKING:
    from collections.abc import Sequence

    from quire.http.addresses import HttpAddress
    from quire.watch.server import Watching
    from quire.watch.sources import Source


def watch(
    what: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[ADDRESS…|RUN]",
            help="Where members are observed, HOST:PORT; or the directory of a run that is being made.",
        ),
    ] = None,
    group: Annotated[Path | None, typer.Option(help="Description of the group, with the addresses in `observe`.")] = None,
    listen: Annotated[str, typer.Option(help="HOST:PORT of the page, on loopback; port 0: any that is free.")] = "127.0.0.1:0",
    token_file: Annotated[Path | None, typer.Option(help="File with the token of the members.")] = None,
    text: Annotated[bool, typer.Option("--text", help="Draw tables in the terminal instead of serving a page.")] = False,
    once: Annotated[bool, typer.Option("--once", help="With --text: draw them once, and end.")] = False,
    no_browser: Annotated[bool, typer.Option("--no-browser", help="Do not open a browser.")] = False,
) -> None:
    """Watch what runs: members and views, who waits for whom, rates and latencies, and whether the orders hold so far.

    Give the addresses at which members are observed, a directory in which a run is being recorded, or the file of a group.
    It ends by Ctrl-C.
    """
    from quire.http.addresses import read_http_address
    from quire.live.runs.member import run
    from quire.watch.server import Watching

    sources = _sources(what or [], group, read_token_file(token_file))
    if once and not text:
        raise BadInput("--once is for --text")
    run(_watch(Watching(sources), read_http_address(listen), text=text, once=once, browser=not no_browser))


def _sources(what: Sequence[str], group: Path | None, token: str | None) -> list[Source]:
    from quire.http.addresses import read_http_address
    from quire.watch.sources import ObservedProcess, RecordedRun

    if group is not None:
        if what:
            raise BadInput("give addresses, a run, or --group, and not several of them")
        return [ObservedProcess(read_http_address(address), token) for address in _addresses(group)]
    if not what:
        raise BadInput("say what to watch: addresses like 127.0.0.1:9400, the directory of a run, or --group FILE")
    paths = [Path(each) for each in what]
    if len(what) == 1 and (paths[0].is_dir() or ":" not in what[0]):
        run = RecordedRun(paths[0])
        if not run.has_begun():
            print(f"quire: no run is being recorded in {paths[0]} yet; waiting for one to begin", file=sys.stderr, flush=True)
        return [run]
    return [ObservedProcess(read_http_address(address), token) for address in what]


def _addresses(group: Path) -> Sequence[str]:
    from quire.live.runs.plan import read_plan

    observe = read_plan(group).observe
    if not observe:
        raise BadInput(f'{group} does not say where its members are observed: add observe = ["HOST:PORT", …], one for each')
    return observe


async def _watch(watching: Watching, address: HttpAddress, *, text: bool, once: bool, browser: bool) -> None:
    from rich.console import Console

    from quire.live.runs.member import stop_on_signals
    from quire.watch.server import PageServer
    from quire.watch.text import watch_text

    async with watching:
        if text:
            doing = watch_text(watching, Console(), once=once)
        else:
            doing = PageServer(watching, address).serve(lambda at: _tell(at, browser=browser))
        working = asyncio.ensure_future(doing)

        def stop() -> None:
            working.cancel()

        stop_on_signals(stop)
        try:
            await working
        except asyncio.CancelledError:
            if not working.cancelled():
                raise


def _tell(address: HttpAddress, *, browser: bool) -> None:
    print(f"quire: watching at http://{address}/", file=sys.stderr, flush=True)
    if browser:
        webbrowser.open(f"http://{address}/")
