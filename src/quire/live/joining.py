"""The way into a live group: one whose members are fixed, or one whose members change."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Unpack, overload

from quire.live.dynamic.group import DynamicGroup
from quire.live.dynamic.joining import TIMEOUT_S, Delivery, read_dynamic_settings
from quire.live.dynamic.recording import record_member
from quire.live.dynamic.state import GivenState
from quire.live.groups.commands import AnyState
from quire.live.groups.group import Group
from quire.live.groups.joining import join_fixed
from quire.live.network_options import Network, NetworkOptions, takes_network_options
from quire.live.observing.observer import observer_of
from quire.model.errors import BadInput


@overload
def join(
    group: str,
    *,
    me: int,
    members: Sequence[str],
    order: str | None = None,
    protocol: str | None = None,
    options: Mapping[str, object] | None = None,
    state: AnyState = None,
    **network: Unpack[NetworkOptions],
) -> Group: ...


@overload
def join(
    group: str,
    *,
    me: str,
    members: Mapping[str, str],
    contact: Sequence[str] = (),
    order: str | None = None,
    protocol: str | None = None,
    options: Mapping[str, object] | None = None,
    state: GivenState = None,
    journal: str | Path | None = None,
    delivery: Delivery | None = None,
    weights: Mapping[str, int] | None = None,
    rejoin: bool = True,
    **network: Unpack[NetworkOptions],
) -> DynamicGroup: ...


@overload
def join(
    group: str,
    *,
    me: str,
    at: str,
    contact: Sequence[str],
    order: str | None = None,
    protocol: str | None = None,
    options: Mapping[str, object] | None = None,
    state: GivenState = None,
    journal: str | Path | None = None,
    delivery: Delivery | None = None,
    weights: Mapping[str, int] | None = None,
    rejoin: bool = True,
    **network: Unpack[NetworkOptions],
) -> DynamicGroup: ...


@takes_network_options
def join(
    group: str,
    *,
    me: int | str,
    members: Sequence[str] | Mapping[str, str] | None = None,
    at: str | None = None,
    contact: Sequence[str] = (),
    order: str | None = None,
    protocol: str | None = None,
    options: Mapping[str, object] | None = None,
    state: GivenState = None,
    journal: str | Path | None = None,
    delivery: Delivery | None = None,
    weights: Mapping[str, int] | None = None,
    rejoin: bool = True,
    **network: Unpack[NetworkOptions],
) -> Group | DynamicGroup:
    """One member of a live group. Use it in `async with`, which waits until this process has joined.

    Choose an `order` ("total", "causal", "fifo" …), or a `protocol` and its `options`. Beyond loopback, give a `secret` of at
    least 16 bytes or `certificates`, the same kind at every member, or set `insecure`. `listen` is where this member listens,
    if that differs from its address (NAT, containers). `on_event` is called with each Event. With `trace`, this member writes
    its part of the run's trace to that directory; `quire collect` combines the parts. With `observe`, `quire watch` and
    Prometheus can observe this member over HTTP while it runs (docs/watching.md). `transport="memory"` connects members within
    one event loop, for tests. Raises BadInput if the arguments are invalid.

    With a list of addresses as `members` and this member's index as `me`, the group is fixed: it waits for all members, and
    ends when one is lost. Entering the block raises MemberUnreachable if a member does not join within `join_s`, and BadInput
    if another member has different settings. A member that is silent for `timeout_s` counts as lost: iterating then raises
    MemberUnreachable, whose `common` says how far the survivors are known to agree. `state` is a `quire.Replicated`, or
    several by name, and needs a total order.

    With names, members can change. Founders pass the same `members`, a mapping from names to addresses; a later member gives
    its own address as `at`, and addresses of current members as `contact`. A majority continues when others are silent for
    `timeout_s` (default: 1 s); an excluded member rejoins automatically, unless `rejoin` is False. Entering the block raises
    NoQuorum if this process is not admitted within `join_s`. `delivery` is "uniform" (whatever any member delivered, all
    members of the next view deliver; the default for a total order) or "fast". With `journal`, a directory for this member
    alone, a restarted process continues where it stopped. `state` may also be any object with `snapshot` and `restore`.
    `weights` gives members more than one vote. See docs/survival.md for what is promised.
    """
    if isinstance(members, Mapping) or at is not None or contact or (members is None and isinstance(me, str)):
        return _join_dynamic(
            group, me, members, at, contact, order, protocol, options, state, journal, delivery, weights, rejoin, network
        )
    if not isinstance(me, int) or members is None:
        raise BadInput(
            "give members as a list and me as an index, or members as a mapping from names to addresses and me as a name"
        )
    if journal is not None or delivery is not None or weights is not None or not rejoin:
        raise BadInput("journal, delivery, weights and rejoin are for groups whose members have names")
    return join_fixed(group, me, members, order, protocol, options, state, Network(**network))  # type: ignore[arg-type]


def _join_dynamic(
    group: str,
    me: int | str,
    members: Sequence[str] | Mapping[str, str] | None,
    at: str | None,
    contact: Sequence[str],
    order: str | None,
    protocol: str | None,
    options: Mapping[str, object] | None,
    state: GivenState,
    journal: str | Path | None,
    delivery: Delivery | None,
    weights: Mapping[str, int] | None,
    rejoin: bool,
    network: NetworkOptions,
) -> DynamicGroup:
    given = Network(**{"timeout_s": TIMEOUT_S, **network})  # type: ignore[arg-type]
    if not isinstance(me, str) or not (members is None or isinstance(members, Mapping)):
        raise BadInput("in a group whose members change, give me as a name and members as a mapping from names to addresses")
    settings = read_dynamic_settings(
        group,
        me,
        members=members,
        at=at,
        contact=contact,
        order=order,
        protocol=protocol,
        options=options,
        journal=journal,
        delivery=delivery,
        weights=weights,
        rejoin=rejoin,
        network=given,
    )
    observer = observer_of(given)
    return DynamicGroup(settings, state, given.on_event, record_member(settings, given.trace, observer), observer)
