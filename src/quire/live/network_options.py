"""The options that all entry points to live groups share: security, listen address, timeouts, tracing, observation.

`join`, `join_objects`, `join_store`, `serve` and `connect` take these as keywords, which are declared once, here, and pass
them on as one value.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypedDict, TypeVar

import msgspec

from quire.live.events import Listener
from quire.model.errors import BadInput

SECRET_BYTES_MIN = 16

TIMEOUT_S = 10.0
JOIN_S = 600.0
"""Members may be started by hand, on several hosts."""
TCP = "tcp"

F = TypeVar("F", bound=Callable[..., Any])


class Certificates(msgspec.Struct, frozen=True):
    """Files in PEM: the group's authority, and this member's certificate and key."""

    authority: Path
    certificate: Path
    key: Path

    @classmethod
    def of(cls, folder: Path) -> Certificates:
        """The files in a member's folder as `quire keys` makes it."""
        return cls(folder / "authority.pem", folder / "certificate.pem", folder / "key.pem")


class NetworkOptions(TypedDict, total=False):
    """The keywords, each of which may be left out."""

    secret: bytes | str | None
    """The group's secret, the same everywhere, of at least 16 bytes."""
    certificates: Certificates | None
    """This member's certificate, which takes the place of a secret."""
    insecure: bool
    """Go without a secret or certificates beyond loopback."""
    listen: str | None
    """Where this member listens, if that is not its address among the members: behind a gateway, or in a container."""
    timeout_s: float
    """How long another member may be silent before it counts as lost."""
    join_s: float
    """How long the others may take to come."""
    trace: str | Path | None
    """The directory for this member's part of the run's trace; `quire collect` makes a run of the parts of all."""
    on_event: Listener | None
    """Called with each Event: peers that are awaited, come, go or stall, and messages that are held back for long."""
    observe: str | None
    """HOST:PORT where this member can be observed over HTTP: /metrics, /status, /events, /trace. On loopback, unless there is
    an `observe_token`."""
    observe_token: str | None
    """The token that observers must present, of at least 16 bytes."""
    transport: str
    """What carries the bytes: "tcp", or "memory" between members within one event loop, for tests."""


class Network(msgspec.Struct, frozen=True, kw_only=True):
    """The keywords as one value: `Network(**keywords)`, which raises TypeError for one that does not exist."""

    secret: bytes | str | None = None
    certificates: Certificates | None = None
    insecure: bool = False
    listen: str | None = None
    timeout_s: float = TIMEOUT_S
    join_s: float = JOIN_S
    trace: str | Path | None = None
    on_event: Listener | None = None
    observe: str | None = None
    observe_token: str | None = None
    transport: str = TCP

    def check(self) -> None:
        """Raise BadInput, in one sentence, for options that are invalid whatever the addresses."""
        if not 0.1 <= self.timeout_s <= 3600:
            raise BadInput(f"timeout_s must be 0.1 to 3600 seconds, not {self.timeout_s}")
        if not 0.1 <= self.join_s <= 86_400:
            raise BadInput(f"join_s must be 0.1 to 86400 seconds, not {self.join_s}")
        if self.secret is not None and self.certificates is not None:
            raise BadInput("secure a group by a secret or by certificates, not by both")
        if self.secret is not None:
            check_secret(self.secret)
        if self.observe_token is not None and self.observe is None:
            raise BadInput("observe_token is for whoever looks at this member: say with observe where it can be looked at")

    def secret_bytes(self) -> bytes | None:
        return self.secret.encode() if isinstance(self.secret, str) else self.secret

    def __repr__(self) -> str:
        """Without the secret, so that no traceback or log shows it."""
        return f"Network(timeout_s={self.timeout_s}, join_s={self.join_s}, listen={self.listen!r}, trace={self.trace!r})"


def takes_network_options(function: F) -> F:
    """Spell the keywords out in the signature of a function that ends in `**network`, for `help` and for editors."""
    signature = inspect.signature(function)
    own = [each for each in signature.parameters.values() if each.kind is not inspect.Parameter.VAR_KEYWORD]
    options = [
        inspect.Parameter(
            field.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=field.default,
            annotation=inspect.formatannotation(field.type),
        )
        for field in msgspec.structs.fields(Network)
    ]
    function.__signature__ = signature.replace(parameters=[*own, *options])  # type: ignore[attr-defined]
    return function


def check_secret(secret: bytes | str) -> None:
    if len(secret.encode() if isinstance(secret, str) else secret) < SECRET_BYTES_MIN:
        raise BadInput(f"a group's secret needs at least {SECRET_BYTES_MIN} bytes; `quire keys --secret` makes one")


def read_secret_file(path: Path) -> bytes:
    """The secret in a file, without the space around it; raises BadInput in one sentence."""
    try:
        data = path.read_bytes().strip()
    except OSError as error:
        raise BadInput(f"cannot read the group's secret in {path}: {error.strerror}") from error
    check_secret(data)
    return data
