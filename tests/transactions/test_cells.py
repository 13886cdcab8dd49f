"""One key at one replica, call by call."""

from __future__ import annotations

from quire.protocols.transactions.cells import Cell, Found, TooLate
from quire.protocols.transactions.timestamps import UNWRITTEN, Timestamp, Version


def at(number: int) -> Timestamp:
    return Timestamp(number, 0)


def version(number: int, no: int = 1) -> Version:
    return Version(number, 0, no)


def test_a_transaction_may_write_what_it_has_read_itself() -> None:
    cell = Cell()
    assert cell.read(at(5)) == Found(UNWRITTEN, None)
    assert cell.prewrite(at(5), version(5), b"5") is None
    assert cell.prewrite(at(4), version(4), b"4") == TooLate(at(5))


def test_a_copy_of_an_earlier_write_that_comes_late_does_not_replace_a_later_one() -> None:
    cell = Cell()
    cell.prewrite(at(5), version(5, 2), b"second")
    cell.prewrite(at(5), version(5, 1), b"first")
    assert cell.read(at(5)) == Found(version(5, 2), b"second")


def test_a_reader_waits_for_an_older_prewrite_and_for_no_younger_one() -> None:
    cell = Cell()
    cell.prewrite(at(3), version(3), b"3")
    assert cell.read(at(2)) == Found(UNWRITTEN, None)
    assert cell.read(at(5)) is None
    cell.end(at(3), commit=True)
    assert cell.read(at(5)) == Found(version(3), b"3")


def test_a_prewrite_below_the_value_can_never_become_it_and_holds_nobody_up() -> None:
    cell = Cell()
    cell.prewrite(at(3), version(3), b"3")
    cell.install(version(4), b"4")
    assert cell.read(at(5)) == Found(version(4), b"4")
    assert cell.end(at(3), commit=True) is None
    assert cell.value == b"4"


def test_a_read_below_the_value_comes_too_late() -> None:
    cell = Cell()
    cell.install(version(4), b"4")
    assert cell.read(at(3)) == TooLate(at(4))
