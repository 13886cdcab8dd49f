"""The options for where Spark runs, for all commands that use it: on this machine, on a cluster, or over Spark Connect."""

from __future__ import annotations

from typing import Annotated

import msgspec
import typer

from quire.model.errors import BadInput

LOCAL = "local[*]"

Master = Annotated[
    str | None,
    typer.Option(
        "--master",
        metavar="URL",
        help="Where Spark runs: local[N] or spark://HOST:PORT; on all cores of this machine if not given.",
    ),
]
Remote = Annotated[
    str | None, typer.Option("--remote", metavar="URL", help="A Spark Connect server, sc://HOST:PORT, instead of --master.")
]


def spark_address(master: str | None, remote: str | None) -> str:
    """The address that a session is made with."""
    return requested_address(master, remote) or LOCAL


def requested_address(master: str | None, remote: str | None) -> str | None:
    """The same; None if the command may choose whether it needs Spark at all."""
    if remote is None:
        if master is not None and master.startswith("sc://"):
            raise BadInput(f"{master} is a Spark Connect server: use --remote {master}")
        return master
    if master is not None:
        raise BadInput("give --master or --remote, not both")
    if not remote.startswith("sc://"):
        raise BadInput(f"--remote takes the address of a Spark Connect server, sc://HOST:PORT, not {remote}")
    return remote


class SparkOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Both options, for commands whose options come in groups."""

    master: Master = None
    remote: Remote = None

    def address(self) -> str:
        return spark_address(self.master, self.remote)
