"""How a group ends, word by word: what a member says to whom when, and when it may go."""

from __future__ import annotations

import pytest

from quire.live.network.closing import EMPTY, Closing
from quire.live.network.peers import Peer
from quire.live.network.topology import Topology
from quire.wire.frames import CLOSING, DONE, DRAINED, FrameError, Numbered, count_body

LEFT, RIGHT = 1, 2
WORDS = {CLOSING: "closing", DRAINED: "drained", DONE: "done"}


class Member:
    """Member 0 of three, and what it says. Where it `relays`, the others are neighbours of nobody else."""

    def __init__(self, *, relays: bool = False) -> None:
        self.peers = {member: Peer(member, "") for member in (LEFT, RIGHT)}
        topology = Topology((LEFT, RIGHT), {LEFT: (RIGHT,), RIGHT: (LEFT,)}, True) if relays else Topology.to_all(0, 3)
        self.closing = Closing(self.peers, topology, self._say)
        self._said: list[tuple[int, str]] = []

    def _say(self, peer: Peer, kind: int, body: bytes) -> None:
        assert body
        self._said.append((peer.member, WORDS[kind]))

    def said(self) -> list[tuple[int, str]]:
        """To whom what was said since the last call."""
        said, self._said = self._said, []
        return said

    def hear(self, source: int, kind: int, sent: int = 0) -> None:
        body = count_body(sent) if kind == CLOSING else EMPTY
        self.closing.hear(self.peers[source], Numbered(kind, 0, 0, 0, memoryview(body)))


def test_a_member_is_done_when_it_has_delivered_as_much_of_each_as_that_one_has_sent() -> None:
    member = Member()
    member.closing.close(5)
    assert member.said() == [(LEFT, "closing"), (RIGHT, "closing")]
    member.hear(LEFT, CLOSING, sent=2)
    member.hear(RIGHT, CLOSING, sent=1)
    member.closing.advance([5, 1, 1])
    assert member.said() == []
    member.closing.advance([5, 2, 1])
    assert member.said() == [(LEFT, "done"), (RIGHT, "done")]


def test_who_has_not_said_how_much_it_sent_is_waited_for_unless_it_is_away() -> None:
    member = Member()
    member.closing.close(0)
    member.hear(LEFT, CLOSING)
    member.closing.advance([0, 0, 0])
    assert member.said()[2:] == []
    member.peers[RIGHT].away = True
    member.closing.advance([0, 0, 0])
    assert member.said() == [(LEFT, "done"), (RIGHT, "done")]
    member.hear(LEFT, DONE)
    assert member.closing.is_over()


def test_a_member_goes_when_all_others_have_delivered_everything_too() -> None:
    member = Member()
    member.closing.close(0)
    for peer in (LEFT, RIGHT):
        member.hear(peer, CLOSING)
    member.closing.advance([0, 0, 0])
    member.hear(LEFT, DONE)
    assert not member.closing.is_over()
    member.hear(RIGHT, DONE)
    assert member.closing.is_over()


def test_who_passes_messages_on_is_drained_towards_one_when_it_is_from_all_others() -> None:
    member = Member(relays=True)
    member.closing.close(0)
    for peer in (LEFT, RIGHT):
        member.hear(peer, CLOSING)
    member.closing.advance([])
    assert member.said()[2:] == []
    member.hear(LEFT, DRAINED)
    member.closing.advance([])
    assert member.said() == [(RIGHT, "drained")]
    member.hear(RIGHT, DRAINED)
    member.closing.advance([])
    assert member.said() == [(LEFT, "drained")]


def test_who_passes_messages_on_says_for_all_behind_it_that_they_are_done() -> None:
    member = Member(relays=True)
    member.closing.close(0)
    for peer in (LEFT, RIGHT):
        member.hear(peer, CLOSING)
        member.hear(peer, DRAINED)
    member.closing.advance([])
    assert [word for _, word in member.said()] == ["closing", "closing", "drained", "drained"], "nobody is done behind it"
    member.hear(RIGHT, DONE)
    member.closing.advance([])
    assert member.said() == [(LEFT, "done")]
    assert not member.closing.is_over()
    member.hear(LEFT, DONE)
    assert not member.closing.is_over(), "the right one is not told yet"
    member.closing.advance([])
    assert member.said() == [(RIGHT, "done")]
    assert member.closing.is_over()


@pytest.mark.parametrize("words", [(DONE,), (DRAINED,), (CLOSING, CLOSING), (CLOSING, DONE, DONE), (CLOSING, DRAINED, DRAINED)])
def test_a_word_that_cannot_be_said_now_is_refused(words: tuple[int, ...]) -> None:
    member = Member()
    for word in words[:-1]:
        member.hear(LEFT, word)
    with pytest.raises(FrameError):
        member.hear(LEFT, words[-1])
