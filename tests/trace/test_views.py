"""What a process records of views and sessions comes out in the rows of the trace, through parts and files alike."""

from __future__ import annotations

import pytest

from quire.trace.log import Address, EventLog
from quire.trace.rows import spread
from quire.trace.tables import as_records
from quire.trace.views import (
    Operation,
    ViewEvent,
    ViewMember,
    members_word,
    operation_word,
    parse_members,
    parse_operation_word,
)

MEMBERS = (ViewMember(2, 1), ViewMember(0, 1_763_300_000_000_000_000))


def rows_of(log: EventLog) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = spread("test", log.process, 0, log.names, as_records(log.take())).to_pylist()
    return rows


def test_a_view_is_a_row_with_its_number_members_and_incarnations() -> None:
    log = EventLog(2)
    log.installed("board", 4, MEMBERS, 1, 10, 1000)

    (row,) = rows_of(log)

    assert (row["kind"], row["op"], row["group"]) == ("view", "install", "board")
    assert (row["process"], row["origin"], row["seq"], row["lamport"], row["time_ns"]) == (2, 2, 4, 10, 1000)
    assert (row["dests"], row["txn"]) == ([2, 0], "1")
    assert parse_members(str(row["object"])) == MEMBERS


def test_a_restarted_process_says_where_it_goes_on_and_how_much_it_kept() -> None:
    log = EventLog(2)
    log.happened(ViewEvent.CRASH, "board", 4, 1, 11, 1100)
    log.resumed("board", 4, 2, 17, 12, 1200)

    crash, resume = rows_of(log)

    assert (crash["op"], crash["seq"], crash["txn"]) == ("crash", 4, "1")
    assert (resume["op"], resume["seq"], resume["txn"], resume["object"]) == ("resume", 4, "2", "17")


@pytest.mark.parametrize("what", [each for each in ViewEvent if each not in (ViewEvent.INSTALL, ViewEvent.RESUME)])
def test_whatever_happens_to_a_member_is_a_row(what: ViewEvent) -> None:
    log = EventLog(0)
    log.happened(what, "board", 3, 1, 5, 50, others=(1, 2))

    (row,) = rows_of(log)

    assert (row["kind"], row["op"], row["origin"], row["seq"], row["dests"]) == ("view", what, 0, 3, [1, 2])


def test_a_run_of_messages_that_carry_consecutive_operations_has_one_word() -> None:
    log = EventLog(1)
    word = operation_word(Operation("alice", 8), 5)
    log.send(1, 5, 3, 1, 0, log.address(Address("board", (0, 1), txn=word)), 4)

    rows = rows_of(log)

    assert [operation_word(Operation("alice", 8 + step), 5 + step) for step in range(3)] == [word] * 3
    carried = parse_operation_word(word)
    assert carried is not None
    assert [(row["txn"], int(str(row["seq"])) + carried.number) for row in rows] == [(word, 8), (word, 9), (word, 10)]


@pytest.mark.parametrize("session", ["alice", "a-1", "", "7", "a b+3", "zwölf\n"])
@pytest.mark.parametrize(("number", "seq"), [(1, 0), (1, 1), (1, 9), (10**15, 0)])
def test_words_of_operations_are_read_as_they_were_written(session: str, number: int, seq: int) -> None:
    carried = parse_operation_word(operation_word(Operation(session, number), seq))

    assert carried is not None
    assert (carried.session, carried.number + seq) == (session, number)


def test_other_words_carry_no_operation() -> None:
    assert [parse_operation_word(word) for word in ("", "alice", "3.1", "+", "a+b", "alice+1 ")] == [None] * 6


def test_words_of_members_are_read_as_they_were_written() -> None:
    assert parse_members(members_word(MEMBERS)) == MEMBERS
    assert parse_members("") == ()
    with pytest.raises(ValueError, match="does not name the members"):
        parse_members("0.1 1,2")
