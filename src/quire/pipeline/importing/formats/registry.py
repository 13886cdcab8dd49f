"""The registry of import formats. A new format is one module and one entry here."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any

import msgspec

from quire.model.errors import BadInput
from quire.pipeline.importing.formats.contract import Format


class Entry(msgspec.Struct, frozen=True):
    """What is known about a format without loading its module, which defines it as FORMAT."""

    name: str
    summary: str
    module: str
    options: tuple[str, ...] = ()
    """The fields of `ImportRequest` that it takes, besides `format`."""
    implied_by: tuple[str, ...] = ()
    """The options that imply this format if none is given."""

    def load(self) -> Format[Any]:
        loaded: Format[Any] = import_module(f"{__package__}.{self.module}").FORMAT
        return loaded


FORMATS: tuple[Entry, ...] = (
    Entry("shiviz", "text with vector clocks", "shiviz", ("regex", "parser", "delimiter"), implied_by=("regex", "parser")),
    Entry("jsonl", "one JSON object per line", "jsonl", ("columns", "where", "lenient")),
    Entry("csv", "columns with a header", "csv", ("columns", "where", "lenient")),
    Entry("otel", "OpenTelemetry spans", "otel"),
    Entry("jaeger", "Jaeger spans", "jaeger"),
    Entry("history", "what transactions read and wrote, as Jepsen and Elle record it", "history"),
)


def find(name: str) -> Entry:
    """The format of this name; raises BadInput if there is none."""
    for entry in FORMATS:
        if entry.name == name:
            return entry
    raise BadInput(f"--format must be auto or one of {names()}, not {name!r}")


def names() -> str:
    return ", ".join(entry.name for entry in FORMATS)


def takers(option: str) -> Sequence[str]:
    """The formats that take an option."""
    return [entry.name for entry in FORMATS if option in entry.options]
