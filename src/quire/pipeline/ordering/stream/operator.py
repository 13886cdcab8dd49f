"""Processes one micro-batch of a streaming order: take it in, advance the watermark, write what leaves, commit.

Nothing here depends on Structured Streaming. The caller supplies a way to read the micro-batch's partitions and a task runner,
so the same steps run on Spark and in a test that takes a millisecond.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any
from uuid import uuid4

import msgspec

from quire.model.errors import BadInput
from quire.pipeline.ordering.reading import Format
from quire.pipeline.ordering.stream.causal import CausallyReleased, CausalTask, release_causally
from quire.pipeline.ordering.stream.following import FollowingReleased, FollowingTask, release_following
from quire.pipeline.ordering.stream.frontier import NEVER_HEARD, Key, fence, frontier
from quire.pipeline.ordering.stream.intake import CLOCK_MAX, Intake, IntakeTask, Open, Waiting, open_waiting
from quire.pipeline.ordering.stream.ledger import REJECTED, Ledger, State, Written, first_state
from quire.pipeline.ordering.stream.options import CausalOrder, OrderOptions, TotalOrder
from quire.pipeline.ordering.stream.release import (
    ROWS_PER_PIECE,
    Released,
    ReleaseTask,
    pieces,
    release,
    set_apart,
    split,
)
from quire.pipeline.ordering.stream.significant import SignificantlyReleased, SignificantTask, release_significant
from quire.pipeline.ordering.stream.writing import RejectTask, name_of, write_rejected
from quire.pipeline.tasks import Job, Runner

_ORPHAN = "an event that happened before it never arrived"

Task = ReleaseTask | SignificantTask | CausalTask | FollowingTask | RejectTask
TakeIn = Callable[[IntakeTask], Sequence[Intake]]
"""Reads every partition of the micro-batch."""


def _perform(task: Task) -> Released | SignificantlyReleased | CausallyReleased | FollowingReleased | int:
    match task:
        case ReleaseTask():
            return release(task)
        case SignificantTask():
            return release_significant(task)
        case CausalTask():
            return release_causally(task)
        case FollowingTask():
            return release_following(task)
        case RejectTask():
            return write_rejected(task)


RELEASE = Job(
    Task,
    _perform,
    {
        ReleaseTask: Released,
        SignificantTask: SignificantlyReleased,
        CausalTask: CausallyReleased,
        FollowingTask: FollowingReleased,
        RejectTask: int,
    },
)


class Operator:
    """Orders micro-batches exactly once, even if one is repeated after a crash."""

    def __init__(self, options: OrderOptions, ledger: Ledger, form: Format, *, rows_per_piece: int = ROWS_PER_PIECE) -> None:
        self._options = options
        self._ledger = ledger
        self._format = form
        self._rows_per_piece = rows_per_piece
        # Not persisted: only time while the query runs counts as silence of a source.
        self._heard_at: dict[int, float] = {}

    def step(self, batch: int, take_in: TakeIn, run: Runner, now_s: float | None = None) -> State:
        """Process this micro-batch, unless it was processed before, and return the resulting state."""
        ledger = self._ledger
        before = ledger.last() or first_state(self._options, self._format)
        if before.batch > batch:
            raise BadInput(
                f"{ledger.out} is at micro-batch {before.batch}, but Spark is at {batch}: its checkpoint was changed"
            )
        state = before
        if before.batch < batch:
            state = self._advance(before, batch, take_in, run, time.monotonic() if now_s is None else now_s)
            ledger.commit(state)
        ledger.publish(state)
        ledger.tidy(state)
        return state

    def close(self, run: Runner) -> State:
        """Release all waiting events, because no source will send any more; whatever still arrives is late.

        In a causal order by vectors, events that wait for one that never arrived are rejected. Where events name what they
        follow, names of events that never arrived are ignored and counted, as in a batch.
        """
        ledger = self._ledger
        before = ledger.last() or first_state(self._options, self._format)
        ledger.publish(before)
        state = msgspec.structs.replace(before, options=self._options)
        ended = (CLOCK_MAX,) * len(before.marks)
        if isinstance(self._options, TotalOrder):
            state = msgspec.structs.replace(state, marks=ended, open=(None,) * len(ended))
            state, rejected = self._release(state, self._options, set(), run)
        elif not isinstance(self._options, CausalOrder):
            state, rejected = self._release_following(state, run, complete=True)
        else:
            directory = str(ledger.waiting)
            rejected = tuple(set_apart(directory, open_waiting(directory, part), _ORPHAN) for part in state.waiting)
            state = msgspec.structs.replace(state, marks=ended, waiting=())
        state = self._reject(state, rejected, run)
        ledger.commit(state)
        ledger.publish(state)
        ledger.tidy(state)
        return state

    def _advance(self, before: State, batch: int, take_in: TakeIn, run: Runner, now_s: float) -> State:
        task = IntakeTask(self._options, str(self._ledger.waiting), before.marks, before.open)
        intakes = take_in(task)
        arrived = tuple(part for intake in intakes for part in intake.waiting)
        state = msgspec.structs.replace(
            before, batch=batch, options=self._options, waiting=before.waiting + arrived, written=()
        )  # fmt: skip
        rejected = tuple(part for intake in intakes for part in intake.rejected)
        if isinstance(self._options, TotalOrder):
            state, more = self._release(_listened(state, intakes), self._options, self._silent(intakes, now_s), run)
        elif isinstance(self._options, CausalOrder):
            state, more = self._release_causally(state, run)
        else:
            state, more = self._release_following(state, run, complete=False)
        return self._reject(state, rejected + more, run)

    def _silent(self, intakes: Sequence[Intake], now_s: float) -> set[int]:
        """The sources that have been silent for longer than the caller wants to wait."""
        assert isinstance(self._options, TotalOrder)
        sources = range(len(self._options.sources))
        for source in sources:
            self._heard_at.setdefault(source, now_s)
        for intake in intakes:
            self._heard_at.update(dict.fromkeys(intake.heard, now_s))
        idle = self._options.idle
        return set() if idle == "wait" else {source for source in sources if now_s - self._heard_at[source] >= idle}

    def _release(
        self, state: State, options: TotalOrder, silent: set[int], run: Runner
    ) -> tuple[State, tuple[Waiting, ...]]:  # fmt: skip
        together = options.transaction_position is not None
        limit = frontier(state.marks, state.open, silent, together=together)
        directory = str(self._ledger.waiting)
        leaving, staying = split(directory, state.waiting, limit)
        if silent:
            marks, running = fence(state.marks, state.open, limit or _above(state, together), silent, together=together)
            state = msgspec.structs.replace(state, marks=marks, open=running)
        if options.omit_superseded is not None:
            return self._release_significant(state, options, leaving, limit, run)
        position, tasks, written = state.left, [], list(state.written)
        for number, piece in enumerate(pieces(directory, leaving, self._rows_per_piece), start=len(written)):
            file = self._file(state.batch, number)
            written.append(file)
            tasks.append(
                ReleaseTask(directory, tuple(piece), options.clock, position, str(self._ledger.out / file.staged), self._format)
            )
            position += sum(part.rows - part.start for part in piece)
        results = _run_in_place(run, tasks)
        state = msgspec.structs.replace(
            state, left=state.left + sum(result.rows for result in results), waiting=tuple(staying), written=tuple(written)
        )  # fmt: skip
        return state, tuple(part for result in results for part in result.rejected)

    def _release_significant(
        self, state: State, options: TotalOrder, final: Sequence[Waiting], limit: Key | None, run: Runner
    ) -> tuple[State, tuple[Waiting, ...]]:  # fmt: skip
        """Release the final events without superseded writes, up to the first write that is still undecided."""
        if not final:
            return state, ()
        assert options.omit_superseded is not None
        assert options.within is not None
        directory, file = str(self._ledger.waiting), self._file(state.batch, len(state.written))
        task = SignificantTask(
            directory, tuple(final), options.clock, options.omit_superseded, options.within,
            CLOCK_MAX + 1 if limit is None else limit[0], state.left, str(self._ledger.out / file.staged), self._format,
        )  # fmt: skip
        result: SignificantlyReleased = run([task])[0]
        _, staying = split(directory, state.waiting, result.stop or limit)
        state = msgspec.structs.replace(
            state, left=state.left + result.rows, omitted=state.omitted + result.omitted, waiting=tuple(staying),
            written=(*state.written, file) if result.rows else state.written,
        )  # fmt: skip
        return state, result.rejected

    def _release_causally(self, state: State, run: Runner) -> tuple[State, tuple[Waiting, ...]]:
        if not state.waiting:
            return state, ()
        file = self._file(state.batch, 0)
        staged = str(self._ledger.out / file.staged)
        sources = tuple(map(str, self._options.sources))
        task = CausalTask(str(self._ledger.waiting), state.waiting, sources, state.marks, state.left, staged, self._format)
        result: CausallyReleased = run([task])[0]
        state = msgspec.structs.replace(
            state, marks=result.left, left=state.left + result.rows, waiting=result.waiting,
            written=(file,) if result.rows else (),
        )  # fmt: skip
        return state, result.rejected

    def _release_following(self, state: State, run: Runner, *, complete: bool) -> tuple[State, tuple[Waiting, ...]]:
        if not state.waiting:
            return state, ()
        file = self._file(state.batch, len(state.written))
        directory, staged = str(self._ledger.waiting), str(self._ledger.out / file.staged)
        task = FollowingTask(directory, state.waiting, state.names, state.secret, state.left, staged, self._format, complete)
        result: FollowingReleased = run([task])[0]
        state = msgspec.structs.replace(
            state, left=state.left + result.rows, names=result.names, missing=state.missing + result.missing,
            waiting=result.waiting, written=(*state.written, file) if result.rows else state.written,
        )  # fmt: skip
        return state, result.rejected

    def _reject(self, state: State, rejected: tuple[Waiting, ...], run: Runner) -> State:
        if not rejected:
            return state
        file = self._file(state.batch, len(state.written), REJECTED + "/")
        task = RejectTask(str(self._ledger.waiting), rejected, str(self._ledger.out / file.staged), self._format)
        count: int = run([task])[0]
        return msgspec.structs.replace(state, rejected=state.rejected + count, written=(*state.written, file))

    def _file(self, batch: int, piece: int, directory: str = "") -> Written:
        # A killed process may have left tasks that still write, so every attempt uses a new name.
        final = name_of(batch, piece, self._format)
        return Written(f"{directory}.{final}.{uuid4().hex}", f"{directory}{final}")


def _listened(state: State, intakes: Sequence[Intake]) -> State:
    """The state with each source's mark advanced by this micro-batch."""
    marks, running = list(state.marks), list[Open | None](state.open)
    for intake in intakes:
        for source, mark in enumerate(intake.marks):
            if mark is not None:
                marks[source] = max(marks[source], mark)
                running[source] = intake.open[source]
    return msgspec.structs.replace(state, marks=tuple(marks), open=tuple(running))


def _above(state: State, together: bool) -> Key:
    """A key above everything heard so far, for when no source is waited for."""
    if together:
        return max((running.first for running in state.open if running is not None), default=NEVER_HEARD) + 1, 0
    return max(state.marks) + 1, 0


def _run_in_place(run: Runner, tasks: Sequence[ReleaseTask]) -> list[Any]:
    """Run tasks whose positions assume that every event is kept. If a task rejects an event, those after it run again."""
    results = run(tasks)
    right, position = [], tasks[0].position if tasks else 0
    for task, result in zip(tasks, results, strict=True):
        right.append(msgspec.structs.replace(task, position=position))
        position += result.rows
    wrong = [index for index, (task, fixed) in enumerate(zip(tasks, right, strict=True)) if task != fixed]
    for index, result in zip(wrong, run([right[index] for index in wrong]), strict=True):
        results[index] = result
    return results
