"""Quire: ordered group communication for Python.

    quire.join(...)          a member of a live group
    quire.join_objects(...)  a member of a live group of objects that call each other
    quire.simulate(...)      a group in the seeded simulator
    quire.audit(...)         check the orders of a trace on Spark

Each is imported when it is first used, so that `import quire` costs nothing and nobody needs Spark to multicast.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from quire.live import Certificates, Group, join
    from quire.live.objects import ObjectGroup, join_objects
    from quire.model.errors import BadInput, QuireError
    from quire.model.messages import Message, MessageId, Run
    from quire.objects.call import Call
    from quire.objects.declare import Object, operation
    from quire.objects.placing import place
    from quire.pipeline import audit
    from quire.protocols.objects.errors import CallAborted, CallDied, CallFailed
    from quire.simulation.config import SimulationConfig
    from quire.simulation.simulate import simulate

_HOMES = {
    "Certificates": "quire.live",
    "Group": "quire.live",
    "join": "quire.live",
    "ObjectGroup": "quire.live.objects",
    "join_objects": "quire.live.objects",
    "BadInput": "quire.model.errors",
    "QuireError": "quire.model.errors",
    "Message": "quire.model.messages",
    "MessageId": "quire.model.messages",
    "Run": "quire.model.messages",
    "Call": "quire.objects.call",
    "Object": "quire.objects.declare",
    "operation": "quire.objects.declare",
    "place": "quire.objects.placing",
    "audit": "quire.pipeline",
    "CallAborted": "quire.protocols.objects.errors",
    "CallDied": "quire.protocols.objects.errors",
    "CallFailed": "quire.protocols.objects.errors",
    "SimulationConfig": "quire.simulation.config",
    "simulate": "quire.simulation.simulate",
}

__all__ = [
    "BadInput",
    "Call",
    "CallAborted",
    "CallDied",
    "CallFailed",
    "Certificates",
    "Group",
    "Message",
    "MessageId",
    "Object",
    "ObjectGroup",
    "QuireError",
    "Run",
    "SimulationConfig",
    "audit",
    "join",
    "join_objects",
    "operation",
    "place",
    "simulate",
]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'quire' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
