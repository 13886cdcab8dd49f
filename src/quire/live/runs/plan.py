"""What a member is to do, as a file says it: which group, how it is secured, what to send.

The same file serves all members of a group, on whatever hosts they run; only the member's own number comes apart.
Paths in it are relative to it, and `{me}` in them stands for the member's number.
"""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path

import msgspec

from quire.live.services.registry import SERVICES
from quire.live.settings import Certificates, Settings, read_settings
from quire.model.errors import BadInput
from quire.protocols.registry import convert_options

MESSAGES_MAX = 1_000_000_000
SIZE_MAX = 1 << 20


class Plan(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Read by `read_plan`. Without `messages` a member sends the lines of its standard input."""

    members: tuple[str, ...]
    """The address of each, by which the others reach it."""
    listen: str | None = None
    """Where this member listens, if it is not its address: `0.0.0.0:7000` behind a translated address."""
    group: str = "quire"
    order: str | None = None
    protocol: str | None = None
    options: dict[str, object] = {}
    secret_file: str | None = None
    """Where the group's secret is."""
    certificates: str | None = None
    """The directory of a member's certificate, key and authority, as `quire keys` makes it."""
    insecure: bool = False
    timeout_s: float = 60.0
    """How long a member may be silent before the others give it up."""
    join_s: float | None = None
    """How long members may take to come; as long as they may be silent if not given."""
    messages: int | None = None
    """How many messages each sender sends."""
    size: int = 64
    """Bytes of each message."""
    rate: float | None = None
    """Messages a second of each sender; as fast as the group takes them if not given."""
    senders: tuple[int, ...] | None = None
    """Who sends; everybody if not given."""
    out: str | None = None
    """Directory for the member's part of the trace; none is kept if not given."""

    def settings(self, me: int) -> Settings:
        """What this member needs to join; raises BadInput in one sentence where the plan makes no sense."""
        self._check_load()
        service = SERVICES.get(self.protocol or "")
        return read_settings(
            self.group,
            me,
            self.members,
            order=self.order,
            protocol=self.protocol,
            options=self.options if service is None else convert_options(service.name, service.options, self.options),
            secret=None if self.secret_file is None else _read_secret(Path(self.secret_file)),
            certificates=None if self.certificates is None else _certificates_of(self.certificates, me),
            insecure=self.insecure,
            timeout_s=self.timeout_s,
            join_s=self.join_s,
            listen=self.listen,
        )

    def sends(self, me: int) -> bool:
        return self.senders is None or me in self.senders

    def messages_in_all(self) -> int | None:
        """How many messages the whole group sends; None if nobody knows."""
        if self.messages is None:
            return None
        return self.messages * (len(self.members) if self.senders is None else len(self.senders))

    def load(self) -> dict[str, object]:
        """What the group sends, for the description of the run."""
        return {"messages": self.messages, "size": self.size, "rate": self.rate, "senders": self.senders}

    def run_name(self, settings: Settings) -> str:
        """The same at all members, because it follows from what must be equal at all of them."""
        facts = (self.group, self.members, settings.protocol, settings.options, self.load())
        return f"{settings.protocol}-{sha256(msgspec.json.encode(facts, order='sorted')).hexdigest()[:8]}"

    def _check_load(self) -> None:
        if self.messages is not None and not 1 <= self.messages <= MESSAGES_MAX:
            raise BadInput(f"messages must be from 1 to {MESSAGES_MAX}, not {self.messages}")
        if not 0 <= self.size <= SIZE_MAX:
            raise BadInput(f"size must be from 0 to {SIZE_MAX}, not {self.size}")
        if self.rate is not None and not 0 < self.rate <= 1e9:
            raise BadInput(f"rate must be a positive number of messages a second, not {self.rate}")
        senders = self.senders
        if senders is None:
            return
        if not senders or len(set(senders)) != len(senders):
            raise BadInput("senders must name at least one member, and none twice")
        for sender in senders:
            if not 0 <= sender < len(self.members):
                last = len(self.members) - 1
                raise BadInput(f"sender {sender} is no member: a group of {last + 1} has members 0 to {last}")


def read_plan(path: Path) -> Plan:
    """The plan in a TOML file, with its paths made absolute; raises BadInput in one sentence."""
    try:
        text = path.read_bytes()
    except OSError as error:
        raise BadInput(f"cannot read {path}: {error.strerror}") from error
    try:
        plan = msgspec.toml.decode(text, type=Plan)
    except msgspec.DecodeError as error:
        raise BadInput(f"{path} is not the plan of a group: {' '.join(str(error).split())}") from error
    base = path.resolve().parent
    paths = {name: getattr(plan, name) for name in ("secret_file", "certificates", "out")}
    return msgspec.structs.replace(plan, **{name: str(base / text) for name, text in paths.items() if text is not None})


def _read_secret(path: Path) -> bytes:
    try:
        return path.read_bytes().strip()
    except OSError as error:
        raise BadInput(f"cannot read the group's secret in {path}: {error.strerror}") from error


def _certificates_of(directory: str, me: int) -> Certificates:
    own = Path(directory.replace("{me}", str(me)))
    return Certificates(own / "authority.pem", own / "certificate.pem", own / "key.pem")
