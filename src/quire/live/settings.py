"""What a member is told when it joins, checked, and what it tells its peers so that all run the same thing."""

from __future__ import annotations

import hashlib
import ssl
from collections.abc import Mapping, Sequence
from ipaddress import ip_address
from pathlib import Path

import msgspec

from quire.live.network.frames import FRAME_BYTES_MAX
from quire.live.network.handshake import Trust
from quire.model.errors import BadInput, QuireError
from quire.protocols import registry

SECRET_BYTES_MIN = 16


class Introduction(msgspec.Struct, frozen=True):
    """What each side says of itself once it is authenticated. Everything but the last three must be equal."""

    group: str
    protocol: str
    options: dict[str, object]
    members: tuple[str, ...]
    epoch: int
    incarnation: int
    received: int


class Misfit(QuireError):
    """The peer is a member, but not of the same group as this one runs it: trying again cannot help."""


def check_same(mine: Introduction, theirs: Introduction, me: int, peer: int) -> None:
    """Raise Misfit with a sentence on the first thing that differs between two members of what should be one group."""
    for what in ("group", "protocol", "members", "epoch"):
        _check_equal(what, getattr(mine, what), getattr(theirs, what), me, peer)
    for option in sorted(mine.options.keys() | theirs.options.keys()):
        _check_equal(f"option {option[:50]!r}", mine.options.get(option), theirs.options.get(option), me, peer)


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
    """Whether this may be a name or number of a host: whether there is one, only connecting tells."""
    try:
        return bool(text) and text.isprintable() and " " not in text and bool(text.encode("idna"))
    except UnicodeError:
        return False


class Certificates(msgspec.Struct, frozen=True):
    """Files in PEM: the group's authority, and this member's certificate and key."""

    authority: Path
    certificate: Path
    key: Path

    @classmethod
    def of(cls, folder: Path) -> Certificates:
        """The files in a member's folder as `quire keys` makes it."""
        return cls(folder / "authority.pem", folder / "certificate.pem", folder / "key.pem")


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
    visitors: int = 0
    """How many numbers after those of the members are for processes that come and go, and need no address."""
    trust: Trust = Trust.OPEN
    secret: bytes | None = None
    certificates: Certificates | None = None
    timeout_s: float = 10.0
    """How long another member may be silent before it counts as lost."""
    join_s: float = 10.0
    """How long the others may take to come."""
    handshake_s: float = 5.0
    """How long a connection may take until both sides have welcomed each other, so that another can be tried."""
    frame_bytes_max: int = FRAME_BYTES_MAX
    run_messages_max: int = 8192
    run_bytes_max: int = 1 << 20
    link_bytes_max: int = 16 << 20
    """How much may be on its way to one peer before this member sends nothing more."""
    inbox_messages_max: int = 1 << 17
    """How many delivered messages may wait for the application before this member reads nothing more."""

    def certificate_name(self, member: int) -> str:
        return certificate_name(self.group, member)

    def options_shown(self) -> dict[str, object]:
        return {field: getattr(self.options, field) for field in self.options.__struct_fields__}

    def __repr__(self) -> str:
        return f"Settings(group={self.group!r}, me={self.me}, members={len(self.members)}, protocol={self.protocol!r})"


def certificate_name(group: str, member: int) -> str:
    """The DNS name by which a certificate names a member. Groups' names are free text, so they are spelled in hex, or by
    their hash where that would be too long for a part of a name."""
    label = group.encode().hex()
    if len(label) > 60:
        label = "hash-" + hashlib.sha256(group.encode()).hexdigest()[:48]
    return f"member-{member}.{label}.quire.internal"


def check_group_name(group: str) -> str:
    if not 0 < len(group) <= 64 or not group.isprintable():
        raise BadInput("a group needs a name of 1 to 64 printable characters")
    return group


