"""The fuzzer's target on the inputs that it starts from, on mutations of them and on any other bytes."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.fuzz.target import fuzz, seeds

SEEDS = tuple(seeds())


def test_the_seeds_raise_nothing_but_typed_errors() -> None:
    for seed in SEEDS:
        fuzz(seed)


@settings(max_examples=500)
@given(st.binary(max_size=400))
def test_any_bytes_raise_nothing_but_typed_errors(data: bytes) -> None:
    fuzz(data)


@settings(max_examples=1000)
@given(
    seed=st.sampled_from(SEEDS),
    changes=st.lists(st.tuples(st.integers(0, 3000), st.integers(0, 3), st.binary(min_size=1, max_size=8)), max_size=6),
)
def test_spoilt_streams_raise_nothing_but_typed_errors(seed: bytes, changes: list[tuple[int, int, bytes]]) -> None:
    data = bytearray(seed)
    for index, what, piece in changes:
        index %= len(data) + 1
        if what == 0:
            data[index : index + len(piece)] = piece
        elif what == 1:
            data[index:index] = piece
        elif what == 2:
            del data[index : index + len(piece)]
        else:
            data += data[index : index + 40]
    fuzz(bytes(data))
