"""The registry of experiments that a sweep can run, by name. A new experiment is one module here and one entry below."""

from __future__ import annotations

from collections.abc import Mapping

from quire.model.errors import BadInput
from quire.sweep.experiments.contract import Experiment
from quire.sweep.experiments.omission import OMISSION
from quire.sweep.experiments.precedence import PRECEDENCE
from quire.sweep.experiments.routes import ROUTES
from quire.sweep.experiments.simulated import SIMULATE

EXPERIMENTS: Mapping[str, Experiment] = {experiment.name: experiment for experiment in (SIMULATE, ROUTES, PRECEDENCE, OMISSION)}


def find(name: str) -> Experiment:
    """The experiment of that name; raises BadInput with a list of those that exist."""
    experiment = EXPERIMENTS.get(name)
    if experiment is None:
        raise BadInput(f"there is no experiment {name!r}; choose one of {', '.join(EXPERIMENTS)}")
    return experiment
