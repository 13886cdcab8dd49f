"""The errors of journals, and what to do about each."""

from __future__ import annotations

from pathlib import Path

from quire.model.errors import QuireError


class JournalCorrupt(QuireError):
    """A journal is damaged where it was durable already, so it is unknown what was promised to others. Nothing in it was
    changed: move it elsewhere and start without it, as a new member. An older copy is no help, because it lacks later
    promises."""

    def __init__(self, path: Path, offset: int, why: str) -> None:
        self.what_to_do = f"move {path.parent} elsewhere and start without it, as a new member"
        super().__init__(f"{path} is damaged at byte {offset}: {why}; {self.what_to_do}")
        self.path = path
        self.offset = offset
        self.why = why


class JournalFull(QuireError):
    """As much waits for the disk as may. Nothing was taken: take no more input until there is `room`, and append again."""
