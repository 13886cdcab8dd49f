"""The tasks that compute vector times for one segment of a trace.

Three kinds of tasks read a segment. A survey lists the messages that it delivers but that were sent in other segments. A
summary follows the vectors through it without knowing its start state. With the exact start state, the vector times come out
exact.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import numpy as np

from quire.model.errors import BadInput
from quire.pipeline.causality import kernel
from quire.pipeline.causality.cycles import CycleStep, shortest_cycle
from quire.pipeline.layout import RowGroup, World
from quire.pipeline.merge import merge_by_lamport, rebuild
from quire.pipeline.numbering import NUMBER_END, gap, number_sends
from quire.pipeline.slices import Events, read_events

BLOCK_STEPS = 65_536


class Piece(msgspec.Struct):
    """The events of a segment: those with `low` <= logical time < `high`, or the whole trace."""

    world: World
    groups: tuple[RowGroup, ...]
    low: int | None
    high: int | None
    whole: bool = False
    rebuild: bool = False
    """Whether the order must be rebuilt, because the recorded logical times are missing or wrong."""


class Start(msgspec.Struct):
    """The state when a segment begins: how many messages each process has sent, each process's vector, and the vector times of
    the older messages that the segment delivers."""

    base: np.ndarray
    known: np.ndarray
    origin: np.ndarray
    seq: np.ndarray
    vector: np.ndarray


class SurveyTask(msgspec.Struct, tag="survey"):
    piece: Piece


class Survey(msgspec.Struct, kw_only=True):
    """A segment's messages. `fit` is false if logical times are missing or wrong, so that the trace cannot be cut by them."""

    fit: bool = True
    base: np.ndarray
    new: np.ndarray
    older: np.ndarray
    """The messages that are delivered but not sent in it, as (origin, number)."""
    rebuilt: bool = False
    cycle: list[CycleStep] = []


class SummaryTask(msgspec.Struct, tag="summary"):
    piece: Piece
    older: np.ndarray
    wanted: np.ndarray
    """The messages sent in this segment that later segments deliver, as (origin, number)."""


class Summary(msgspec.Struct):
    """The vectors of each process at the segment's end and of each wanted message, as far as the segment alone can tell."""

    known: np.ndarray
    heard: np.ndarray
    vector: np.ndarray
    vector_heard: np.ndarray


class Block(msgspec.Struct):
    """Some consecutive steps: the process, the index into `Events` and the vector time of each. Implied deliveries take a step,
    but are no events."""

    process: np.ndarray
    event: np.ndarray
    clocks: np.ndarray


def survey(task: SurveyTask) -> Survey:
    piece = task.piece
    events = _read(piece)
    members = piece.world.members
    base = np.full(members, 0 if piece.whole else -1, np.int64)
    new, process, expected, found = number_sends(events.start, events.kind, events.origin, events.seq, base)
    unfit = Survey(fit=False, base=base, new=new, older=np.empty((0, 2), np.int64))
    if process >= 0:
        if not piece.whole:
            return unfit
        raise gap(process, expected, found)
    if len(events.pos) and int(events.pos.max()) >= NUMBER_END:
        raise BadInput(f"a process has more than {NUMBER_END} events, which is more than vector times can count")
    if events.ordered and not piece.rebuild:
        turn = merge_by_lamport(events.start, events.lamport)
        older, true_order = kernel.older_deliveries(turn, events.start, events.kind, events.origin, events.seq, base, new)
        if true_order:
            return Survey(base=base, new=new, older=np.unique(older, axis=0))
    if not piece.whole:
        return unfit
    _, exists, stuck = rebuild(events.start, events.kind, events.origin, events.seq, new)
    cycle = [] if exists else shortest_cycle(events, stuck)
    return Survey(base=base, new=new, older=np.empty((0, 2), np.int64), rebuilt=True, cycle=cycle)


