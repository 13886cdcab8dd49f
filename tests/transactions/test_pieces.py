"""A state that is read piece by piece while it goes on changing."""

from __future__ import annotations

import pytest

from quire.protocols.transactions import pieces
from quire.protocols.transactions.cells import Prewrite
from quire.protocols.transactions.durable import Durable, restored
from quire.protocols.transactions.pieces import START, PieceReader, Place
from quire.protocols.transactions.records import AnyRecord, Began, Piece, Record
from quire.protocols.transactions.timestamps import Timestamp, Version
from quire.protocols.transactions.votes import FIRST, Ballot, Decision

CLIENT = 7
LATER = Ballot(1, 0, 2)


def at(number: int) -> Timestamp:
    return Timestamp(number, CLIENT)


def writes(number: int, key: str = "k") -> Decision:
    return Decision(True, {key: (Version(number, CLIENT, 1), b"%d" % number)})


def holds(_key: str) -> bool:
    return True


def busy_state(keys: int = 20) -> Durable:
    """Something in every table."""
    state = Durable()
    for number in range(1, keys + 1):
        state.decide(at(number), writes(number, f"key-{number:03}"), holds)
    state.prewrite(at(30), "key-001", Prewrite(Version(30, CLIENT, 1), b"30"))
    state.promise(at(31), LATER)
    state.accept(at(32), FIRST, writes(32))
    state.use_ballot(at(33), LATER)
    state.has_read(at(40), 5)
    state.know(1, 3)
    state.give_up(2)
    state.close(at(5))
    return state


def put_together(read: list[Piece]) -> Durable:
    written: list[AnyRecord] = [*read, Began(0)]
    state = restored(written, holds)
    assert state is not None
    return state


@pytest.mark.parametrize("piece_bytes", [1, 300, pieces.PIECE_BYTES])
def test_the_pieces_of_a_state_are_all_of_it(piece_bytes: int) -> None:
    state = busy_state()
    read = list(PieceReader(state, piece_bytes))
    assert (len(read) == 1) is (piece_bytes == pieces.PIECE_BYTES)
    assert put_together(read) == state.without_read_timestamps()


def test_a_piece_may_be_asked_for_again() -> None:
    state = busy_state()
    reader = PieceReader(state, 300)
    first, second = reader.read(START)
    assert second is not None
    assert reader.read(second) == reader.read(second)
    assert reader.read(START)[0] == first


def test_another_reading_goes_on_where_one_has_ended() -> None:
    """A replica that is restarted while it tells another what it knows."""
    state = busy_state()
    read, place = list[Piece](), START
    following: Place | None = place
    while following is not None:
        piece, following = PieceReader(state, 300).read(following)
        read.append(piece)
    assert put_together(read) == state.without_read_timestamps()


def read_around_a_decision(state: Durable) -> Durable:
    """The transaction that was accepted when reading began is decided between any two pieces."""
    for when in range(10):
        copy = Durable(accepted=dict(state.accepted), decided=dict(state.decided), cells=dict(state.cells))
        read = []
        for number, piece in enumerate(PieceReader(copy, 1)):
            read.append(piece)
            if number == when:
                copy.decide(at(32), writes(32), holds)
        got = put_together(read)
        if at(32) not in got.accepted and at(32) not in got.decided:
            return got
    return got


def test_what_is_decided_meanwhile_is_met_before_or_afterwards(monkeypatch: pytest.MonkeyPatch) -> None:
    state = Durable(decided={at(1): writes(1)}, accepted={at(32): (FIRST, writes(32))})
    got = read_around_a_decision(state)
    assert at(32) in got.accepted or at(32) in got.decided
    # Were decisions read first, it could be missed in both tables.
    right = PieceReader._table
    swapped = {pieces._ACCEPTED: pieces._DECIDED, pieces._DECIDED: pieces._ACCEPTED}

    def wrong(self: PieceReader, table: int) -> object:
        return right(self, swapped.get(table, table))

    def as_read(self: PieceReader, tables: tuple[dict[Timestamp, object], ...], rest: object) -> Piece:
        cells, promised, decided, ballots, accepted = tables
        return make(self, (cells, promised, accepted, ballots, decided), rest)  # type: ignore[arg-type]

    make = PieceReader._piece
    monkeypatch.setattr(PieceReader, "_table", wrong)
    monkeypatch.setattr(PieceReader, "_piece", as_read)
    got = read_around_a_decision(state)
    assert at(32) not in got.accepted
    assert at(32) not in got.decided


def test_records_since_reading_began_complete_what_was_read() -> None:
    """However the state changes meanwhile: every piece is read at a time of its own, and all changes are written."""
    state = busy_state()
    state.changes = []
    read, since = list[AnyRecord](), list[Record]()
    for number, piece in enumerate(PieceReader(state, 300)):
        read.append(piece)
        state.prewrite(at(50 + number), "key-002", Prewrite(Version(50 + number, CLIENT, 1), b"new"))
        if number % 2:
            state.decide(at(50 + number), writes(50 + number, "key-002"), holds)
        state.promise(at(70 + number), LATER)
        if number == 3:
            state.decide(at(32), writes(32), holds)
            state.forget(at(4))
    since = state.take_changes()
    state.changes = None
    got = restored([*read, *since, Began(0)], holds)  # type: ignore[list-item]
    assert got == state.without_read_timestamps()
