"""The interface of an audit check: all that the registry needs to know about one guarantee.

A check names the tasks it needs, or uses the results of the pass over all events that every audit makes. It counts the
violations in the results, says when they do not suffice for a verdict, and explains the first violation.
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
    """What is being audited: the trace, the run's description, and the guarantees to check."""

    layout: Layout
    info: RunInfo
    wanted: frozenset[str]
    """The names of the guarantees to check."""


class TaskKind(msgspec.Struct, frozen=True):
    """A kind of task that judges a whole trace. If several checks share it, it runs once."""

    task: type
    """A struct with a tag of its own."""
    result: type
    """A struct whose default instance means that nothing was found."""
    perform: Callable[..., object]
    """Performs the task, in any process, and returns its result."""
    make: Callable[[Question], object]
    """Makes the task. May raise BadInput, with a message of one sentence, if the run's description makes no sense."""
    cut: Callable[[Any], Sequence[object]] = lambda task: (task,)
    """Splits the task into pieces that can run in parallel. The result type then has a method `joined`, which combines the
    results of two pieces."""

    settled: Callable[[Any], bool] = lambda _: True
    """Whether the joined result of the pieces is conclusive. If not, the whole task is performed as well."""

    def pieces(self, question: Question) -> Sequence[object]:
        return self.cut(self.make(question))


class Need(msgspec.Struct, frozen=True):
    """A precondition of a check that not every kind of trace meets."""

    lacking: Callable[[Results], bool]
    why: str
    """The reason that is reported if the trace does not meet it."""


class AuditCheck(msgspec.Struct, frozen=True, kw_only=True):
    guarantee: str
    """Its name, on the command line and in results."""
    holds: str
    """The sentence that is reported if nothing violates it."""
    needs: tuple[Need, ...] = ()
    """What the trace must have. If it lacks one of these, the check is undecided if it is expected, else not applicable."""
    tasks: tuple[TaskKind, ...] = ()
    """The tasks it needs in addition to the pass over all events that every audit makes."""
    count: Callable[[Results], int]
    """How many violations were found."""
    undecided: Callable[[Results], str] = lambda _: ""
    """Why the guarantee cannot be said to hold although no violation was found; empty if it can."""
    partly: Callable[[Results], str] = lambda _: ""
    """Replaces `holds` if only a part of the guarantee can be decided and nothing violates that part; else empty."""
    mentions: Callable[[Results], Iterable[MessageId]] = lambda _: ()
    """The messages whose events the explanation needs."""
    explain: Callable[[Results, Log], Explanation]
    """The first violation, as a counterexample and a sentence. Called only if there is a violation."""
