"""Surveys the parts of a run before its trace is written: which processes took part, how each ended, and what was sent.

A part may end early: its process was killed, is still running, or left before its group was closed. Then others may have
delivered messages whose sends are not recorded. Such deliveries are left out of a run that promises integrity, because they
cannot be distinguished from messages that nobody sent. If the numbering of a group's messages depends on them, the messages are
taken to have been sent.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from quire.model.errors import BadInput
from quire.model.orders import Guarantee
from quire.trace.kinds import DELIVER, SEND, VIEW
from quire.trace.log import Names
from quire.trace.parts.description import PartEnd
from quire.trace.parts.reader import Part, Piece
from quire.trace.parts.rewriting import Counting, Rewriting
from quire.trace.parts.runs import RunParts
from quire.trace.parts.unrecorded import deliveries_of, unrecorded_sends
from quire.trace.records import COUNT, FIRST, KIND, LAMPORT, ORIGIN, RECORD_FIELDS, TIME_NS
from quire.trace.tables import Integers
from quire.trace.views import VIEW_BITS

RUNNING_OR_CRASHED = "it crashed, or is still running, or the copy of its part is truncated"
NOT_THERE = "its part is missing"
FORGOT = "an earlier process of it was lost, with what it was sent and had not run"

_NOTHING: Integers = np.empty((0, RECORD_FIELDS), np.int64)


class PartSurvey:
    """One part: the ranges of messages that it sent, each with its first number, its length and its time; and how it ended."""

    def __init__(self, part: Part) -> None:
        self.part = part
        self.end: PartEnd | None = None
        self.groups: dict[str, set[int]] = {}
        """The destinations of each group's messages."""
        self.mentioned: set[int] = {part.process}
        """The processes that its records mention."""
        self.lamport: int | None = None
        """The logical time of its first event."""
        self.last_lamport = self.last_ns = 0
        """The logical and the recorded time of its last event."""
        sends, names = [_NOTHING], Names()
        for piece in part.read():
            if isinstance(piece, PartEnd):
                self.end = piece
                continue
            names, kind = piece.names, piece.records[:, KIND]
            if self.lamport is None and len(piece.records):
                self.lamport = int(piece.records[0, LAMPORT])
            if len(piece.records):
                self.last_lamport = int((piece.records[:, LAMPORT] + piece.records[:, COUNT]).max()) - 1
                self.last_ns = int(piece.records[-1, TIME_NS])
            sends.append(piece.records[kind == SEND])
            self.mentioned.update(np.unique(piece.records[np.isin(kind, (SEND, DELIVER, VIEW)), ORIGIN]).tolist())
        for address in names.addresses:
            self.mentioned.update(address.dests or ())
            if address.group is not None:
                self.groups.setdefault(address.group, set()).update(address.dests or ())
        self.names = names
        self.sends = np.concatenate(sends)

    @property
    def why_early(self) -> str:
        """Why the part ends before its group did; empty if it does not."""
        return RUNNING_OR_CRASHED if self.end is None else self.end.failure


