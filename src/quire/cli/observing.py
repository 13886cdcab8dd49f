"""The options for observing processes and for being observed, and the file with the token."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from quire.model.errors import BadInput

Observe = Annotated[
    str | None,
    typer.Option(help="HOST:PORT where it can be looked at by `quire watch` and Prometheus; loopback without a token."),
]
ObserveTokenFile = Annotated[Path | None, typer.Option(help="File with the token that whoever looks must know.")]


def read_token_file(path: Path | None) -> str | None:
    """The token in a file, without the space around it; raises BadInput in one sentence."""
    if path is None:
        return None
    try:
        return path.read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"cannot read the token in {path}: {getattr(error, 'strerror', None) or error}") from error
