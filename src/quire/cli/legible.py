"""Text that others wrote, as it may be shown on a terminal."""

from __future__ import annotations

import re

_COMMANDS = re.compile("[\x00-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]")
"""Control characters, and those that change the direction of writing: what a terminal obeys instead of showing it."""


def legible(text: str) -> str:
    """The text with escapes for what a terminal would obey."""
    return _COMMANDS.sub(lambda found: found[0].encode("unicode_escape").decode(), text)
