"""The plan file of a run: which group, how it is secured, what to send.

The same file serves all members of a group, on whatever hosts they run; only the member's own number is given separately.
Paths in it are relative to it, and `{me}` in them stands for the member's number.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from quire.live.dynamic import joining as dynamic
from quire.live.dynamic.joining import Delivery, DynamicSettings, read_dynamic_settings
from quire.live.dynamic.recording import identify_member
from quire.live.identity import run_name
from quire.live.load import Load
from quire.live.network_options import JOIN_S, TIMEOUT_S, Certificates, Network, read_secret_file
from quire.live.services.registry import SERVICES
from quire.live.settings import Settings, choose_protocol, read_settings
from quire.model.errors import BadInput
from quire.protocols.registry import convert_options
from quire.views.core import FIXED_UNLESS_ASKED, IN_VIEWS

MESSAGES_MAX = 1_000_000_000
SIZE_MAX = 1 << 20


class Plan(Load, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Read by `read_plan`. Without `messages` a member sends the lines of its standard input."""

    members: tuple[str, ...]
    """The address of each, by which the others reach it."""
    listen: str | None = None
    """Where this member listens, if it is not its address: `0.0.0.0:7000` behind a translated address."""
    group: str = "quire"
    order: str | None = None
    protocol: str | None = None
    options: dict[str, object] = {}  # noqa: RUF012 - msgspec copies it.
    secret_file: str | None = None
    """Where the group's secret is."""
    certificates: str | None = None
    """The directory of a member's certificate, key and authority, as `quire keys` makes it."""
    insecure: bool = False
    timeout_s: float | None = None
    """How long a member may be silent before the others go on without it, or give their group up where it is fixed."""
    join_s: float = JOIN_S
    """How long members may take to join."""
    observe: tuple[str, ...] = ()
    """Where each member can be observed; nowhere if not given, or if it is empty."""
    observe_token_file: str | None = None
    """The file with the token that observers must present."""
    out: str | None = None
    """Directory for the member's part of the trace; none is kept if not given."""
    journal: str | None = None
    """Directory for the member's journal, if it has one."""
    delivery: Delivery | None = None
    clusters: tuple[str, ...] = ()
    """The cluster of each member of a hierarchy, if its members may change."""
    register: tuple[str, ...] = ()
    """Where sequencers with backups keep their register, one address for each; their own ports plus 1000 if not given."""

    def is_dynamic(self) -> bool:
        """Whether the members of this group may change. Otherwise its members are fixed, or it is a service."""
        name = choose_protocol(self.order, self.protocol)[0]
        if name in FIXED_UNLESS_ASKED:
            return self.journal is not None or self.delivery is not None or bool(self.clusters)
        return name in IN_VIEWS

    def settings(self, me: int) -> Settings:
        """What a member of a fixed group, or a process of a service, needs to join; raises BadInput in one sentence where the
        plan makes no sense."""
        self._check()
        name, _ = choose_protocol(self.order, self.protocol)
        if self.journal is not None or self.delivery is not None:
            raise BadInput(f"{name} keeps no journal and knows no delivery; choose one of {', '.join(IN_VIEWS)}")
        if self.clusters:
            raise BadInput(f"{name} knows no clusters; choose the protocol hierarchy")
        service = SERVICES.get(name)
        settings = read_settings(
            self.group,
            me,
            self.members,
            protocol=name,
            options=self.options if service is None else convert_options(service.name, service.options, self.options),
            network=self.network(me),
        )
        return msgspec.structs.replace(settings, register=self.register)

    def dynamic_settings(self, me: int, journal: Path | None = None) -> DynamicSettings:
        """The same for a member of a group that changes. `journal`: where it is, whatever the plan says."""
        self._check()
        if journal is None and self.journal is not None:
            journal = Path(self.journal.replace("{me}", str(me)))
        return read_dynamic_settings(
            self.group,
            me,
            members=self.members,
            order=self.order,
            protocol=self.protocol,
            options=self.options,
            journal=journal,
            delivery=self.delivery,
            cluster=self.clusters[me] if self.clusters else "",
            network=self.network(me),
        )

    def check(self, me: int) -> None:
        """Raise BadInput where this member could not take part."""
        if self.is_dynamic():
            self.dynamic_settings(me)
        else:
            self.settings(me)

    @property
    def silence_s(self) -> float:
        """How long a member may be silent: as given, or the default of this kind of group."""
        usual_s = dynamic.TIMEOUT_S if self.is_dynamic() else TIMEOUT_S
        return usual_s if self.timeout_s is None else self.timeout_s

    def network(self, me: int) -> Network:
        token = self.observe_token_file if self.observe else None
        folder = None if self.certificates is None else Path(self.certificates.replace("{me}", str(me)))
        return Network(
            secret=None if self.secret_file is None else read_secret_file(Path(self.secret_file)),
            certificates=None if folder is None else Certificates.of(folder),
            insecure=self.insecure,
            listen=self.listen,
            timeout_s=self.silence_s,
            join_s=self.join_s,
            observe=(self.observe[me] or None) if self.observe else None,
            observe_token=None if token is None else read_secret_file(Path(token)).decode(),
        )

    def messages_in_all(self) -> int | None:
        """How many messages the whole group sends; None if nobody knows."""
        if self.messages is None:
            return None
        return self.messages * (len(self.members) if self.senders is None else len(self.senders))

    def run_name(self) -> str:
        if self.is_dynamic():
            return identify_member(self.dynamic_settings(0), self.described()).run
        return run_name(self.settings(0), self.described())

    def _check(self) -> None:
        if self.observe and len(self.observe) != len(self.members):
            raise BadInput(f"observe needs one address for each of the {len(self.members)} members, not {len(self.observe)}")
        if self.clusters and len(self.clusters) != len(self.members):
            raise BadInput(f"clusters needs one name for each of the {len(self.members)} members, not {len(self.clusters)}")
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
                raise BadInput(f"sender {sender} is not a member: a group of {last + 1} has members 0 to {last}")


def read_plan(path: Path) -> Plan:
    """The plan in a TOML file, with its paths made absolute; raises BadInput in one sentence."""
    try:
        text = path.read_bytes()
    except OSError as error:
        raise BadInput(f"cannot read {path}: {error.strerror}") from error
    try:
        plan = msgspec.toml.decode(text, type=Plan)
    except msgspec.DecodeError as error:
        raise BadInput(f"{path} does not describe a group: {' '.join(str(error).split())}") from error
    base = path.resolve().parent
    paths = {name: getattr(plan, name) for name in ("secret_file", "certificates", "observe_token_file", "out", "journal")}
    return msgspec.structs.replace(plan, **{name: str(base / text) for name, text in paths.items() if text is not None})
