"""Names that a package offers and imports only when somebody uses them.

A package writes what it offers as ordinary imports, which type checkers and editors understand, in a block that has them
noted instead of done. That is the only list of its names; what `dir` shows and a star imports follows from it.
"""

from __future__ import annotations

import builtins
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from types import SimpleNamespace
from typing import Any


@contextmanager
def imported_when_used(package: dict[str, Any], extra: str | None = None) -> Iterator[None]:
    """Note the `from … import …` statements of a package within the block; `package` is its `globals()`, and `extra` with
    what more than Quire itself has to be installed for what is in it."""
    homes: dict[str, str] = {}
    usual = builtins.__import__

    def note(name: str, globals: Any = None, locals: Any = None, fromlist: Any = (), level: int = 0) -> Any:
        # Another thread may import something at the same moment.
        if globals is not package:
            return usual(name, globals, locals, fromlist, level)
        homes.update(dict.fromkeys(fromlist, name))
        return SimpleNamespace(**dict.fromkeys(fromlist))

    builtins.__import__ = note
    try:
        yield
    finally:
        builtins.__import__ = usual
    for name in homes:
        del package[name]

    def load(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package['__name__']!r} has no attribute {name!r}")
        try:
            package[name] = getattr(import_module(homes[name]), name)
        except ModuleNotFoundError as error:
            if extra is None or (error.name or "").partition(".")[0] == "quire":
                raise
            raise ImportError(f"{package['__name__']}.{name} needs {error.name}: pip install 'quire[{extra}]'") from error
        return package[name]

    package["__all__"] = sorted(homes)
    package["__getattr__"] = load
    package["__dir__"] = lambda: sorted({*package, *homes})
