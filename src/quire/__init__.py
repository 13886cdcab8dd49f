"""Quire: ordered group communication for Python.

    quire.join(...)          a member of a live group
    quire.join_objects(...)  a member of a live group of objects that call each other
    quire.join_store(...)    a process of a live store of replicated keys, with transactions
    quire.connect(...)       a client of the sequencing service, in any number of groups
    quire.simulate(...)      a group in the seeded simulator
    quire.audit(...)         check the orders of a trace on Spark

Each is imported when it is first used, so that `import quire` costs nothing and nobody needs Spark to multicast.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from quire.live import Certificates, Group, join
    from quire.live.services.objects import ObjectGroup, join_objects
    from quire.live.services.sequencers import Connected, connect
    from quire.live.services.transactions import StoreMember, join_store
    from quire.model.errors import BadInput, QuireError
    from quire.model.messages import Message, MessageId, Run
    from quire.objects.call import Call
    from quire.objects.declare import Object, operation
    from quire.objects.placing import place
    from quire.pipeline import audit
    from quire.protocols.objects.errors import CallAborted, CallDied, CallFailed
    from quire.protocols.transactions.errors import TransactionError
    from quire.simulation.config import SimulationConfig
    from quire.simulation.simulate import simulate
    from quire.transactions.codecs import JSON, Codec
    from quire.transactions.store import Store, Transaction

_HOMES = {
    "Certificates": "quire.live",
    "Group": "quire.live",
    "join": "quire.live",
    "ObjectGroup": "quire.live.services.objects",
    "join_objects": "quire.live.services.objects",
    "StoreMember": "quire.live.services.transactions",
    "join_store": "quire.live.services.transactions",
    "Connected": "quire.live.services.sequencers",
    "connect": "quire.live.services.sequencers",
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
    "TransactionError": "quire.protocols.transactions.errors",
    "SimulationConfig": "quire.simulation.config",
    "simulate": "quire.simulation.simulate",
    "Codec": "quire.transactions.codecs",
    "JSON": "quire.transactions.codecs",
    "Store": "quire.transactions.store",
    "Transaction": "quire.transactions.store",
}

__all__ = [
    "JSON",
    "BadInput",
    "Call",
    "CallAborted",
    "CallDied",
    "CallFailed",
    "Certificates",
    "Codec",
    "Connected",
    "Group",
    "Message",
    "MessageId",
    "Object",
    "ObjectGroup",
    "QuireError",
    "Run",
    "SimulationConfig",
    "Store",
    "StoreMember",
    "Transaction",
    "TransactionError",
    "audit",
    "connect",
    "join",
    "join_objects",
    "join_store",
    "operation",
    "place",
    "simulate",
]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'quire' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
