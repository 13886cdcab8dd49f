"""The settings of a member of a group whose members change, checked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

import msgspec

from quire.live.network.handshake import Trust
from quire.live.network_options import Network
from quire.live.settings import Address, Settings, check_group_name, choose_protocol, read_address, trust_of
from quire.model.errors import BadInput
from quire.model.orders import Guarantee, implied_by
from quire.protocols import registry
from quire.protocols.hierarchy.description import PART
from quire.views.core import IN_VIEWS, GroupSettings, check_may_change
from quire.views.view import Participant

Delivery = Literal["uniform", "fast"]

TIMEOUT_S = 1.0
"""How long a member may be silent. It is short, because the group goes on without that member and it can come back."""
WEIGHT_MAX = 1 << 20
_NAME_LENGTH_MAX = 64


class DynamicSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Everything about one member. Made by `read_dynamic_settings`, which checks it."""

    network: Settings
    """The settings of the network layer."""
    address: Address
    """Where the others reach this member."""
    rules: GroupSettings
    founds: bool
    """Whether it is one of the founders."""
    contacts: tuple[str, ...]
    addresses: dict[str, str]
    """The addresses of the founders, by name."""
    weight: int
    cluster: str
    journal: Path | None
    rejoin: bool

    @property
    def me(self) -> str:
        return self.network.name

    @property
    def founders(self) -> str:
        """The founders as configured, to be compared with those of others; empty at a process that joins through a contact."""
        members = [f"{one.name}={self.addresses[one.name]}" for one in self.rules.founders] if self.founds else []
        weights = [f"{one.name}:{one.weight}" for one in self.rules.founders if one.weight != 1] if self.founds else []
        return ", ".join(members + weights)

    def counts(self, name: str) -> bool:
        """Whether this process cannot begin if the other one has different settings: between founders, and between a joining
        process and any other. Without authentication, only a process on this machine is believed."""
        certain = self.network.trust is not Trust.OPEN or self.address.is_loopback()
        return certain and (not self.founds or name in self.addresses)

    def facts(self, state: str) -> str:
        """The settings that must be the same at all members, in words that people can compare."""
        rules = self.rules
        options = " ".join(f"{registry.option_name(name)}={value}" for name, value in sorted(rules.options.items()))
        what = [rules.protocol, options, "uniform" if rules.uniform else "fast"]
        journal = "with a journal" if rules.journal else "without a journal"
        return " ".join(filter(None, (*what, journal, f"and with the state {state}" if state else "and without a state")))


def read_dynamic_settings(
    group: str,
    me: int | str,
    *,
    members: Sequence[str] | Mapping[str, str] | None = None,
    at: str | None = None,
    contact: Sequence[str] = (),
    order: str | None = None,
    protocol: str | None = None,
    options: Mapping[str, object] | None = None,
    journal: str | Path | None = None,
    delivery: Delivery | None = None,
    weights: Mapping[str, int] | None = None,
    rejoin: bool = True,
    cluster: str = "",
    network: Network,
) -> DynamicSettings:
    """Check the arguments of a caller; raises BadInput in one sentence."""
    network.check()
    check_group_name(group)
    name, chosen = _protocol(order, protocol, options)
    promises = implied_by(registry.find(name).protocol.promises)
    me, members = _named(me, members)
    own, founders, contacts = _places(me, members, at, contact)
    listening = own if network.listen is None else read_address(network.listen)
    weight_of = _weights(weights or {}, founders or {me: own})
    total = Guarantee.TOTAL in promises
    if delivery not in (None, "uniform", "fast"):
        raise BadInput(f"there is no delivery {delivery!r}; choose uniform or fast")
    rules = GroupSettings(
        # Founders arrive as later incarnations than those in the founding view. A process that joins knows only itself.
        founders=tuple(Participant(one, 0, weight_of.get(one, 1)) for one in founders or {me: own}),
        protocol=name,
        options=msgspec.to_builtins(chosen),
        uniform=delivery == "uniform" if delivery is not None else total,
        journal=journal is not None,
        # A process without a journal cannot know that it was never started before.
        found_together=journal is None,
        causal=Guarantee.CAUSAL in promises,
        total=total,
    )
    known = tuple(map(read_address, contacts))
    sockets = Settings(
        group=group,
        me=0,
        name=me,
        members=(own,),
        listen=listening,
        protocol=name,
        options=chosen,
        trust=trust_of((own, listening, *founders.values(), *known), network),
        secret=network.secret_bytes(),
        certificates=network.certificates,
        timeout_s=network.timeout_s,
        join_s=network.join_s,
        handshake_s=min(5.0, max(0.2, network.timeout_s)),
        transport=network.transport,
    )
    return DynamicSettings(
        network=sockets,
        address=own,
        rules=rules,
        founds=bool(founders),
        contacts=tuple(map(str, known)),
        addresses={name: str(address) for name, address in founders.items()},
        weight=weight_of.get(me, 1),
        cluster=check_cluster(cluster, name) if cluster else "",
        journal=None if journal is None else Path(journal),
        rejoin=rejoin,
    )


