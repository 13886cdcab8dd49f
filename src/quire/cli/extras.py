"""Checks for optional dependencies: the Spark pipeline needs `pip install 'quire[spark]'`, the rest does not."""

from __future__ import annotations

import functools
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

from quire.model.errors import BadInput

SPARK = ("pyspark", "pandas", "numba", "re2")
"""The modules that the extra `spark` installs."""


def check_spark(otherwise: str = "") -> None:
    """Raise BadInput if the extra is not installed; `otherwise` is an alternative to suggest."""
    if any(find_spec(name) is None for name in SPARK):
        raise BadInput(f"this needs Spark: pip install 'quire[spark]'{otherwise}")


def needing_spark(command: Callable[..., None]) -> Callable[..., None]:
    """The command, which says so where it cannot work."""

    @functools.wraps(command)
    def checked(*arguments: Any, **options: Any) -> None:
        check_spark()
        command(*arguments, **options)

    return checked
