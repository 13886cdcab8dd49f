"""Significant order of a run that goes on: what is forgotten is older than everything that is still under way.

Two requests that begin in a wrong order, and all by which one precedes the other, happen between the sending of the first and
the last delivery of either. So nothing is missed as long as all events since the oldest message that is not delivered are kept.
No more than AT_MOST events are: messages that are on their way for longer are not compared with what came before.
"""

from __future__ import annotations

import numpy as np

from quire.pipeline.auditing.calls import Conflicts
from quire.pipeline.auditing.checks.significant import because, judge_calls
from quire.pipeline.auditing.followed_events import OBJECT, Logs, Worded, explained, labelled
from quire.trace.kinds import DELIVER, SEND

AT_MOST = 100_000


class FollowedCalls:
    def __init__(self, conflicts: Conflicts, processes: int) -> None:
        self.beyond = ""
        """What could not be judged, as a sentence; empty if everything was."""
        self._conflicts = conflicts
        self._everybody = np.ones(processes, np.bool_)

    def judge(self, logs: Logs, *, whole: bool) -> tuple[int, str]:
        rows, first = labelled(logs if whole else explained(logs))
        found = judge_calls(rows, self._conflicts, self._everybody, first)
        return found.violations, because(found) if found.violations else ""

    def forget(self, logs: Logs, before: int) -> list[list[Worded]]:
        delivered = {(event.origin, event.seq) for log in logs for event in log if event.kind == DELIVER}
        under_way = [
            event.lamport
            for log in logs
            for event in log
            if event.kind == SEND and event.words[OBJECT] is not None and (event.origin, event.seq) not in delivered
        ]
        times = sorted(event.lamport for log in logs for event in log)
        least = times[-AT_MOST] if len(times) > AT_MOST else times[0]
        if under_way and min(under_way) < least:
            self.beyond = f"calls that were on their way for more than {AT_MOST:,} events are not compared with earlier ones"
        since = max(least, min([before, *under_way]))
        return [[event for event in log if event.lamport >= since] for log in logs]
