"""The option for the number of backups of sequencers, for commands that make runs of them; as in `quire serve`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

import typer

Backups = Annotated[
    int | None,
    typer.Option(
        help="Of sequencers: how many others know what one knows, and continue when it is lost; 0: what its clients know is "
        "enough to continue. If not given, none continues."
    ),
]


def with_backups(options: Mapping[str, object], backups: int | None) -> dict[str, object]:
    """The options of a protocol, with the backups of its sequencers if they are given."""
    return dict(options) if backups is None else {**options, "backups": backups}
