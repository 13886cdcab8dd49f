"""Commands with options in groups: a parameter whose type is a struct becomes one option per field."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, get_type_hints

import msgspec


def grouped(command: Callable[..., None]) -> Callable[..., None]:
    """The command as typer takes it, with one parameter for each field of its structs, in the order of both."""
    hints = get_type_hints(command, include_extras=True)
    flat: list[inspect.Parameter] = []
    groups: dict[str, tuple[type[msgspec.Struct], list[str]]] = {}
    for name, parameter in inspect.signature(command).parameters.items():
        kind = hints[name]
        if not (isinstance(kind, type) and issubclass(kind, msgspec.Struct)):
            flat.append(parameter.replace(annotation=kind, kind=inspect.Parameter.KEYWORD_ONLY))
            continue
        options = _options(kind)
        groups[name] = kind, [option.name for option in options]
        flat += options

    @functools.wraps(command)
    def spread(**given: Any) -> None:
        for group, (kind, names) in groups.items():
            given[group] = kind(**{name: given.pop(name) for name in names})
        command(**given)

    spread.__signature__ = inspect.Signature(flat)  # type: ignore[attr-defined]
    spread.__annotations__ = {option.name: option.annotation for option in flat}
    return spread


def _options(kind: type[msgspec.Struct]) -> list[inspect.Parameter]:
    hints = get_type_hints(kind, include_extras=True)
    return [
        inspect.Parameter(field.name, inspect.Parameter.KEYWORD_ONLY, default=field.default, annotation=hints[field.name])
        for field in msgspec.structs.fields(kind)
    ]
