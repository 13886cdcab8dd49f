"""What an audit says: for every check a verdict, a count, a witness and a sentence that says why."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from quire.model.orders import Guarantee


class Verdict(StrEnum):
    HOLDS = "holds"
    VIOLATED = "violated"
    UNDECIDED = "undecided"


class Place(msgspec.Struct, frozen=True):
    """An event that a person can look up: what a member did, with which message, at which position of its log."""

    member: int
    event: str
    message: str
    pos: int


class Witness(msgspec.Struct, frozen=True):
    """The smallest story of a violation. `chain` is how one message came to happen before another."""

    messages: tuple[str, ...]
    members: tuple[int, ...]
    positions: tuple[Place, ...]
    chain: tuple[str, ...] = ()


class Check(msgspec.Struct, frozen=True, kw_only=True):
    verdict: Verdict
    violations: int = 0
    witness: Witness | None = None
    because: str


class Audit(msgspec.Struct, frozen=True, kw_only=True):
    """The result of an audit. `expected` are the checks that decide whether it passed."""

    run: str
    events: int
    processes: int
    messages: int
    checks: dict[Guarantee, Check]
    expected: tuple[Guarantee, ...]
    expectation: str
    """Where the expectation comes from, for people."""
    segments: int
    wall_s: float
    events_per_s: float

    @property
    def verdict(self) -> Verdict:
        """Of the expected checks together: violated if one is, else undecided if one is, else they hold."""
        verdicts = {self.checks[guarantee].verdict for guarantee in self.expected}
        for verdict in (Verdict.VIOLATED, Verdict.UNDECIDED):
            if verdict in verdicts:
                return verdict
        return Verdict.HOLDS
