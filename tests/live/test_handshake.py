"""The handshake without a socket: who gets in, who does not, and what either side is told."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quire.live.network.handshake import (
    HELLO_BYTES,
    NONCE_BYTES,
    PROOF_BYTES,
    Answer,
    Handshake,
    Refused,
    Trust,
)
from quire.wire.frames import FrameError, control_frame

SECRET = b"the secret of the group"


def side(peer: int | None, me: int, trust: Trust = Trust.SECRET, secret: bytes = SECRET, nonce: int = 0) -> Handshake:
    return Handshake(
        initiator=peer is not None,
        me=me,
        members=3,
        peer=peer,
        trust=trust,
        nonce=bytes([nonce or me + 1]) * NONCE_BYTES,
        secret=secret if trust is Trust.SECRET else None,
    )


def shake(initiator: Handshake, acceptor: Handshake) -> None:
    answer = acceptor.receive(initiator.start())
    acceptor_waits = initiator.receive(answer)
    if not acceptor.done:
        acceptor.receive(acceptor_waits)


def refusal(handshake: Handshake, data: bytes) -> Refused | None:
    try:
        handshake.receive(data)
    except Refused as error:
        return error
    return None


@pytest.mark.parametrize("trust", Trust)
def test_two_members_find_each_other(trust: Trust) -> None:
    initiator, acceptor = side(0, 2, trust), side(None, 0, trust)
    shake(initiator, acceptor)
    assert initiator.done
    assert acceptor.done
    assert (initiator.peer, acceptor.peer) == (0, 2)
    assert (initiator.sending is None) == (trust is not Trust.SECRET)


def test_nothing_but_fixed_sizes_is_asked_for_before_the_peer_is_known() -> None:
    initiator, acceptor = side(0, 2), side(None, 0)
    assert acceptor.wanted == HELLO_BYTES
    hello = initiator.start()
    assert initiator.wanted == HELLO_BYTES + PROOF_BYTES
    acceptor.receive(hello)
    assert acceptor.wanted == PROOF_BYTES


def test_a_wrong_secret_is_refused_and_both_sides_say_so() -> None:
    initiator, acceptor = side(0, 2, secret=b"another secret!!"), side(None, 0)
    answer = acceptor.receive(initiator.start())
    with pytest.raises(Refused, match="the peer does not know this group's secret") as refused:
        initiator.receive(answer)
    assert refused.value.answer is Answer.WRONG_SECRET
    assert len(refused.value.last_words) == acceptor.wanted
    with pytest.raises(Refused, match="the peer says that it has another secret"):
        acceptor.receive(refused.value.last_words)
    assert not acceptor.done


def test_an_initiator_that_pretends_to_be_content_is_refused_by_its_proof() -> None:
    initiator, acceptor = side(0, 2, secret=b"another secret!!"), side(None, 0)
    acceptor.receive(initiator.start())
    with pytest.raises(Refused, match="does not know"):
        acceptor.receive(bytes(PROOF_BYTES))


def test_a_recorded_handshake_is_worthless_against_a_fresh_nonce() -> None:
    initiator, acceptor = side(0, 2), side(None, 0)
    hello = initiator.start()
    proof = initiator.receive(acceptor.receive(hello))
    again = side(None, 0, nonce=77)
    again.receive(hello)
    with pytest.raises(Refused, match="does not know"):
        again.receive(proof)


def test_a_recorded_answer_is_worthless_to_an_initiator() -> None:
    first, acceptor = side(0, 2), side(None, 0)
    answer = acceptor.receive(first.start())
    again = side(0, 2, nonce=77)
    again.start()
    with pytest.raises(Refused, match="does not know"):
        again.receive(answer)


def test_a_proof_cannot_be_sent_back_to_whoever_made_it() -> None:
    acceptor = side(None, 0)
    answer = acceptor.receive(side(0, 2).start())
    with pytest.raises(Refused, match="does not know"):
        acceptor.receive(answer[HELLO_BYTES:])


def test_a_proof_for_one_member_is_worthless_for_another() -> None:
    one, other = side(0, 1, nonce=9), side(0, 2, nonce=9)
    acceptor = side(None, 0)
    proof = one.receive(side(None, 0).receive(one.start()))
    acceptor.receive(other.start())
    with pytest.raises(Refused, match="does not know"):
        acceptor.receive(proof)


@pytest.mark.parametrize(
    ("initiator", "acceptor", "here", "there"),
    [
        (
            side(0, 2, Trust.OPEN),
            side(None, 0, Trust.SECRET),
            "secured by 'open', this member by 'secret'",
            "secured by 'secret'",
        ),
        (
            side(0, 2, Trust.SECRET),
            side(None, 0, Trust.OPEN),
            "secured by 'secret', this member by 'open'",
            "secured by 'open'",
        ),
        (side(0, 2, Trust.OPEN), side(None, 1, Trust.OPEN), "the list of addresses is wrong", "the list of addresses is wrong"),
        (
            side(0, 7, Trust.OPEN),
            side(None, 0, Trust.OPEN),
            "is not that of any other member",
            "is not that of any other member",
        ),
        (
            side(0, 0, Trust.OPEN),
            side(None, 0, Trust.OPEN),
            "is not that of any other member",
            "is not that of any other member",
        ),
    ],
)
def test_what_differs_is_said_on_both_sides(initiator: Handshake, acceptor: Handshake, here: str, there: str) -> None:
    with pytest.raises(Refused, match=here) as refused:
        acceptor.receive(initiator.start())
    assert len(refused.value.last_words) == initiator.wanted
    with pytest.raises(Refused, match=there):
        initiator.receive(refused.value.last_words)


def test_another_version_is_said_on_both_sides() -> None:
    initiator, acceptor = side(0, 2), side(None, 0)
    hello = bytearray(initiator.start())
    hello[6:8] = struct.pack("!H", 9)
    with pytest.raises(Refused, match="the peer speaks version 9 of the protocol, this member version 1") as refused:
        acceptor.receive(bytes(hello))
    answer = bytearray(refused.value.last_words)
    answer[6:8] = struct.pack("!H", 9)
    with pytest.raises(Refused, match="the peer speaks version 9"):
        initiator.receive(bytes(answer))


def test_an_answer_of_another_member_than_the_one_called_is_refused() -> None:
    initiator = side(0, 2, Trust.OPEN)
    initiator.start()
    impostor = side(None, 0, Trust.OPEN)
    impostor._me = 1
    impostor._judge = lambda *_: Answer.WELCOME  # type: ignore[method-assign]
    with pytest.raises(Refused, match="is not that of any other member"):
        initiator.receive(impostor.receive(side(0, 2, Trust.OPEN).start()))


@given(data=st.binary(min_size=HELLO_BYTES, max_size=HELLO_BYTES), trust=st.sampled_from(Trust))
def test_any_bytes_for_a_hello_are_refused_or_answered(data: bytes, trust: Trust) -> None:
    for hello in (data, b"QUIRE/" + data[6:], b"QUIRE/\x00\x01\x00" + bytes([trust]) + data[10:]):
        refused = refusal(side(None, 0, trust), hello)
        if refused is not None:
            assert str(refused).isprintable()
            assert len(refused.last_words) in (0, HELLO_BYTES, HELLO_BYTES + PROOF_BYTES)


@given(data=st.binary(min_size=HELLO_BYTES + PROOF_BYTES, max_size=HELLO_BYTES + PROOF_BYTES), trust=st.sampled_from(Trust))
def test_any_bytes_for_an_answer_are_refused_or_taken(data: bytes, trust: Trust) -> None:
    for answer in (data, b"QUIRE/" + data[6:], b"QUIRE/\x00\x01\x00" + bytes([trust]) + data[10:]):
        initiator = side(0, 2, trust)
        initiator.start()
        refused = refusal(initiator, answer[: initiator.wanted])
        if refused is None:
            assert trust is not Trust.SECRET
        else:
            assert str(refused).isprintable()


@given(proof=st.binary(min_size=PROOF_BYTES, max_size=PROOF_BYTES))
def test_no_bytes_but_the_right_ones_are_a_proof(proof: bytes) -> None:
    acceptor = side(None, 0)
    acceptor.receive(side(0, 2).start())
    with pytest.raises(Refused):
        acceptor.receive(proof)


def test_one_direction_cannot_be_played_back_in_the_other() -> None:
    initiator, acceptor = side(0, 2), side(None, 0)
    shake(initiator, acceptor)
    assert initiator.sending is not None
    assert initiator.receiving is not None
    assert acceptor.receiving is not None
    sealed = memoryview(initiator.sending.sealed(control_frame(17, b"frame")))[4:]
    assert bytes(acceptor.receiving.opened(sealed)) == b"\x11frame"
    with pytest.raises(FrameError, match="failed authentication"):
        initiator.receiving.opened(sealed)


def test_two_connections_between_the_same_members_have_different_keys() -> None:
    first, second = side(None, 0, nonce=5), side(None, 0, nonce=6)
    shake(side(0, 2), first)
    shake(side(0, 2), second)
    assert first.sending is not None
    assert second.sending is not None
    assert first.sending.sealed(control_frame(17)) != second.sending.sealed(control_frame(17))
