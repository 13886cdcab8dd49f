"""What a member is told when it joins, checked, and what it tells its peers so that all run the same thing."""

from __future__ import annotations

import ssl
from collections.abc import Mapping, Sequence
from ipaddress import ip_address
from pathlib import Path

import msgspec

from quire.live.frames import FRAME_BYTES_MAX
from quire.live.handshake import Trust
from quire.model.errors import BadInput
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


def difference(mine: Introduction, theirs: Introduction, peer: int) -> str:
    """A sentence on the first thing that differs between two members of what should be one group; empty if nothing."""
    for what in ("group", "protocol", "options", "members", "epoch"):
        here, there = getattr(mine, what), getattr(theirs, what)
        if here != there:
            return f"member {peer} has {what} {there!r}, this member {here!r}; give all members the same"
    return ""


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
    if not separator or not host or not port.isdigit() or not 0 < int(port) < 65536:
        raise BadInput(f"{text!r} is not an address; write HOST:PORT, as in 127.0.0.1:7000")
    return Address(host, int(port))


class Certificates(msgspec.Struct, frozen=True):
    """Files in PEM: the group's authority, and this member's certificate and key."""

    authority: Path
    certificate: Path
    key: Path


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """Everything about one member of one live group. Made by `read_settings`, which checks it."""

    group: str
    me: int
    members: tuple[Address, ...]
    protocol: str
    options: msgspec.Struct
    trust: Trust = Trust.OPEN
    secret: bytes | None = None
    certificates: Certificates | None = None
    timeout_s: float = 10.0
    """How long another member may be silent before it counts as lost."""
    handshake_s: float = 5.0
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
    """The DNS name by which a certificate names a member. Groups' names are free text, so they are spelled in hex."""
    return f"member-{member}.{group.encode().hex()[:60]}.quire.internal"


def read_settings(
    group: str,
    me: int,
    members: Sequence[str],
    *,
    order: str | None = None,
    protocol: str | None = None,
    options: Mapping[str, object] | None = None,
    secret: bytes | str | None = None,
    certificates: Certificates | None = None,
    insecure: bool = False,
    timeout_s: float = 10.0,
) -> Settings:
    """Check what a caller wants of a group; raises BadInput in one sentence."""
    if not group or len(group) > 64:
        raise BadInput("a group needs a name of 1 to 64 characters")
    addresses = tuple(map(read_address, members))
    if len(set(addresses)) != len(addresses):
        raise BadInput("every member needs an address of its own")
    if not 0 <= me < len(addresses):
        raise BadInput(f"me={me} is not one of the {len(addresses)} members, which are numbered from 0")
    if (order is None) == (protocol is None):
        raise BadInput("say either which order the group keeps or which protocol it runs")
    name = protocol if protocol is not None else registry.for_order(order or "")
    if not 0.1 <= timeout_s <= 3600:
        raise BadInput(f"timeout_s must be 0.1 to 3600 seconds, not {timeout_s}")
    return Settings(
        group=group,
        me=me,
        members=addresses,
        protocol=name,
        options=registry.read_options(name, options or {}),
        trust=_trust(addresses, secret, certificates, insecure),
        secret=_read_secret(secret),
        certificates=certificates,
        timeout_s=timeout_s,
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


def tls_contexts(certificates: Certificates) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """Contexts to accept and to connect with: TLS 1.3, both sides certified by the group's own authority."""
    contexts = []
    for role in (ssl.PROTOCOL_TLS_SERVER, ssl.PROTOCOL_TLS_CLIENT):
        context = ssl.SSLContext(role)
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        # Members are known by the names in their certificates, which the connection checks, not by host names.
        context.check_hostname = False
        context.verify_mode = ssl.CERT_REQUIRED
        try:
            context.load_verify_locations(certificates.authority)
            context.load_cert_chain(certificates.certificate, certificates.key)
        except (OSError, ssl.SSLError) as error:
            raise BadInput(f"the group's certificates cannot be used: {error}") from error
        contexts.append(context)
    return contexts[0], contexts[1]