def summarise(task: SummaryTask) -> Summary:
    members = task.piece.world.members
    older = task.older
    heard = np.zeros((len(older), members), np.int32)
    heard[np.arange(len(older)), older[:, 0]] = older[:, 1] + 1
    walk = _Walk(task.piece, None, older, np.zeros((len(older), members), np.int32), heard)
    walk.advance(walk.steps)
    rows = walk.rows(task.wanted)
    return Summary(walk.state.known, walk.state.heard, walk.messages.vector[rows], walk.messages.heard[rows])


def vector_times(piece: Piece, start: Start | None) -> tuple[Events, Iterator[Block]]:
    """The segment's events, and their exact vector times in an order that puts causes first."""
    members = piece.world.members
    if start is None:
        walk = _Walk(piece, None, np.empty((0, 2), np.int64), np.empty((0, members), np.int32), np.empty((0, 0), np.int32))
    else:
        older = np.column_stack((start.origin, start.seq))
        walk = _Walk(piece, start, older, start.vector, np.empty((len(older), 0), np.int32))
    return walk.events, walk.blocks()


class _Walk:
    """Runs the kernel over one segment, from its start state or from an empty one."""

    def __init__(
        self, piece: Piece, start: Start | None, older: np.ndarray, older_vector: np.ndarray, older_heard: np.ndarray
    ) -> None:  # fmt: skip
        members = piece.world.members
        events = self.events = _read(piece)
        self.base = np.full(members, 0 if piece.whole else -1, np.int64) if start is None else start.base.copy()
        self.new, *_ = number_sends(events.start, events.kind, events.origin, events.seq, self.base)
        if piece.rebuild:
            self.turn, *_ = rebuild(events.start, events.kind, events.origin, events.seq, self.new)
            events.lamport = kernel.logical_times(
                self.turn, events.start, events.kind, events.origin, events.seq, self.new, np.empty(0, np.bool_)
            )
        else:
            self.turn = merge_by_lamport(events.start, events.lamport)
        self.steps = len(self.turn)
        old = np.bincount(older[:, 0], minlength=members).astype(np.int64)
        first_row = np.concatenate(([0], np.cumsum(old + self.new))).astype(np.int64)
        total, width = int(first_row[-1]), older_heard.shape[1]
        at = np.repeat(first_row[:-1], old) + np.arange(len(older))
        at -= np.repeat(np.cumsum(old) - old, old)
        seq = np.zeros(total, np.int64)
        vector = np.zeros((total, members), np.int32)
        heard = np.zeros((total, width), np.int32)
        seq[at], vector[at], heard[at] = older[:, 1], older_vector, older_heard
        known = np.zeros((members, members), np.int32) if start is None else start.known.astype(np.int32)
        self.logs = kernel.Logs(events.start, events.kind, events.origin, events.seq, events.pos)
        self.messages = kernel.Messages(first_row, old, self.new, self.base, seq, vector, heard)
        cursor, sent = events.start[:members].copy(), np.zeros(members, np.int64)
        self.state = kernel.State(cursor, sent, known, np.zeros((members, width), np.int32))
        self.done = 0

    def advance(self, steps: int, *, keep: bool = False) -> Block:
        members = len(self.base)
        last = min(self.done + steps, self.steps)
        room = last - self.done if keep else 0
        clocks, indices = np.empty((room, members), np.int32), np.empty(room, np.int64)
        kernel.advance(self.done, last, self.turn, self.logs, self.messages, self.state, clocks, indices)
        block = Block(self.turn[self.done : last], indices, clocks)
        self.done = last
        return block

    def blocks(self) -> Iterator[Block]:
        while self.done < self.steps:
            block = self.advance(BLOCK_STEPS, keep=True)
            real = ~self.events.implied[block.event]
            yield block if real.all() else Block(block.process[real], block.event[real], block.clocks[real])

    def rows(self, messages: np.ndarray) -> np.ndarray:
        """The rows of these messages, which are sent in the segment."""
        origin, seq = messages[:, 0], messages[:, 1]
        messages_of = self.messages
        rows: np.ndarray = messages_of.first_row[origin] + messages_of.old[origin] + seq - messages_of.base[origin]
        return rows


def _read(piece: Piece) -> Events:
    return read_events(piece.world, piece.groups, piece.low, piece.high, dests=False, every=True, numbered=True)
