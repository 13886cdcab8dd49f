"""Reads from the local state that see every operation that was completed before they began.

The reader asks the members of its view how many messages they hold. Once a quorum has answered, these members together hold
every operation that was completed anywhere, because an operation completes only when a quorum holds it. When the reader has
delivered as much, it may answer from its own state. One round of questions serves all reads that began before it.
"""

from __future__ import annotations

from collections.abc import Sequence

from quire.views.packets import Counts
from quire.views.view import Tie, View


class _Round:
    def __init__(self, tokens: list[int]) -> None:
        self.tokens = tokens
        self.answers: dict[str, Counts] = {}
        self.target: Counts | None = None


class Reads:
    """The reads of one member in one view."""

    def __init__(self, view: View, tie: Tie) -> None:
        self._view, self._tie = view, tie
        self.rounds: dict[int, _Round] = {}
        """Those that are not answered."""

    def begin(self, round_: int, tokens: list[int]) -> None:
        self.rounds[round_] = _Round(tokens)

    def answered(self, round_: int, name: str, held: Counts) -> None:
        asked = self.rounds.get(round_)
        if asked is None or asked.target is not None:
            return
        asked.answers[name] = held
        if self._view.is_quorum(asked.answers, self._tie):
            asked.target = tuple(map(max, *asked.answers.values())) if len(asked.answers) > 1 else held

    def ready(self, delivered: Sequence[int]) -> list[int]:
        """Take out and return the reads that can be answered, now that so many messages of each member are delivered."""
        done = [
            number
            for number, asked in self.rounds.items()
            if asked.target is not None and all(map(int.__ge__, delivered, asked.target))
        ]
        return [token for number in done for token in self.rounds.pop(number).tokens]

    def end(self) -> tuple[list[int], list[int]]:
        """The view has ended and is fully delivered: the reads that can be answered now, and those that must start again."""
        confirmed = [token for asked in self.rounds.values() if asked.target is not None for token in asked.tokens]
        others = [token for asked in self.rounds.values() if asked.target is None for token in asked.tokens]
        return confirmed, others