def read_settings(
    group: str,
    me: int,
    members: Sequence[str],
    *,
    order: str | None = None,
    protocol: str | None = None,
    options: Mapping[str, object] | msgspec.Struct | None = None,
    secret: bytes | str | None = None,
    certificates: Certificates | None = None,
    insecure: bool = False,
    listen: str | None = None,
    timeout_s: float = 10.0,
    join_s: float | None = None,
) -> Settings:
    """Check what a caller wants of a group; raises BadInput in one sentence. Options that are a struct already are those
    of a service, which has checked them."""
    check_group_name(group)
    addresses = tuple(map(read_address, members))
    if len(set(addresses)) != len(addresses):
        raise BadInput("every member needs an address of its own")
    if not 0 <= me < len(addresses):
        raise BadInput(f"me={me} is not one of the {len(addresses)} members, which are numbered from 0")
    if (order is None) == (protocol is None):
        raise BadInput("say either which order the group keeps or which protocol it runs")
    name, usual = (protocol, {}) if protocol is not None else registry.for_order(order or "")
    if not 0.1 <= timeout_s <= 3600:
        raise BadInput(f"timeout_s must be 0.1 to 3600 seconds, not {timeout_s}")
    join_s = timeout_s if join_s is None else join_s
    if not 0.1 <= join_s <= 86_400:
        raise BadInput(f"join_s must be 0.1 to 86400 seconds, not {join_s}")
    listening = addresses[me] if listen is None else read_address(listen)
    return Settings(
        group=group,
        me=me,
        members=addresses,
        listen=listening,
        protocol=name,
        options=options if isinstance(options, msgspec.Struct) else registry.read_options(name, options or usual),
        trust=_trust((*addresses, listening), secret, certificates, insecure),
        secret=_read_secret(secret),
        certificates=certificates,
        timeout_s=timeout_s,
        join_s=join_s,
        handshake_s=min(5.0, max(0.2, timeout_s / 4)),
    )


def _trust(
    addresses: Sequence[Address], secret: bytes | str | None, certificates: Certificates | None, insecure: bool
) -> Trust:
    if secret is not None and certificates is not None:
        raise BadInput("secure a group by a secret or by certificates, not by both")
    if certificates is not None:
        return Trust.TLS
    if secret is not None:
        return Trust.SECRET
    if insecure or all(address.is_loopback() for address in addresses):
        return Trust.OPEN
    outside = next(address for address in addresses if not address.is_loopback())
    raise BadInput(f"{outside} is not a loopback address: give a secret or certificates (or insecure, to go without)")


def _read_secret(secret: bytes | str | None) -> bytes | None:
    if secret is None:
        return None
    data = secret.encode() if isinstance(secret, str) else secret
    if len(data) < SECRET_BYTES_MIN:
        raise BadInput(f"a group's secret needs at least {SECRET_BYTES_MIN} bytes; `quire keys --secret` makes one")
    return data


def read_secret_file(path: Path) -> bytes:
    """The secret in a file, without the space around it; raises BadInput in one sentence."""
    try:
        data = path.read_bytes().strip()
    except OSError as error:
        raise BadInput(f"the group's secret cannot be read from {path}: {error.strerror}") from error
    _read_secret(data)
    return data


def tls_contexts(certificates: Certificates) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """Contexts to accept and to connect with: TLS 1.3, both sides certified by the group's own authority."""
    contexts = []
    for role in (ssl.PROTOCOL_TLS_SERVER, ssl.PROTOCOL_TLS_CLIENT):
        context = ssl.SSLContext(role)
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        # Members are known by the names in their certificates, which the connection checks, not by host names.
        context.check_hostname = False
        context.verify_mode = ssl.CERT_REQUIRED
        if role == ssl.PROTOCOL_TLS_SERVER:
            # A resumed session would be let in without showing its certificate again.
            context.num_tickets = 0
        try:
            context.load_verify_locations(certificates.authority)
            context.load_cert_chain(certificates.certificate, certificates.key)
        except (OSError, ssl.SSLError) as error:
            raise BadInput(f"the group's certificates cannot be used: {error}") from error
        contexts.append(context)
    return contexts[0], contexts[1]
