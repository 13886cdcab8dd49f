"""Tasks of an import that are performed in this process, on all of its cores."""

from __future__ import annotations

import os
from threading import Barrier

import msgspec
import pytest

from quire.model.errors import BadInput
from quire.pipeline.tasks import job_of, run_here
from tests.kit.patience import PATIENCE_S


class Meet(msgspec.Struct, tag="meet"):
    number: int


class Met(msgspec.Struct):
    number: int


@pytest.fixture(autouse=True)
def _two_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 2)


def test_tasks_that_are_alike_are_performed_at_once_and_answer_in_their_order() -> None:
    together = Barrier(2)

    def meet(task: Meet) -> Met:
        together.wait(PATIENCE_S)
        return Met(task.number)

    found = run_here(job_of({Meet: (meet, Met)}, alike=True))([Meet(number) for number in range(6)])

    assert found == [Met(number) for number in range(6)]


def test_of_several_bad_inputs_the_first_is_told() -> None:
    second_failed = Barrier(2)

    def fail(task: Meet) -> Met:
        second_failed.wait(PATIENCE_S)
        raise BadInput(f"line {task.number} is bad")

    with pytest.raises(BadInput, match="line 0 is bad"):
        run_here(job_of({Meet: (fail, Met)}, alike=True))([Meet(0), Meet(1)])
