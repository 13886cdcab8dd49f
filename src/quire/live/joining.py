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
    """A member of a live group, to be used in `async with`, which waits until it is one.

    Choose an `order` ("total", "causal", "fifo" …), or a `protocol` and its `options`. Beyond loopback, give a `secret` of at
    least 16 bytes or `certificates`, the same kind everywhere, or set `insecure`. `listen` is where this member listens, if
    others reach it elsewhere: behind a gateway, or in a container. `on_event` is called with each Event.
    With `observe`, this member can be looked at over HTTP while it runs, by `quire watch` or Prometheus (docs/watching.md).
    `transport="memory"` connects members within one event loop, for tests. Raises BadInput if the arguments make no sense.

    With a list of addresses as `members`, and this member's number there as `me`, the group is fixed: it waits for all members,
    and ends when one is lost. Entering the block raises MemberUnreachable if one does not join within `join_s`, and BadInput
    as soon as it is certain that another has other settings. A member that is silent for `timeout_s` counts as lost:
    iterating then raises MemberUnreachable, whose `common` says how far the survivors are known to agree. With `trace`, this
    member writes its part of the run's trace to that directory; `quire collect` makes a run of the parts of all. `state` is a
    `quire.Replicated`, or several by their names, and needs a total order.

    With names, members come and go. Founders have the same `members`, each name with its address; anybody else gives its own
    address as `at`, and as `contact` addresses of some who are in the group. A majority goes on when others are silent for
    `timeout_s` (1 s unless given); whoever was left out comes back by itself, unless `rejoin` is False. Entering the block
    raises NoQuorum if this process is no member within `join_s`. `delivery` is "uniform" (what anybody delivered, everybody in
    the next view has; the default for a total order) or "fast". With `journal`, a directory of this member's own, a restarted
    process goes on where it was. `state` may also be any object with `snapshot` and `restore`. `weights` count members more
    than once. docs/survival.md says what is promised.
    """
    if isinstance(members, Mapping) or at is not None or contact or (members is None and isinstance(me, str)):
        return _join_dynamic(
            group, me, members, at, contact, order, protocol, options, state, journal, delivery, weights, rejoin, network
        )
    if not isinstance(me, int) or members is None:
        raise BadInput("give members as a list and me as a number, or members with names and me as one of them")
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
        raise BadInput("a group whose members change knows them by names: give me as a name, and members with their names")
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
