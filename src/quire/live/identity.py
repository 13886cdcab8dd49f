"""The identity of a run of live processes, which each of them derives from its settings."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256

import msgspec

from quire.live.settings import Settings
from quire.model.orders import Guarantee, implied_by, in_order
from quire.protocols import registry
from quire.trace.log import Address
from quire.trace.parts.description import RunIdentity

GROUP_NAME = "all"
"""The name in the trace of a group of all processes."""


def run_name(settings: Settings, load: Mapping[str, object] | None = None) -> str:
    """The name of the run: the same at all processes, because it is made from settings that must be equal at all of them."""
    facts = (settings.group, [str(address) for address in settings.members], settings.protocol, settings.options, load)
    return f"{settings.protocol}-{sha256(msgspec.json.encode(facts, order='sorted')).hexdigest()[:8]}"


def everybody(settings: Settings) -> Address:
    """The address of a group of all processes."""
    return Address(GROUP_NAME, tuple(range(len(settings.members))))


def identify_group(settings: Settings, load: Mapping[str, object] | None = None) -> RunIdentity:
    """The identity of a run with one group of all processes, which promises what its protocol promises."""
    groups = {GROUP_NAME: tuple(range(len(settings.members)))}
    return identify(settings, registry.find(settings.protocol).protocol.promises, groups, load=load)


def identify(
    settings: Settings,
    promises: frozenset[Guarantee],
    groups: Mapping[str, tuple[int, ...]],
    *,
    about: Mapping[str, object] | None = None,
    load: Mapping[str, object] | None = None,
    relays: tuple[int, ...] = (),
    restarts: bool = False,
) -> RunIdentity:
    """The identity of a run that promises these guarantees for these groups. `about`: what else is needed to audit its trace;
    `load`: what a command is to send, if that is known beforehand; `relays`: processes that neither send nor deliver;
    `restarts`: whether processes that end may come back."""
    return RunIdentity(
        run=run_name(settings, load),
        group=settings.group,
        protocol=settings.protocol,
        options=msgspec.to_builtins(settings.options),
        members=len(settings.members),
        open=settings.visitors > 0,
        restarts=restarts,
        relays=relays,
        promises=in_order(implied_by(promises)),
        groups=dict(groups),
        settings=msgspec.to_builtins({**({} if load is None else {"load": dict(load)}), **(about or {})}),
    )
