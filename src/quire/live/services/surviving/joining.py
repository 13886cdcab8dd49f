"""The group in which the sequencers of a service with failover keep their register."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec

from quire.live.dynamic.group import DynamicGroup
from quire.live.dynamic.joining import read_dynamic_settings
from quire.live.network_options import Network
from quire.live.services.surviving.register import RegisterObject
from quire.live.settings import Address, read_address
from quire.model.errors import BadInput

PORTS_APART = 1000
PORT_MAX = (1 << 16) - 1


def read_register(sequencers: Sequence[str], register: Sequence[str] | None) -> Sequence[str]:
    """The addresses of the register, one for each sequencer; raises BadInput where these cannot be."""
    if register is None:
        apart = [Address(each.host, each.port + PORTS_APART) for each in map(read_address, sequencers)]
        if any(each.port > PORT_MAX for each in apart):
            raise BadInput(f"ports that are higher by {PORTS_APART} do not exist: give the addresses of the register")
        register = [*map(str, apart)]
    if isinstance(register, str) or len(register) != len(sequencers):
        raise BadInput(f"the register needs a list of {len(sequencers)} addresses, one for each sequencer")
    if set(register) & set(sequencers):
        raise BadInput("the register needs addresses of its own, other than those of the sequencers")
    return register


def join_register(
    name: str, me: int, addresses: Sequence[str], register: RegisterObject, journal: Path | None, network: Network
) -> DynamicGroup:
    """The group in which the sequencers keep the register, with one member at each address; `journal`: its directory."""
    names = {str(number): address for number, address in enumerate(addresses)}
    own = msgspec.structs.replace(network, listen=None, trace=None, on_event=None, observe=None, observe_token=None)
    settings = read_dynamic_settings(name, str(me), members=names, order="total", journal=journal, network=own)
    return DynamicGroup(settings, register)
