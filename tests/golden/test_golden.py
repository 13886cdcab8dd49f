"""The paper's figures as scenarios, equal to the text beside this file and to the specification's vectors.

After a deliberate change, `QUIRE_REWRITE=1 make test PYTEST_ARGS=tests/golden` writes the texts anew; read the diff.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.golden.scenario import Step, play

HERE = Path(__file__).parent
FIGURES = {
    "figure-2": "sun_figure2",
    "figure-3": "sun_figure3",
    "rotating-ids": "sun_figure3_dynamic_ids",
    "run-length-batch": "sun_batch_run_length",
}


@pytest.mark.parametrize("name", FIGURES)
def test_a_scenario_gives_what_its_text_says(name: str) -> None:
    path = HERE / f"{name}.txt"
    text = path.read_text()
    played, _ = play(text)
    if os.environ.get("QUIRE_REWRITE"):
        path.write_text(played)
    assert played == path.read_text()


@pytest.mark.parametrize(("name", "vectors"), FIGURES.items())
def test_every_clock_vector_after_every_step_equals_the_specification(name: str, vectors: str) -> None:
    _, steps = play((HERE / f"{name}.txt").read_text())
    expected = json.loads((HERE / f"{vectors}.json").read_text())
    assert [_as_vector(step) for step in steps] == [
        {key: step[key] for key in ("site", "sent", "executed", "LCV", "MRMT", "PMQ")} for step in expected["steps"]
    ]
    for final in expected["final"]:
        mine = [step for step in steps if step.site == final["site"]]
        assert (mine[-1].lcv, mine[-1].mrmt, mine[-1].pmq) == (final["LCV"], final["MRMT"], final["PMQ"])
        assert [op for step in mine for op in step.executed] == final["executed"]


def _as_vector(step: Step) -> dict[str, object]:
    return {
        "site": step.site,
        "sent": step.sent,
        "executed": step.executed,
        "LCV": step.lcv,
        "MRMT": step.mrmt,
        "PMQ": step.pmq,
    }
