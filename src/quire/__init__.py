"""Quire: ordered group communication for Python.

    quire.join(...)      a member of a live group
    quire.simulate(...)  a group in the seeded simulator
    quire.audit(...)     check the orders of a trace on Spark

Each is imported when it is first used, so that `import quire` costs nothing and nobody needs Spark to multicast.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from quire.live import Certificates, Group, join
    from quire.model.errors import BadInput, QuireError
    from quire.model.messages import Message, MessageId, Run
    from quire.pipeline import audit
    from quire.simulation.config import SimulationConfig
    from quire.simulation.simulate import simulate

_HOMES = {
    "Certificates": "quire.live",
    "Group": "quire.live",
    "join": "quire.live",
    "BadInput": "quire.model.errors",
    "QuireError": "quire.model.errors",
    "Message": "quire.model.messages",
    "MessageId": "quire.model.messages",
    "Run": "quire.model.messages",
    "audit": "quire.pipeline",
    "SimulationConfig": "quire.simulation.config",
    "simulate": "quire.simulation.simulate",
}

__all__ = [
    "BadInput",
    "Certificates",
    "Group",
    "Message",
    "MessageId",
    "QuireError",
    "Run",
    "SimulationConfig",
    "audit",
    "join",
    "simulate",
]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'quire' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
