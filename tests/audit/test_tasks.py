"""How tasks and results travel: packed where there are many, and never too much in one plan."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import numpy as np
import pytest

from quire.pipeline import tasks
from quire.pipeline.codec import decode, encode, pack
from quire.pipeline.tasks import job_of, run_on

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Doubling(msgspec.Struct, tag="doubling"):
    numbers: np.ndarray


class Doubled(msgspec.Struct):
    numbers: np.ndarray


def double(task: Doubling) -> Doubled:
    return Doubled(task.numbers * 2)


RANDOM = np.random.default_rng(7)
ARRAYS = {
    "ascending": np.arange(100_000),
    "none": np.empty((0, 3), np.int64),
    "the extremes": np.array([2**63 - 1, -(2**63), 0, -1]),
    "no signs": np.array([0, 2**64 - 1, 5], np.uint64),
    "small": RANDOM.integers(-128, 127, (50, 4)).astype(np.int8),
    "descending rows": RANDOM.integers(0, 2**31, (9, 8)).astype(np.int32)[::-1],
    "by columns": np.asfortranarray(RANDOM.integers(0, 9, (5, 4))),
    "fractions": RANDOM.random((3, 2)),
    "truths": np.array([True, False, True]),
}


@pytest.mark.parametrize("name", ARRAYS)
def test_packed_arrays_are_the_same(name: str) -> None:
    array = ARRAYS[name]

    found = decode(pack(Doubled(array)), Doubled).numbers

    assert (found.dtype, found.shape) == (array.dtype, array.shape)
    assert (found == array).all()
    assert found.flags.writeable
    assert found.flags.c_contiguous


def test_what_ascends_takes_little_room() -> None:
    assert len(pack(Doubled(ARRAYS["ascending"]))) < len(encode(Doubled(ARRAYS["ascending"]))) / 100


def test_tasks_that_do_not_fit_in_one_plan_are_done_in_several(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tasks, "_PLAN_BYTES_MAX", 200)
    wanted = [np.arange(size) for size in (0, 50, 1, 2, 3, 80, 81)]

    found = run_on(spark, job_of({Doubling: (double, Doubled)}))([Doubling(each) for each in wanted])

    assert [each.numbers.tolist() for each in found] == [(2 * each).tolist() for each in wanted]
