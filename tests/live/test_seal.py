"""The seal on frames, without a socket: what is hidden, what is noticed, and when keys change."""

from __future__ import annotations

import random
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quire.live.network.seal import SEAL_BYTES, Seal
from quire.wire.frames import FrameError, Reader, control_frame

KEY = b"k" * 32
CONTENT_BYTES = 5


def sealed_stream(count: int) -> list[bytes]:
    seal = Seal(KEY)
    return [bytes(seal.sealed(control_frame(17, bytes([number]) * CONTENT_BYTES))) for number in range(count)]


def opened(frames: list[bytes], seal: Seal | None = None) -> list[bytes]:
    """What gets through before the first frame that does not."""
    reader, seal = Reader(), seal or Seal(KEY)
    reader.feed(b"".join(frames))
    found: list[bytes] = []
    with suppress(FrameError):
        found.extend(bytes(frame.body) for frame in reader.frames(seal.opened))
    return found


def test_sealed_frames_are_opened() -> None:
    assert opened(sealed_stream(5)) == [bytes([number]) * CONTENT_BYTES for number in range(5)]


@given(parts=st.lists(st.binary(max_size=9000), max_size=4))
def test_a_frame_may_be_given_in_parts_of_any_size(parts: list[bytes]) -> None:
    whole = b"".join(parts)
    sending, receiving = Seal(KEY), Seal(KEY)
    for _ in range(2):
        frame = sending.sealed(control_frame(17), *parts)
        assert int.from_bytes(frame[:4], "big") == len(frame) - 4 == 1 + len(whole) + SEAL_BYTES
        assert bytes(receiving.opened(memoryview(frame)[4:])) == b"\x11" + whole


def test_nobody_can_read_a_sealed_frame_or_see_that_two_are_equal() -> None:
    seal = Seal(KEY)
    first, second = (bytes(seal.sealed(control_frame(17, b"a secret plan"))) for _ in range(2))
    assert b"secret" not in first
    assert b"secret" not in second
    assert first[4:] != second[4:]


@given(index=st.integers(0, 4), bit=st.integers(0, 8 * (1 + CONTENT_BYTES + SEAL_BYTES) - 1))
def test_a_flipped_bit_breaks_the_seal(index: int, bit: int) -> None:
    frames = sealed_stream(5)
    spoilt = bytearray(frames[index])
    spoilt[4 + bit // 8] ^= 1 << bit % 8
    frames[index] = bytes(spoilt)
    assert len(opened(frames)) == index


@given(st.integers(0, 2**32))
def test_a_dropped_repeated_or_reordered_frame_breaks_the_seal(seed: int) -> None:
    chance = random.Random(seed)
    frames = sealed_stream(6)
    index = chance.randrange(5)
    match chance.randrange(3):
        case 0:
            del frames[index]
            expected = index
        case 1:
            frames.insert(index + 1, frames[index])
            expected = index + 1
        case _:
            frames[index], frames[index + 1] = frames[index + 1], frames[index]
            expected = index
    assert len(opened(frames)) == expected


@pytest.mark.parametrize("length", range(SEAL_BYTES))
def test_a_frame_without_room_for_a_seal_is_refused(length: int) -> None:
    with pytest.raises(FrameError, match="too short for its seal"):
        Seal(KEY).opened(memoryview(bytes(length)))


@given(
    lengths=st.lists(st.integers(0, 60), min_size=1, max_size=40),
    frames_per_key=st.integers(1, 8),
    bytes_per_key=st.integers(80, 300),
)
def test_both_ends_change_the_key_at_the_same_frame(lengths: list[int], frames_per_key: int, bytes_per_key: int) -> None:
    sending, receiving = (Seal(KEY, frames_per_key=frames_per_key, bytes_per_key=bytes_per_key) for _ in range(2))
    contents = [bytes([length]) * length for length in lengths]
    frames = [bytes(sending.sealed(control_frame(17, content))) for content in contents]
    assert opened(frames, receiving) == contents


def test_no_key_seals_more_than_it_may() -> None:
    once = Seal(KEY, frames_per_key=3)
    never = Seal(KEY)
    pairs = [(once.sealed(control_frame(17)), never.sealed(control_frame(17))) for _ in range(4)]
    assert [first == second for first, second in pairs] == [True, True, True, False]
    large = Seal(KEY, bytes_per_key=2 * (1 + SEAL_BYTES))
    never = Seal(KEY)
    pairs = [(large.sealed(control_frame(17)), never.sealed(control_frame(17))) for _ in range(3)]
    assert [first == second for first, second in pairs] == [True, True, False]