class RunSurvey:
    """All parts of a run. `without`: processes that need not have a part."""

    def __init__(self, run: RunParts, without: Iterable[int] = ()) -> None:
        """Raises BadInput if parts are missing."""
        self.identity = run.identity
        self.parts = [PartSurvey(part) for part in run.parts]
        recorded = {survey.part.process for survey in self.parts}
        if len(recorded) < len(self.parts) and not (self.identity.views or self.identity.restarts):
            raise BadInput("two processes have the same number; give each client a number of its own")
        missing = sorted(set(range(self.identity.members)) - recorded - set(self.identity.relays) - set(without))
        if missing:
            names = ", ".join(f"p{process:05d}-*" for process in missing)
            one = f"--without {','.join(map(str, missing))}"
            raise BadInput(f"there is no part of process {', '.join(map(str, missing))}: copy {names} there, or say {one}")
        everybody = set(range(self.identity.members)).union(*(survey.mentioned for survey in self.parts))
        self.numbers: Mapping[int, int] = self._number(everybody)
        """Each process's number in the run."""
        self._sends = {
            process: np.concatenate([each.sends for each in self.parts if each.part.process == process]) for process in recorded
        }
        unrecorded = sorted(everybody - recorded - set(self.identity.relays))
        # If a process was restarted, only its last part may reach the end of the run.
        last = self._last = {survey.part.process: survey for survey in self.parts}
        self.ended_early: Mapping[int, str] = {
            **{self.numbers[process]: NOT_THERE for process in unrecorded},
            **{self.numbers[process]: each.why_early for process, each in last.items() if each.why_early},
            **{self.numbers[process]: FORGOT for process in self._forgetful()},
        }
        """The processes whose records may be incomplete, and why; by their numbers in the run."""
        self._uncertain = [process for process in sorted(everybody) if self.numbers[process] in self.ended_early]
        self.left_out = 0
        """How many deliveries were left out so far."""
        self._unrecorded = self._find_unrecorded() if Guarantee.MEMBERSHIPS in self.identity.promises else {}
        for process, piece in self._unrecorded.items():
            self._sends[process] = np.concatenate((self._sends[process], piece.records))
        self._counting = Counting(self._sends) if self.identity.views or self._numbers_anew() else None
        began = [survey.lamport for survey in self.parts if survey.lamport is not None]
        self._lamport = min(began, default=1) - 1 if self.identity.views else 0

    @property
    def members(self) -> int:
        return len(self.numbers)

    def groups(self) -> dict[str, tuple[int, ...]]:
        """The groups by name, each with all processes that were members at some time."""
        groups = {name: set(members) for name, members in self.identity.groups.items()}
        if self.identity.open:
            for survey in self.parts:
                for name, members in survey.groups.items():
                    groups.setdefault(name, set()).update(self.numbers[member] for member in members)
        return {name: tuple(sorted(members)) for name, members in sorted(groups.items())}

    def names(self) -> dict[str, str]:
        """The names of processes that have one, by their numbers in the run."""
        named = {self.numbers[each.part.process]: each.part.description.name for each in self.parts}
        return {str(number): name for number, name in sorted(named.items()) if name not in ("", str(number))}

    def sent(self, number: int) -> tuple[Integers, Integers]:
        """The first number of each range of messages that a process sent, and when; all by their numbers in the run."""
        process = next(process for process, own in self.numbers.items() if own == number)
        sends = self._sends.get(process, _NOTHING)
        firsts = sends[:, FIRST] if self._counting is None else self._counting.count(process, sends[:, FIRST])
        return firsts, sends[:, TIME_NS]

    def pieces(self, survey: PartSurvey) -> Iterable[Piece]:
        """The records of a part in their final form: with the run's numbers, and without deliveries that cannot be judged."""
        rewrite = None
        if self.identity.open or self._counting is not None:
            rewrite = Rewriting(survey.part.process, self.numbers, self._counting, self._lamport)
        uncertain = self._uncertain if Guarantee.INTEGRITY in self.identity.promises else []
        for piece in survey.part.read():
            if isinstance(piece, Piece):
                if uncertain:
                    known = self._known(piece.records, uncertain)
                    self.left_out += int(piece.records[~known, COUNT].sum())
                    piece = Piece(piece.names, piece.records[known])
                yield piece if rewrite is None else rewrite(piece)
        if survey is self._last[survey.part.process] and (more := self._unrecorded.get(survey.part.process)) is not None:
            yield more if rewrite is None else rewrite(more)

    def _forgetful(self) -> list[int]:
        """The processes that came back and had forgotten what the ones before them were sent."""
        counted = Counter(survey.part.process for survey in self.parts)
        return [process for process, parts in counted.items() if parts > 1] if self._numbers_anew() else []

    def _numbers_anew(self) -> bool:
        """Whether processes that came back number their messages from where the ones before them could not be."""
        return self.identity.restarts and any((sends[:, FIRST] >> VIEW_BITS).any() for sends in self._sends.values())

    def notes(self) -> Sequence[str]:
        """Notes for readers of the run, in sentences."""
        shown = {number: process for process, number in self.numbers.items()}
        notes = [
            f"the part of process {number}{f' (client {shown[number]})' if shown[number] != number else ''} "
            f"does not reach to the end: {why}"
            for number, why in sorted(self.ended_early.items())
        ]
        if self.left_out:
            notes.append(f"{self.left_out} deliveries of messages that such a process sent later are left out")
        return notes

    def _find_unrecorded(self) -> dict[int, Piece]:
        """The unrecorded sends of processes that ended early."""
        origins = [process for process in self._uncertain if process in self._last]
        if not origins:
            return {}
        pieces = (piece for each in self.parts for piece in each.part.read() if isinstance(piece, Piece))
        return {
            process: unrecorded_sends(
                process, self._sends[process], delivered, (end := self._last[process]).names, end.last_lamport, end.last_ns
            )
            for process, delivered in deliveries_of(origins, pieces).items()
        }

    def _number(self, everybody: set[int]) -> dict[int, int]:
        """Number the processes: members first, then clients, whose own numbers are arbitrary, in order of appearance."""
        if not self.identity.open:
            return {process: process for process in sorted(everybody)}
        came = {survey.part.process: survey.part.description.incarnation for survey in self.parts}
        last = max(came.values(), default=0) + 1
        members = self.identity.members
        order = sorted(everybody, key=lambda process: (process >= members, came.get(process, last), process))
        fixed = {process: process for process in range(members)}
        return fixed | {process: number for number, process in enumerate(order) if process >= members}

    def _known(self, records: Integers, uncertain: Sequence[int]) -> npt.NDArray[np.bool_]:
        """For each record, whether the messages it delivers are known to have been sent."""
        known = np.ones(len(records), np.bool_)
        delivered = records[:, KIND] == DELIVER
        for origin in uncertain:
            of_origin = np.flatnonzero(delivered & (records[:, ORIGIN] == origin))
            sends = self._sends.get(origin, _NOTHING)
            order = np.argsort(sends[:, FIRST])
            firsts, ends = sends[order, FIRST], (sends[:, FIRST] + sends[:, COUNT])[order]
            run = np.searchsorted(firsts, records[of_origin, FIRST], side="right") - 1
            covered = run >= 0
            covered[covered] = (records[of_origin, FIRST] + records[of_origin, COUNT])[covered] <= ends[run[covered]]
            known[of_origin] = covered
        return known
