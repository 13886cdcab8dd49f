"""The handshake of two processes: what each says of itself on a new connection, and whether they may be in one group."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec


class Introduction(msgspec.Struct, frozen=True, kw_only=True):
    group: str
    name: str
    life: int
    """A random number, drawn when the process was started. A link is between two lives, so it ends when either restarts."""
    incarnation: int
    address: str
    """Where others reach it."""
    facts: str
    """The settings that must be the same at all members."""
    addresses: Mapping[str, str]
    """The addresses of all processes that it knows, by name."""
    founders: str = ""
    """The founding members, as configured; empty at a process that joined through a contact."""


def objection(mine: Introduction, theirs: Introduction) -> str:
    """Why these two cannot be members of one group, as a sentence to send to the other; empty if they can."""
    if theirs.group != mine.group:
        return f"this is group {mine.group!r}, not {theirs.group!r}"
    if theirs.name == mine.name:
        return f"another process is already running as {mine.name!r}"
    if theirs.facts != mine.facts:
        return f"{mine.name!r} runs {mine.facts}, and {theirs.name!r} runs {theirs.facts}"
    if theirs.founders and mine.founders and theirs.founders != mine.founders:
        return f"{mine.name!r} was given the founding members {mine.founders}, and {theirs.name!r} {theirs.founders}"
    return ""
