"""What an application submitted, in the batches in which it is sent."""

from __future__ import annotations

from quire.model.payloads import Messages
from quire.views.operations import Operations


def submitted(*sizes: int) -> Operations:
    operations = Operations("s")
    operations.submit(Messages.of([bytes(size) for size in sizes]))
    operations.may_be_sent()
    return operations


def test_a_batch_has_so_many_messages_and_bytes_at_most_but_one_in_any_case() -> None:
    operations = submitted(10, 10, 10, 500, 10)
    for first, sizes in ((1, [10, 10]), (3, [10]), (4, [500]), (5, [10])):
        number, batch = operations.next_batch(2, 100)
        assert (number, batch.lengths) == (first, sizes)
        operations.sent(len(batch.payloads))
    assert operations.next_batch(2, 100) == (6, Messages.of([]))


def test_what_is_not_executed_is_sent_again_in_the_next_view() -> None:
    operations = submitted(1, 2, 3, 4)
    operations.sent(4)
    operations.settle(2)
    operations.release(1)
    operations.send_again()
    number, batch = operations.next_batch(10, 100)
    assert (number, batch.lengths) == (3, [3, 4])


def test_what_others_know_to_be_executed_is_not_sent() -> None:
    operations = submitted(1, 2, 3)
    operations.settle(2)
    number, batch = operations.next_batch(10, 100)
    assert (number, batch.lengths) == (3, [3])


def test_what_was_submitted_together_leaves_as_it_came_and_what_came_bit_by_bit_leaves_together() -> None:
    operations = submitted(1, 2, 3)
    _, whole = operations.next_batch(10, 100)
    for size in (4, 5):
        operations.submit(Messages.of([bytes(size)]))
    operations.may_be_sent()
    assert operations.next_batch(3, 100) == (1, whole)
    number, batch = operations.next_batch(10, 100)
    assert (number, batch.lengths, batch.size) == (1, [1, 2, 3, 4, 5], 15)


def test_a_session_whose_process_lost_its_memory_goes_on_after_what_others_know_of_it() -> None:
    operations = submitted(1)
    operations.settle(7)
    assert operations.submit(Messages.of([b"xx", b"yyy"])) == 8
    operations.may_be_sent()
    number, batch = operations.next_batch(10, 100)
    assert (number, batch.lengths) == (8, [2, 3])
    operations.release(8)
    assert operations.kept() == (b"yyy",)
