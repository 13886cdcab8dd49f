"""A benchmark's table, for people or as JSON."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from typing import Any

Row = dict[str, Any]


def show(table: Sequence[Row], heading: Sequence[str], line: Callable[[Row], str], *, as_json: bool) -> None:
    """Print the heading and a line for each row; with `as_json`, the rows alone."""
    if as_json:
        json.dump(table, sys.stdout, indent=2)
        print()
        return
    for text in (*heading, *map(line, table)):
        print(text)
