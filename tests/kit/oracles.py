"""Brute-force oracles: the definitions of the orders, word for word, on what the members of a world delivered.

Each oracle returns a sentence that names the first witness of a violation, or None. They are slow and obvious on
purpose: they share nothing with the protocols, nor with the audit that runs on Spark.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter
from itertools import combinations, pairwise

from quire.model.messages import MessageId
from quire.model.orders import Guarantee

Past = Mapping[MessageId, frozenset[MessageId]]


@dataclass(frozen=True)
class History:
    """What was sent and delivered by the members that count: those that did not crash."""

    past: Past
    """Every message that was sent, with all messages that happened before it."""
    logs: Mapping[int, Sequence[MessageId]]
    """Per correct member, what it delivered, in order."""
    dests: Mapping[MessageId, frozenset[int]] = field(default_factory=dict)
    """For whom a message is that is not for everybody."""

    def is_for(self, message: MessageId, member: int) -> bool:
        return message not in self.dests or member in self.dests[message]


def integrity(history: History) -> str | None:
    for member, log in history.logs.items():
        for message in log:
            if message not in history.past:
                return f"member {member} delivered {message}, which nobody sent"
            if not history.is_for(message, member):
                return f"member {member} delivered {message}, which is not for it"
            if log.count(message) > 1:
                return f"member {member} delivered {message} {log.count(message)} times"
    return None


def agreement(history: History) -> str | None:
    """To be asked only when nothing is on its way any more. It covers validity: what a correct member sent is due."""
    due = {message for message in history.past if message.origin in history.logs}
    due.update(message for log in history.logs.values() for message in log)
    for member, log in history.logs.items():
        for message in sorted(due):
            if message not in log and history.is_for(message, member):
                return f"member {member} never delivered {message}"
    return None


def fifo(history: History) -> str | None:
    for member, log in history.logs.items():
        for place, message in enumerate(log):
            for seq in range(message.seq):
                earlier = MessageId(message.origin, seq)
                if earlier not in log[:place] and history.is_for(earlier, member):
                    return f"member {member} delivered {message} before {message.origin}:{seq}"
    return None


def causal(history: History) -> str | None:
    for member, log in history.logs.items():
        for place, message in enumerate(log):
            for cause in sorted(history.past[message]):
                if cause not in log[:place] and history.is_for(cause, member):
                    return f"member {member} delivered {message} before {cause}, which happened before it"
    return None


def total(history: History) -> str | None:
    for (one, log), (other, their_log) in combinations(history.logs.items(), 2):
        for first, second in combinations([message for message in log if message in their_log], 2):
            if their_log.index(first) > their_log.index(second):
                return f"member {one} delivered {first} before {second}, and member {other} the other way round"
    return None


def acyclic(history: History) -> str | None:
    sorter: TopologicalSorter[MessageId] = TopologicalSorter()
    for log in history.logs.values():
        for before, after in pairwise(log):
            sorter.add(after, before)
    try:
        sorter.prepare()
    except CycleError as error:
        return f"the delivery orders have the cycle {' < '.join(map(str, error.args[1]))}"
    return None


ORACLES: Mapping[Guarantee, Callable[[History], str | None]] = {
    Guarantee.INTEGRITY: integrity,
    Guarantee.AGREEMENT: agreement,
    Guarantee.FIFO: fifo,
    Guarantee.CAUSAL: causal,
    Guarantee.TOTAL: total,
    Guarantee.ACYCLIC: acyclic,
}
