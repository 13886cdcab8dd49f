"""The checked settings of a member of a live group, and the introduction by which peers check that theirs agree."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from ipaddress import ip_address

import msgspec

from quire.live.network.handshake import Trust
from quire.live.network_options import JOIN_S, TCP, TIMEOUT_S, Certificates, Network
from quire.model.errors import BadInput, QuireError
from quire.protocols import registry
from quire.wire.frames import FRAME_BYTES_MAX


class Introduction(msgspec.Struct, frozen=True):
    """What each side says of itself once it is authenticated. All fields before `incarnation` must be equal."""

    group: str
    protocol: str
    options: dict[str, object]
    members: tuple[str, ...]
    epoch: int
    incarnation: int
    received: int
    state: str = ""
    """The type of the group's state and its initial value, which must be equal too."""
    knows: int | None = None
    """The incarnation of the other side that this one has met and still has a link with."""
    durable: bool | None = None
    """Whether this one has a journal, which must be equal too; None: it has nothing to keep on disk."""
    dismissed: str = ""
    """Why this one dropped the other side, if that was not long ago."""
    here: str = ""
    """The address of this side's end of the connection, as this side sees it."""
    listens: tuple[str, ...] = ()
    """Where this process listens."""


class Misfit(QuireError):
    """The peer is a member, but its settings differ from this one's: trying again cannot help."""


def check_same(mine: Introduction, theirs: Introduction, me: int, peer: int) -> None:
    """Raise Misfit with a sentence on the first thing that differs between two members of what should be one group."""
    for what in ("group", "protocol", "members", "epoch", "state"):
        _check_equal(what, getattr(mine, what), getattr(theirs, what), me, peer)
    for option in sorted(mine.options.keys() | theirs.options.keys()):
        _check_equal(f"option {option[:50]!r}", mine.options.get(option), theirs.options.get(option), me, peer)
    if None not in (mine.durable, theirs.durable) and mine.durable != theirs.durable:
        with_, without = (me, peer) if mine.durable else (peer, me)
        raise Misfit(f"member {with_} has a journal and member {without} has none; give all replicas journals, or none of them")


def _check_equal(what: str, here: object, there: object, me: int, peer: int) -> None:
    if here != there:
        raise Misfit(f"member {peer} has {what} {_brief(there)} and member {me} has {_brief(here)}; give all members the same")


def _brief(value: object) -> str:
    try:
        text = repr(value)
    except RecursionError:
        return "something too deep to show"
    return text if len(text) <= 150 else text[:149] + "…"


class Address(msgspec.Struct, frozen=True):
    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    def is_loopback(self) -> bool:
        if self.host == "localhost":
            return True
        try:
            return ip_address(self.host).is_loopback
        except ValueError:
            return False


def read_address(text: str) -> Address:
    host, separator, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not separator or not _is_host(host) or not (port.isascii() and port.isdigit()) or not 0 < int(port[:6]) < 65536:
        raise BadInput(f"{text!r} is not an address; write HOST:PORT, as in 127.0.0.1:7000")
    return Address(host, int(port))


