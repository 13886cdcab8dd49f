"""Shows on a terminal what a command is doing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console


@contextmanager
def status(text: str) -> Iterator[Callable[[str], None]]:
    """Show it on a terminal while the block runs; the caller may say what comes next."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda _: None
        return
    with console.status(text) as shown:
        yield shown.update