def _protocol(order: str | None, protocol: str | None, options: Mapping[str, object] | None) -> tuple[str, msgspec.Struct]:
    name, usual = choose_protocol(order, protocol)
    registry.find(name)
    if name not in IN_VIEWS:
        raise BadInput(f"groups of {name} are fixed: give the members as a list, or choose one of {', '.join(IN_VIEWS)}")
    chosen = registry.read_options(name, options or usual)
    check_may_change(chosen)
    return name, chosen


def _named(me: int | str, members: Sequence[str] | Mapping[str, str] | None) -> tuple[str, Mapping[str, str] | None]:
    """This member and the others by their names: in a list these are "0", "1" and so on."""
    if members is None or isinstance(members, Mapping):
        if not isinstance(me, str):
            raise BadInput(f"me={me} is for members in a list; where members have names, give this member's")
        return me, members
    if not isinstance(me, int):
        raise BadInput(f"members in a list are numbered from 0: give me as a number, not {me!r}")
    if not 0 <= me < len(members):
        raise BadInput(f"me={me} is not one of the {len(members)} members, which are numbered from 0")
    return str(me), {str(number): address for number, address in enumerate(members)}


def _places(
    me: str, members: Mapping[str, str] | None, at: str | None, contact: Sequence[str]
) -> tuple[Address, dict[str, Address], Sequence[str]]:
    """This member's address, those of the founders, if it is one of them, and the contacts to connect to."""
    if isinstance(contact, str):
        raise BadInput(f"contact must be a list of addresses, as in [{contact!r}]")
    check_member_name(me)
    if members is None:
        if at is None or not contact:
            raise BadInput("to join a group, give this member's own address (at) and that of a current member (contact)")
        return read_address(at), {}, contact
    if at is not None:
        raise BadInput("the addresses of founders are in members: leave out at; to join an existing group, leave out members")
    addresses = {check_member_name(name): read_address(address) for name, address in members.items()}
    if me not in addresses:
        raise BadInput(f"me={me!r} is not one of the members {', '.join(addresses)}; to join a group, give at and contact")
    if len(set(addresses.values())) != len(addresses):
        raise BadInput("every member needs its own address")
    return addresses[me], addresses, contact


def check_member_name(name: object) -> str:
    if not isinstance(name, str) or not 0 < len(name) <= _NAME_LENGTH_MAX or not name.isprintable() or set(name) & {" ", ","}:
        raise BadInput(
            f"a member's name has 1 to {_NAME_LENGTH_MAX} printable characters without spaces or commas, not {name!r}"
        )
    return name


def check_cluster(cluster: object, protocol: str) -> str:
    """Check the name of a cluster; raises BadInput, also where the protocol has no clusters."""
    if not registry.find(protocol).protocol.clustered:
        raise BadInput(f"{protocol} knows no clusters; choose the protocol hierarchy")
    if (
        not isinstance(cluster, str)
        or not 0 < len(cluster) <= _NAME_LENGTH_MAX
        or not cluster.isprintable()
        or set(cluster) & {" ", ","}
        or not all(cluster.split(PART))
    ):
        raise BadInput(
            f"a cluster's name has 1 to {_NAME_LENGTH_MAX} printable characters without spaces or commas, "
            f"and one {PART} between a cluster and one inside it, not {cluster!r}"
        )
    return cluster


def _weights(given: Mapping[str, int], members: Mapping[str, Address]) -> Mapping[str, int]:
    for name, weight in given.items():
        if name not in members:
            raise BadInput(f"weights name {name!r}, which is not one of the members {', '.join(members)}")
        if not 0 <= weight <= WEIGHT_MAX:
            raise BadInput(f"a weight is a whole number from 0 to {WEIGHT_MAX}, not {weight}")
    if given and not any(given.get(name, 1) for name in members):
        raise BadInput("at least one member needs a weight of more than 0")
    return given
