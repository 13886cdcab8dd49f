"""The registry of the services that can be simulated, by name. A new service is one line here."""

from __future__ import annotations

from collections.abc import Mapping

from quire.protocols.sequencing.ring import RingOptions
from quire.simulation.objects import OBJECTS
from quire.simulation.scenario import Service
from quire.simulation.surviving_sequencing import SequencingRing
from quire.simulation.transactions import TRANSACTIONS

_SERVICES: tuple[Service, ...] = (
    Service("sequencer", "overlapping groups over several sequencers (Kindberg)", SequencingRing, RingOptions),
    OBJECTS,
    TRANSACTIONS,
)
SERVICES: Mapping[str, Service] = {service.name: service for service in _SERVICES}
