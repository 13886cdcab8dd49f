"""The experiment of the paper's evaluation of transactions: the share of transmitted requests that are executed."""

from __future__ import annotations

from quire.model.errors import BadInput
from quire.protocols.transactions.omission import Counts
from quire.simulation.config import MESSAGES_MAX
from quire.simulation.delays import parse_delays
from quire.simulation.omission import Evaluation, evaluate
from quire.sweep.experiments.contract import Experiment, Quantity

PROCESSORS_MAX = 256


def _check(cell: Evaluation) -> None:
    if not 1 <= cell.processors <= PROCESSORS_MAX:
        raise BadInput(f"processors must be from 1 to {PROCESSORS_MAX}, not {cell.processors}")
    if not 0 <= cell.write_share <= 1:
        raise BadInput(f"write_share must be from 0 to 1, not {cell.write_share}")
    if not 0.1 <= cell.beat_ms <= 1e6:
        raise BadInput(f"beat_ms must be from 0.1 to 1000000, not {cell.beat_ms}")
    for name, value in {"keys": cell.keys, "transactions": cell.transactions, "operations": cell.operations}.items():
        if not 1 <= value <= MESSAGES_MAX:
            raise BadInput(f"{name} must be from 1 to {MESSAGES_MAX}, not {value}")
    parse_delays(cell.delay, cell.processors)


def _ratio(_: Evaluation, counts: Counts) -> float:
    return counts.ratio


_QUANTITIES = (
    Quantity("carried_out", "of 1", "requests that are carried out, of those transmitted", _ratio),
    Quantity("queue_depth", "requests", "requests that wait together", lambda _, counts: counts.depth),
)

OMISSION = Experiment(
    name="omission",
    summary="requests of transactions that need not be carried out",
    cell=Evaluation,
    quantities=_QUANTITIES,
    check=_check,
    measure=evaluate,
    work=lambda cell: cell.processors**2 * cell.transactions * cell.operations,
)
