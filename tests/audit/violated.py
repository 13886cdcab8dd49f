"""Violations of every guarantee there is, in all their kinds, as traces that say what they were to keep."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from quire.model.orders import Guarantee
from tests.audit import test_groups, test_serialisable, test_significant, test_views
from tests.audit.oracle import Event
from tests.audit.traces import Trace, plain, timed, write

JOINED, deliver, join = test_groups.JOINED, test_groups.deliver, test_groups.view(1, 2, "join")
UNADDRESSED = Event("send", 2, 0, None, "g")
"""Its destinations are those in whose membership its number falls: the audit finds them from the logs."""

ANY_MESSAGES = {
    "integrity, delivered twice": plain("s0>01 d0:0", "d0:0 d0:0"),
    "integrity, sent by nobody": plain("s0>01 d0:0", "d0:0 d0:7"),
    "integrity, from no process": plain("s0>01 d0:0", "d0:0 d9:7"),
    "integrity, not addressed": plain("s0>0 d0:0", "d0:0"),
    "integrity, sent twice": plain("s0>01 s0>01 d0:0", "d0:0"),
    "agreement, lost": plain("s0>01 d0:0", "s0>1 d1:0"),
    "agreement, of a crashed sender": timed(plain("s0>012 d0:0", "d0:0", "s0>2 d2:0").logs, frozenset({0})),
    "agreement, destinations from the logs": timed([[*JOINED, deliver(2, 0)], [join], [UNADDRESSED]], frozenset({2})),
    "integrity, destinations from the logs": timed(
        [[*JOINED, deliver(2, 0)], [join, deliver(2, 0)], [UNADDRESSED], [deliver(2, 0)]]
    ),
    "fifo, late": plain("s0>1 s1>1", "d0:1 d0:0"),
    "fifo, never": plain("s0>1 s1>1", "d0:1"),
    "causal, through others": plain("s0>13", "d0:0 s0>2", "d1:0 s0>3", "d2:0 d0:0"),
    "total, two members": plain("s0>01 d0:0 d1:0", "s0>01 d1:0 d0:0"),
    "acyclic, three members": plain("s0>02 d0:0 d1:0", "s0>01 d1:0 d2:0", "s0>12 d2:0 d0:0"),
}


class Violated(NamedTuple):
    guarantee: Guarantee
    trace: Trace
    settings: dict[str, object]

    def write(self, directory: Path) -> Path:
        """A run that promises what it does not keep."""
        return write(directory, self.trace, promises=(self.guarantee,), settings=self.settings)


def _all() -> dict[str, Violated]:
    found = {name: Violated(Guarantee(name.split(",")[0]), trace, {}) for name, trace in ANY_MESSAGES.items()}
    for name, (logs, _) in (*test_groups.EXPLAINED.items(), *test_views.EXPLAINED.items()):
        guarantee, _, how = name.partition(" ")
        found[f"{guarantee}, {how}"] = Violated(Guarantee(guarantee), timed(logs), {})
    for name, (trace, _) in test_significant.EXPLAINED.items():
        found[f"significant, {name}"] = Violated(Guarantee.SIGNIFICANT, trace, test_significant.ALL_CONFLICT)
    for name, (trace, _) in test_serialisable.EXPLAINED.items():
        found[f"serialisable, {name}"] = Violated(Guarantee.SERIALISABLE, trace, {})
    for level in (Guarantee.READ_COMMITTED, Guarantee.READ_ATOMIC, Guarantee.TRANSACTIONAL_CAUSAL):
        found[f"{level}, dirty"] = Violated(level, test_serialisable.DIRTY, {})
    return found


VIOLATED = _all()

ONE_EACH = {violated.guarantee: violated for violated in reversed(VIOLATED.values())}
"""Of each guarantee the first."""
