"""What an audit says: for every check a verdict, a count, a witness and a sentence that says why."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from quire.model.messages import MessageId


class Verdict(StrEnum):
    """What a check, or a whole audit, says of a trace."""

    HOLDS = "holds"
    VIOLATED = "violated"
    UNDECIDED = "undecided"


class LoggedEvent(msgspec.Struct, frozen=True, omit_defaults=True):
    """An event that a person can look up: what a member did, with what, at which position of its log."""

    member: int
    event: str
    message: str
    """What it was about, as it is shown: a message, or a change of membership."""
    pos: int
    name: MessageId | None = None
    """The message that it was about, if it was about one."""
    at: str | None = None
    """In an imported trace: the event by its host and number there, ..."""
    place: str | None = None
    """... the file and the line, ..."""
    text: str | None = None
    """... and what is said there."""


class Witness(msgspec.Struct, frozen=True):
    """A minimal counterexample. `chain` is how one message came to happen before another."""

    messages: tuple[str, ...]
    """What the counterexample consists of, as it is shown: messages, transactions or changes of membership."""
    members: tuple[int, ...]
    positions: tuple[LoggedEvent, ...]
    chain: tuple[str, ...] = ()
    names: tuple[MessageId, ...] = ()
    """The messages that it speaks of: what is shown of them is for people, these are for programs."""
    missing: MessageId | None = None
    """A message that the first of the members never delivered, if that is what is wrong."""


class Check(msgspec.Struct, frozen=True, kw_only=True):
    """The result of one check: its verdict, the number of violations, a counterexample for the first, and the reason."""

    verdict: Verdict
    violations: int = 0
    witness: Witness | None = None
    because: str


class Audit(msgspec.Struct, frozen=True, kw_only=True):
    """The result of an audit, by the names of guarantees. `expected` are those that decide whether it passed."""

    run: str
    events: int
    processes: int
    messages: int
    checks: dict[str, Check]
    expected: tuple[str, ...]
    expectation: str
    """Where the expectation comes from, for people."""
    not_applicable: dict[str, str] = {}
    """The checks of any messages that were not expected and that a trace of this kind cannot have, each with the reason."""
    notes: tuple[str, ...] = ()
    """What the run says of its trace: parts that do not reach to the end, and what was left out for that."""
    on_spark: bool = True
    """Or in the process that asked."""
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

    def reasons_not_applicable(self) -> dict[str, list[str]]:
        """Why checks are not applicable, and which of them, for people."""
        reasons: dict[str, list[str]] = {}
        for guarantee, reason in self.not_applicable.items():
            reasons.setdefault(reason, []).append(guarantee)
        return reasons