def _is_host(text: str) -> bool:
    """Whether this may be the name or address of a host; whether the host exists shows only on connecting."""
    try:
        return bool(text) and text.isprintable() and " " not in text and bool(text.encode("idna"))
    except UnicodeError:
        return False


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """Everything about one member of one live group. Made by `read_settings`, which checks it."""

    group: str
    me: int
    members: tuple[Address, ...]
    listen: Address | None
    """Where this member listens; the others reach it at its address in `members`, which may be that of a gateway. None: it
    only connects to others."""
    protocol: str
    options: msgspec.Struct
    state: str = ""
    """The type of the group's state and its initial value."""
    name: str = ""
    """This member's name, where members have names."""
    restartable: int = 0
    """How many of the members, counted from the first, may end and come back as new processes."""
    enough: int = 0
    """How many of the others must be there at the start; 0: all of them."""
    durable: bool | None = None
    """Whether this member has a journal; None: it has nothing to keep on disk."""
    register: tuple[str, ...] = ()
    """The addresses of the register of sequencers with failover, one for each sequencer."""
    visitors: int = 0
    """How many numbers after those of the members are reserved for clients, which come and go and need no address."""
    transport: str = TCP
    """The name of the transport."""
    trust: Trust = Trust.OPEN
    secret: bytes | None = None
    certificates: Certificates | None = None
    timeout_s: float = TIMEOUT_S
    """How long another member may be silent before it counts as lost."""
    join_s: float = JOIN_S
    """How long the others may take to join."""
    handshake_s: float = 5.0
    """How long a connection may take until both sides have admitted each other, before another one is tried."""
    frame_bytes_max: int = FRAME_BYTES_MAX
    packet_bytes_max: int = 32 << 20
    """How long a packet may be, all its pieces together, which the receiver buffers until the last one has come."""
    run_messages_max: int = 8192
    run_bytes_max: int = 1 << 20
    link_bytes_max: int = 16 << 20
    """How many bytes may be unacknowledged on the link to one peer before this member sends nothing more."""
    inbox_messages_max: int = 1 << 17
    inbox_bytes_max: int = 64 << 20
    """How many delivered messages, and how many bytes of them, may wait for the application before this member reads nothing
    more."""

    @property
    def who(self) -> int | str:
        """This member's name or number, for people."""
        return self.name or self.me

    def certificate_name(self, member: int | str) -> str:
        return certificate_name(self.group, member)

    def options_shown(self) -> dict[str, object]:
        return {field: getattr(self.options, field) for field in self.options.__struct_fields__}

    def __repr__(self) -> str:
        return f"Settings(group={self.group!r}, me={self.me}, members={len(self.members)}, protocol={self.protocol!r})"


def certificate_name(group: str, member: int | str) -> str:
    """The DNS name by which a certificate names a member. Names of groups and members are free text, so they are spelled in
    hex, or by their hash where that would be too long for a part of a name."""
    who = f"member-{member}" if str(member).isdecimal() else f"named-{_label(str(member), 56)}"
    return f"{who}.{_label(group)}.quire.internal"


def _label(text: str, most: int = 60) -> str:
    label = text.encode().hex()
    return label if len(label) <= most else "hash-" + hashlib.sha256(text.encode()).hexdigest()[:48]


def check_group_name(group: str) -> str:
    if not 0 < len(group) <= 64 or not group.isprintable():
        raise BadInput("a group needs a name of 1 to 64 printable characters")
    return group


def choose_protocol(order: str | None, protocol: str | None) -> tuple[str, Mapping[str, object]]:
    """The name of the protocol, and the options that suit an application; raises BadInput where that is not clear."""
    if (order is None) == (protocol is None):
        raise BadInput("give either an order or a protocol")
    return (protocol, {}) if protocol is not None else registry.for_order(order or "")


def read_settings(
    group: str,
    me: int,
    members: Sequence[str],
    *,
    protocol: str,
    options: Mapping[str, object] | msgspec.Struct | None = None,
    network: Network | None = None,
) -> Settings:
    """Check the arguments for a fixed group, or for a service; raises BadInput in one sentence. Options that are already a
    struct are those of a service, which has checked them."""
    network = network or Network()
    network.check()
    check_group_name(group)
    addresses = tuple(map(read_address, members))
    if len(set(addresses)) != len(addresses):
        raise BadInput("every member needs its own address")
    if not 0 <= me < len(addresses):
        raise BadInput(f"me={me} is not one of the {len(addresses)} members, which are numbered from 0")
    listening = addresses[me] if network.listen is None else read_address(network.listen)
    return Settings(
        group=group,
        me=me,
        members=addresses,
        listen=listening,
        protocol=protocol,
        options=options if isinstance(options, msgspec.Struct) else registry.read_options(protocol, options or {}),
        trust=trust_of((*addresses, listening), network),
        secret=network.secret_bytes(),
        certificates=network.certificates,
        timeout_s=network.timeout_s,
        join_s=network.join_s,
        handshake_s=min(5.0, max(0.2, network.timeout_s / 4)),
        transport=network.transport,
    )


def trust_of(addresses: Sequence[Address], network: Network) -> Trust:
    """How members at these addresses authenticate each other; raises BadInput where nothing is given beyond loopback."""
    if network.certificates is not None:
        return Trust.TLS
    if network.secret is not None:
        return Trust.SECRET
    if network.insecure or all(address.is_loopback() for address in addresses):
        return Trust.OPEN
    outside = next(address for address in addresses if not address.is_loopback())
    raise BadInput(f"{outside} is not a loopback address: give a secret or certificates, or set insecure")
