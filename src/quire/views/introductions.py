"""What two processes say to each other first, and whether they belong together."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec


class Introduction(msgspec.Struct, frozen=True, kw_only=True):
    group: str
    name: str
    life: int
    """Drawn at random when the process was started: links are between lives."""
    incarnation: int
    address: str
    """Where others reach it."""
    facts: str
    """Whatever must be the same at all members."""
    addresses: Mapping[str, str]
    """Everybody it knows of, by name."""
    founders: str = ""
    """The founding members, as they were configured; empty at somebody who joined by a contact."""


def objection(mine: Introduction, theirs: Introduction) -> str:
    """Why these two cannot be members of one group, as a sentence for the other; empty if they can."""
    if theirs.group != mine.group:
        return f"this is group {mine.group!r}, not {theirs.group!r}"
    if theirs.name == mine.name:
        return f"another process is already running as {mine.name!r}"
    if theirs.facts != mine.facts:
        return f"{mine.name!r} runs {mine.facts}, and {theirs.name!r} runs {theirs.facts}"
    if theirs.founders and mine.founders and theirs.founders != mine.founders:
        return f"{mine.name!r} was given the founding members {mine.founders}, and {theirs.name!r} {theirs.founders}"
    return ""
