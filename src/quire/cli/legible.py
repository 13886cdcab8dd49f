"""Makes text from outside safe to print on a terminal."""

from __future__ import annotations

import re

_COMMANDS = re.compile("[\x00-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]")
"""Control characters, and those that change the writing direction: a terminal obeys them instead of showing them."""


def legible(text: str) -> str:
    """The text with these characters escaped."""
    return _COMMANDS.sub(lambda found: found[0].encode("unicode_escape").decode(), text)
