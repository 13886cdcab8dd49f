"""Input that waits at a member."""

from __future__ import annotations

from quire.simulation.inbox import Inbox


def drained(inbox: Inbox[str, str]) -> str:
    taken = ""
    while inbox:
        taken += inbox.take_local() if inbox.next_is_local() else inbox.take_remote()
    return taken


def filled(local: str, remote: str, inbox: Inbox[str, str] | None = None) -> Inbox[str, str]:
    inbox = inbox or Inbox()
    inbox.local.extend(local)
    inbox.remote.extend(remote)
    return inbox


def test_local_input_goes_first_and_then_alternates_while_remote_input_waits() -> None:
    assert drained(filled("abc", "123")) == "a1b2c3"


def test_remote_input_is_not_starved_by_any_number_of_local_submissions() -> None:
    taken = drained(filled("abcdefgh", "12"))
    assert taken == "a1b2cdefgh"


def test_all_local_input_is_taken_at_once_when_nothing_else_waits() -> None:
    assert drained(filled("abc", "")) == "abc"
    assert drained(filled("", "123")) == "123"


class HeadInsertion(Inbox[str, str]):
    """The planted fault: local input at the head of the queue, as the paper has it."""

    def put(self, item: str) -> None:
        self.local.appendleft(item)


def test_head_insertion_reverses_two_outstanding_local_submissions() -> None:
    faulty = HeadInsertion()
    faulty.put("a")
    faulty.put("b")
    assert drained(filled("", "1", faulty)) == "b1a"
    assert drained(filled("ab", "1")) == "a1b"
