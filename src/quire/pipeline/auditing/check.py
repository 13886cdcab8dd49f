"""An entry of the audit's registry: everything that there is to know of one check.

A check asks for tasks, or uses what the pass over all events finds anyway; counts the violations in their results; says
when these do not suffice for a verdict; and explains the first violation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import msgspec

from quire.model.messages import MessageId
from quire.pipeline.auditing.explanations import Explanation, Log
from quire.pipeline.auditing.results import Results
from quire.pipeline.layout import Layout
from quire.trace.schema import RunInfo


class Question(msgspec.Struct, frozen=True):
    """What an audit is to find out."""

    layout: Layout
    info: RunInfo
    wanted: frozenset[str]
    """The guarantees that are checked."""


class TaskKind(msgspec.Struct, frozen=True):
    """A kind of task that judges a whole trace. Several checks may share its result, and then it is performed once."""

    task: type
    """A struct with a tag of its own."""
    result: type
    """A struct that can be made without arguments, which means that nothing was found."""
    perform: Callable[..., object]
    """Makes a result of a task, in any process."""
    make: Callable[[Question], object]
    """Makes the task. May raise BadInput, in one sentence, for a description of a run that makes no sense."""
    cut: Callable[[Any], Sequence[object]] = lambda task: (task,)
    """The pieces of a task that can be performed beside each other. A result then has a method `joined`, which puts what two
    of them found together."""

    settled: Callable[[Any], bool] = lambda _: True
    """Whether what the pieces found decides it. If not, the task is performed whole, too."""

    def pieces(self, question: Question) -> Sequence[object]:
        return self.cut(self.make(question))


class Need(msgspec.Struct, frozen=True):
    """Something that not every kind of trace has."""

    lacking: Callable[[Results], bool]
    why: str
    """What is said where it lacks."""


class AuditCheck(msgspec.Struct, frozen=True, kw_only=True):
    guarantee: str
    """Its name, on the command line and in results."""
    holds: str
    """The sentence where nothing violates it."""
    needs: tuple[Need, ...] = ()
    """What a trace must have. Of one that lacks it the check is undecided if it is expected, else not applicable."""
    tasks: tuple[TaskKind, ...] = ()
    """How a trace is judged, beside the pass over all events that every audit makes."""
    count: Callable[[Results], int]
    """How many violations were found."""
    undecided: Callable[[Results], str] = lambda _: ""
    """Why it cannot be said to hold although nothing violates it; empty if it can."""
    partly: Callable[[Results], str] = lambda _: ""
    """What is said instead where only a part of it can be decided, and nothing violates that; empty if all of it can."""
    mentions: Callable[[Results], Iterable[MessageId]] = lambda _: ()
    """The messages whose events the explanation needs to know."""
    explain: Callable[[Results, Log], Explanation]
    """The first violation, as a counterexample and a sentence. Only asked where there is one."""
