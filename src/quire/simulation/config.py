"""The settings of a simulation (protocol, network, workload and faults) and their validation.

Times are simulated milliseconds. `parse_*` read the short texts of the command line; `check` refuses, with one sentence,
settings that cannot be simulated.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

import msgspec

from quire.model.errors import BadInput
from quire.model.messages import NUMBER_MAX, RUN_MESSAGES_MAX
from quire.simulation.delays import parse_delays, to_ns

MEMBERS_MAX = 4096
MESSAGES_MAX = 1_000_000_000
MULTICAST_SHARE = 0.2
PAYLOAD_BYTES_MAX = 1 << 26


class NetworkConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the simulated network does to packets."""

    delay: str = "constant:10"
    reorder: bool = False
    loss: float = 0.0
    duplicate: float = 0.0
    links: str = "auto"
    """auto: put reliable connections between the network and a protocol that needs them; raw: never."""


class WorkloadConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Who sends what, when, and to whom."""

    senders: tuple[int, ...] | None = None
    """The members that send; None for all."""
    messages: int = 100
    """How many messages each sender sends."""
    interval_ms: float = 50.0
    """The mean time between two submissions of a sender."""
    spacing: str = "even"
    """even or poisson."""
    burst: int = 1
    """How many submissions are made at once; as many intervals pass before the next burst."""
    batch: int = 1
    """How many consecutive messages are submitted together."""
    size: int = 64
    """Bytes of each message."""
    mode: str = "pipelined"
    """pipelined, or blocking: a sender waits for the local delivery of a submission before it makes the next."""
    broadcast: float | None = None
    """The share of submissions that go to everybody; None: all, or none if the protocol can address some of the members."""
    multicast: float | None = None
    """The share that go to a random set of members; what is left goes to one member. None: a fifth, if it can."""


class Crash(msgspec.Struct, frozen=True):
    member: int
    at_ms: float


class Pause(msgspec.Struct, frozen=True):
    member: int
    at_ms: float
    for_ms: float


class Partition(msgspec.Struct, frozen=True):
    sides: tuple[tuple[int, ...], ...]
    at_ms: float
    for_ms: float


class FaultConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Crashes, pauses and partitions, each at its time."""

    crashes: tuple[Crash, ...] = ()
    detect_ms: float | None = None
    """How long a member may be silent before the others exclude it; None for the timeout of live groups."""
    pauses: tuple[Pause, ...] = ()
    partitions: tuple[Partition, ...] = ()
    words: str = ""
    """What happens to the processes of a group that changes, like `kill 2@1s, restart 2@3s`."""


class SimulationConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Everything that determines a simulated run: the same values give the same trace."""

    protocol: str = "single-phase"
    options: dict[str, object] = {}
    members: int = 3
    seed: int = 0
    network: NetworkConfig = NetworkConfig()
    workload: WorkloadConfig = WorkloadConfig()
    faults: FaultConfig = FaultConfig()
    receipts: bool = False
    """Whether the trace records when each member received each message; group protocols only."""

    def senders(self) -> tuple[int, ...]:
        chosen = self.workload.senders
        return tuple(range(self.members)) if chosen is None else chosen


def check(config: SimulationConfig, processes: int | None = None) -> None:
    """Raise BadInput if this cannot be simulated. The protocol and its options are checked where they are created.

    A service has more processes than members; delays and faults apply to all of them.
    """
    _within("members", config.members, 1, MEMBERS_MAX)
    _within("seed", config.seed, 0, NUMBER_MAX)
    processes = config.members if processes is None else processes
    _check_network(config.network, processes)
    _check_workload(config)
    _check_faults(config.faults, processes)


def _check_network(network: NetworkConfig, members: int) -> None:
    parse_delays(network.delay, members)
    _choice("links", network.links, ("auto", "raw"))
    # A network that loses everything cannot be repaired, and a run over it would never end.
    if not 0 <= network.loss < 1:
        raise BadInput(f"loss is a probability from 0 to below 1, not {network.loss}")
    if not 0 <= network.duplicate <= 1:
        raise BadInput(f"duplicate is a probability from 0 to 1, not {network.duplicate}")


def _check_workload(config: SimulationConfig) -> None:
    workload, senders = config.workload, config.senders()
    for sender in senders:
        _is_member("sender", sender, config.members)
    if not senders or len(set(senders)) != len(senders):
        raise BadInput("senders must name at least one member, and none twice")
    _within("messages", workload.messages, 1, MESSAGES_MAX)
    _within("messages × senders", workload.messages * len(senders), 1, MESSAGES_MAX)
    _within("batch", workload.batch, 1, RUN_MESSAGES_MAX)
    _within("burst", workload.burst, 1, MESSAGES_MAX)
    _within("size", workload.size, 0, PAYLOAD_BYTES_MAX)
    _within("batch × size", workload.batch * workload.size, 0, PAYLOAD_BYTES_MAX)
    _choice("spacing", workload.spacing, ("even", "poisson"))
    _choice("mode", workload.mode, ("pipelined", "blocking"))
    interval_ns = to_ns(workload.interval_ms, "the interval")
    # A Poisson gap can be some forty times the mean; this leaves room for it and for everything after.
    if workload.messages * interval_ns * workload.burst > NUMBER_MAX // 64:
        raise BadInput("messages × interval × burst is longer than simulated time can be; ask for fewer or closer messages")


def fill_shares(workload: WorkloadConfig, *, addressed: bool) -> WorkloadConfig:
    """The workload with its shares filled in for a protocol that can, or cannot, address some of the members."""
    broadcast, multicast = workload.broadcast, workload.multicast
    if broadcast is None:
        broadcast = 0.0 if addressed else 1.0
    if multicast is None:
        multicast = min(MULTICAST_SHARE, 1 - broadcast)
    if not addressed and (broadcast < 1 or multicast > 0):
        raise BadInput("this protocol sends to the whole group only; leave out --broadcast and --multicast")
    if not (0 <= broadcast <= 1 and 0 <= multicast <= 1 and broadcast + multicast <= 1):
        raise BadInput(f"broadcast and multicast must be fractions of all submissions, not {broadcast} and {multicast}")
    return msgspec.structs.replace(workload, broadcast=broadcast, multicast=multicast)


def _check_faults(faults: FaultConfig, members: int) -> None:
    for crash in faults.crashes:
        _is_member("crash", crash.member, members)
        to_ns(crash.at_ms, "the time of a crash")
    crashed = [crash.member for crash in faults.crashes]
    if len(set(crashed)) != len(crashed):
        raise BadInput("a member can crash only once")
    if crashed and len(crashed) >= members:
        raise BadInput("at least one member must survive")
    if faults.detect_ms is not None:
        to_ns(faults.detect_ms, "the time to detect a crash")
    for pause in faults.pauses:
        _is_member("pause", pause.member, members)
        to_ns(pause.at_ms, "the time of a pause")
        to_ns(pause.for_ms, "the length of a pause")
    spans = sorted((pause.member, pause.at_ms, pause.at_ms + pause.for_ms) for pause in faults.pauses)
    for (member, _, end), (other, start, _) in pairwise(spans):
        if member == other and start <= end:
            raise BadInput(f"two pauses of member {member} overlap; write them as one")
    for partition in faults.partitions:
        listed = [member for side in partition.sides for member in side]
        for member in listed:
            _is_member("partition", member, members)
        if len(partition.sides) < 2 or not all(partition.sides) or len(set(listed)) != len(listed):
            raise BadInput("a partition needs at least two sides, none empty, and no member on two of them")
        to_ns(partition.at_ms, "the time of a partition")
        to_ns(partition.for_ms, "the length of a partition")


def _within(name: str, value: int, low: int, high: int) -> None:
    if not low <= value <= high:
        raise BadInput(f"{name} must be from {low} to {high}, not {value}")


def _is_member(what: str, member: int, members: int) -> None:
    if not 0 <= member < members:
        raise BadInput(f"{what} {member} is not a member: a group of {members} has members 0 to {members - 1}")


def _choice(name: str, value: str, choices: Sequence[str]) -> None:
    if value not in choices:
        raise BadInput(f"{name} must be {' or '.join(choices)}, not {value!r}")


_NUMBER = r"(\d+(?:\.\d+)?)"


def _matched(what: str, pattern: str, text: str, example: str) -> tuple[str, ...]:
    # ASCII only, and no more digits than any sensible number has.
    found = re.fullmatch(pattern, text, re.ASCII)
    if found is None or len(text) > 10_000:
        raise BadInput(f"cannot read {what} {text!r}; write it like {example}")
    return found.groups()


def parse_members(text: str) -> tuple[int, ...]:
    """`0,3` as members."""
    _matched("the members", r"(\d{1,9}(?:,\d{1,9})*)", text, "0,3")
    return tuple(map(int, text.split(",")))


def parse_crash(text: str) -> Crash:
    """`2@100`: member 2 crashes at 100 ms."""
    member, at = _matched("the crash", rf"(\d{{1,9}})@{_NUMBER}", text, "2@100 (member 2 at 100 ms)")
    return Crash(int(member), float(at))


def parse_pause(text: str) -> Pause:
    """`2@100+50`: member 2 pauses at 100 ms for 50 ms."""
    member, at, length = _matched(
        "the pause", rf"(\d{{1,9}})@{_NUMBER}\+{_NUMBER}", text, "2@100+50 (member 2 at 100 ms for 50 ms)"
    )
    return Pause(int(member), float(at), float(length))


def parse_partition(text: str) -> Partition:
    """`0,1/2,3@100+50`: from 100 ms for 50 ms, 0 and 1 cannot reach 2 and 3."""
    sides, at, length = _matched(
        "the partition", rf"([\d,/]+)@{_NUMBER}\+{_NUMBER}", text, "0,1/2,3@100+50 (two sides, at 100 ms for 50 ms)"
    )
    return Partition(tuple(parse_members(side) for side in sides.split("/")), float(at), float(length))


def parse_options(texts: Sequence[str]) -> dict[str, object]:
    """`NAME=VALUE` texts as a mapping; the values are checked by the protocol that takes them."""
    options: dict[str, object] = {}
    for text in texts:
        name, sign, value = text.partition("=")
        if not sign or not name:
            raise BadInput(f"cannot read the option {text!r}; write it like acks=economical")
        if name in options:
            raise BadInput(f"the option {name} is given twice")
        options[name] = value
    return options
