"""Registry of all live services by name. A service is added here with one line."""

from __future__ import annotations

from collections.abc import Mapping

from quire.live.services.objects import OBJECTS
from quire.live.services.sequencing import SEQUENCER
from quire.live.services.service import Service
from quire.live.services.transactions import TRANSACTIONS

_SERVICES: tuple[Service, ...] = (OBJECTS, SEQUENCER, TRANSACTIONS)
SERVICES: Mapping[str, Service] = {service.name: service for service in _SERVICES}
