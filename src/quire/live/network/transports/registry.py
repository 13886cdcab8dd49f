"""Registry of all transports by name. A transport is added here with one line."""

from __future__ import annotations

from quire.live.network.transports.contract import Transport, TransportFactory
from quire.live.network.transports.memory import Memory
from quire.live.network.transports.tcp import Tcp
from quire.live.settings import Settings
from quire.model.errors import BadInput

TRANSPORTS: dict[str, TransportFactory] = {"tcp": Tcp, "memory": Memory}


def make_transport(settings: Settings) -> Transport:
    """The transport that the settings name; raises BadInput with a list of those that exist."""
    if settings.transport not in TRANSPORTS:
        raise BadInput(f"there is no transport {settings.transport!r}; choose one of {', '.join(TRANSPORTS)}")
    return TRANSPORTS[settings.transport](settings)
