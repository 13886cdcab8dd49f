"""The audit's output: for every check a verdict, the number of violations, a witness, and a sentence that says why."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from quire.model.messages import MessageId


class Verdict(StrEnum):
    """The verdict of a check, or of a whole audit."""

    HOLDS = "holds"
    VIOLATED = "violated"
    UNDECIDED = "undecided"


class LoggedEvent(msgspec.Struct, frozen=True, omit_defaults=True):
    """An event that a person can look up: what a member did with which message, and at which position of its log."""

    member: int
    event: str
    message: str
    """What it was about, for display: a message, or a change of membership."""
    pos: int
    name: MessageId | None = None
    """The message that it was about, if any."""
    at: str | None = None
    """In an imported trace: the event, by its host and its number there, ..."""
    place: str | None = None
    """... its file and line, ..."""
    text: str | None = None
    """... and the text of the original log there."""


class Witness(msgspec.Struct, frozen=True):
    """A minimal counterexample. `chain` shows how one message happened before another."""

    messages: tuple[str, ...]
    """What the counterexample consists of, for display: messages, transactions or changes of membership."""
    members: tuple[int, ...]
    positions: tuple[LoggedEvent, ...]
    chain: tuple[str, ...] = ()
    names: tuple[MessageId, ...] = ()
    """The messages that it mentions, for programs (`messages` is for people)."""
    missing: MessageId | None = None
    """The message that the first of `members` never delivered, if that is the violation."""


class Check(msgspec.Struct, frozen=True, kw_only=True):
    """The result of one check: its verdict, the number of violations, a counterexample for the first, and the reason."""

    verdict: Verdict
    violations: int = 0
    witness: Witness | None = None
    because: str


class Audit(msgspec.Struct, frozen=True, kw_only=True):
    """The result of an audit, by name of guarantee. `expected` lists the guarantees that decide whether it passed."""

    run: str
    events: int
    processes: int
    messages: int
    checks: dict[str, Check]
    expected: tuple[str, ...]
    expectation: str
    """Where the expectation comes from, for display."""
    not_applicable: dict[str, str] = {}
    """The checks of any messages that were not expected and do not apply to a trace of this kind, each with the reason."""
    notes: tuple[str, ...] = ()
    """The run's notes about its trace: parts that do not reach the end, and what was left out because of that."""
    on_spark: bool = True
    """Whether the audit ran on Spark; otherwise it ran in the process that asked."""
    segments: int
    wall_s: float
    events_per_s: float

    @property
    def verdict(self) -> Verdict:
        """The verdict of the expected checks together: violated if one is, else undecided if one is, else they hold."""
        verdicts = {self.checks[guarantee].verdict for guarantee in self.expected}
        for verdict in (Verdict.VIOLATED, Verdict.UNDECIDED):
            if verdict in verdicts:
                return verdict
        return Verdict.HOLDS

    def reasons_not_applicable(self) -> dict[str, list[str]]:
        """The reasons why checks are not applicable, each with these checks, for display."""
        reasons: dict[str, list[str]] = {}
        for guarantee, reason in self.not_applicable.items():
            reasons.setdefault(reason, []).append(guarantee)
        return reasons
