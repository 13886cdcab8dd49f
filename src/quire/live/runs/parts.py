"""From what each member recorded to one run directory.

A member leaves two files: its records as they were spooled, and, once they are whole, a description of what it took part
in. `assemble` puts the parts of all members together; where they ran does not matter.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

import msgspec
import numpy as np

from quire.live.groups.driver import Burden
from quire.live.runs.plan import Plan
from quire.live.services.registry import SERVICES
from quire.live.services.serving import Share
from quire.live.settings import Settings
from quire.live.spool import GROUP_NAME, Spool, make_recorder
from quire.model.errors import BadInput
from quire.model.orders import Guarantee, implied_by, in_order
from quire.protocols import registry
from quire.trace.logs import RECORD_BYTES, count_records, read_records, records_file
from quire.trace.recorder import RECORD_FIELDS, Address, Integers, Recorder
from quire.trace.schema import DELIVER, FORMAT, SEND, Outcome, RunInfo
from quire.trace.statistics import Statistics, Summary, arrivals_of, per_message
from quire.trace.store import RunWriter

_MICROSECOND_NS = 1000
_SECOND_NS = 1_000_000_000


class ShareResult(msgspec.Struct, frozen=True):
    """What a process of a service says at its end; promises and groups are the same in all of them."""

    promises: tuple[Guarantee, ...]
    groups: dict[str, tuple[int, ...]]
    details: dict[str, object]
    settings: dict[str, object] = {}


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """What one member took part in, and how to read its records. All up to `versions` are equal at all members."""

    format: int = FORMAT
    run: str
    group: str
    protocol: str
    options: dict[str, object]
    members: int
    load: dict[str, object]
    versions: dict[str, str]
    process: int
    packet_names: tuple[str, ...]
    addresses: tuple[Address, ...]
    records: int
    share: ShareResult | None = None
    """What a process of a service says of it."""
    burden: Burden | None = None
    """What it bore, where members pass on what is for others."""


class LiveSummary(Summary, frozen=True, kw_only=True):
    """Latency is wall-clock time from the multicast. Elsewhere than at the origin it compares the clocks of two
    processes, so over several hosts it is as good as their clocks agree. `deliveries_per_s` is of the slowest member."""

    source: str
    deliveries_per_s: float
    details: dict[str, object]
    """What only a service can say of a run."""


def description_file(directory: Path, process: int) -> Path:
    return directory / f"p{process:05d}.json"


def open_spool(directory: Path, plan: Plan, settings: Settings) -> Spool:
    """Where a member records its events; they become a part of a run once they are described."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
        description_file(directory, settings.me).unlink(missing_ok=True)
    except OSError as error:
        raise BadInput(f"cannot write {directory}: {error.strerror}") from error
    return Spool(settings.me, len(settings.members), records_file(directory, settings.me), plan.run_name(settings))


def write_part(
    directory: Path,
    plan: Plan,
    settings: Settings,
    recorder: Recorder,
    share: Share | None = None,
    burden: Burden | None = None,
) -> None:
    """Describe the records that this member has left in the directory; from then on they are a part of a run."""
    part = Part(
        run=plan.run_name(settings),
        group=plan.group,
        protocol=settings.protocol,
        options=msgspec.to_builtins(settings.options),
        members=len(plan.members),
        load=msgspec.to_builtins(plan.load()),
        versions={"quire": version("quire")},
        process=settings.me,
        packet_names=tuple(recorder.packet_names()),
        addresses=tuple(recorder.addresses()),
        share=None
        if share is None
        else ShareResult(
            in_order(share.promises()),
            dict(share.groups()),
            msgspec.to_builtins(share.details()),
            msgspec.to_builtins(share.run_settings()),
        ),
        burden=burden,
        records=count_records(records_file(directory, settings.me)),
    )
    whole = description_file(directory, settings.me)
    partial = whole.with_suffix(".partial")
    partial.write_bytes(msgspec.json.format(msgspec.json.encode(part)) + b"\n")
    os.replace(partial, whole)


def assemble(directory: Path, out: Path, *, force: bool = False) -> LiveSummary:
    """Make a run directory of the parts in `directory`, which stay; raises BadInput where they are not one whole run."""
    began = time.perf_counter()
    parts = read_parts(directory)
    statistics = Statistics(parts[0].members)
    clock = _Clock([_sends(directory, part) for part in parts])
    with RunWriter(out, parts[0].run, force=force) as writer:
        for part in parts:
            recorder = make_recorder(part.process, part.members)
            for name in part.packet_names:
                recorder.packet_type(name)
            for address in part.addresses:
                recorder.address(address)
            for records in read_records(records_file(directory, part.process)):
                recorder.write(records.tobytes())
                statistics.absorb(recorder)
                clock.absorb(part.process, records, statistics)
                writer.append(part.process, recorder.take(part.run))
        shares = [part.share for part in parts if part.share is not None]
        details = SERVICES[parts[0].protocol].summarise([share.details for share in shares]) if shares else {}
        info = _info(parts[0], statistics, details)
        burdens = [part.burden for part in parts if part.burden is not None]
        writer.finish(info)
    return LiveSummary(
        run=info.run,
        source=info.source,
        protocol=info.protocol,
        options=info.options,
        members=info.members,
        messages=info.outcome.messages,
        deliveries=info.outcome.deliveries,
        complete=info.outcome.complete,
        crashed=(),
        deliveries_per_s=clock.deliveries_per_s(statistics),
        details=details,
        packets=statistics.packet_counts(),
        packets_point_to_point=statistics.copy_counts(),
        latency=statistics.latency(),
        header_bytes=statistics.header_bytes,
        header_bytes_point_to_point=statistics.header_bytes_point_to_point,
        header_bytes_per_message=statistics.header_bytes_point_to_point / max(info.outcome.messages, 1),
        header_entries_per_message=per_message(
            sum(each.entries for each in burdens) if burdens else None, info.outcome.messages
        ),
        arrivals=arrivals_of([each.arrived for each in burdens], [each.role for each in burdens]) if burdens else None,
        wall_s=time.perf_counter() - began,
        digest=statistics.digest(),
        trace=str(out),
    )


def read_parts(directory: Path) -> Sequence[Part]:
    """The parts of all members, in their order; raises BadInput where one is missing or of another run."""
    parts = [_read_part(path) for path in sorted(directory.glob("p[0-9][0-9][0-9][0-9][0-9].json"))]
    if not parts:
        raise BadInput(f"{directory} holds no part of a run; `quire member … --out DIR` leaves one there")
    first = parts[0]
    for part in parts[1:]:
        for what in ("format", "run", "group", "protocol", "options", "members", "load"):
            here, there = getattr(first, what), getattr(part, what)
            if here != there:
                raise BadInput(
                    f"members {first.process} and {part.process} took part in different runs: {what} {here} and {there}"
                )
    missing = sorted(set(range(first.members)) - {part.process for part in parts})
    if missing:
        names = ", ".join(f"p{member:05d}.json and p{member:05d}.records" for member in missing)
        raise BadInput(f"{directory} lacks the parts of members {missing}; copy {names} there")
    return parts


def _read_part(path: Path) -> Part:
    try:
        part = msgspec.json.decode(path.read_bytes(), type=Part)
        size = records_file(path.parent, part.process).stat().st_size
    except OSError as error:
        raise BadInput(f"cannot read {error.filename}: {error.strerror}") from error
    except msgspec.DecodeError as error:
        raise BadInput(f"{path} does not describe a member's part of a run: {error}") from error
    if size != part.records * RECORD_BYTES:
        raise BadInput(f"{records_file(path.parent, part.process)} is not whole; copy it again")
    return part


def _info(part: Part, statistics: Statistics, details: dict[str, object]) -> RunInfo:
    # A service that refuses some of what it is asked knows better than a count of deliveries whether all was done.
    everything = bool(details.get("complete", (statistics.delivered == statistics.due).all()))
    settings: dict[str, object] = {"group": part.group, "load": part.load}
    if part.share is None:
        groups = {GROUP_NAME: tuple(range(part.members))}
        promises = in_order(implied_by(registry.find(part.protocol).protocol.promises))
    else:
        groups, promises = part.share.groups, in_order(implied_by(frozenset(part.share.promises)))
        settings |= part.share.settings | {"details": details}
    return RunInfo(
        run=part.run,
        source="run",
        protocol=part.protocol,
        options=part.options,
        members=part.members,
        groups=groups,
        promises=promises,
        settings=settings,
        versions=part.versions,
        outcome=Outcome(complete=everything, messages=int(statistics.sent.sum()), deliveries=int(statistics.delivered.sum())),
    )


def _sends(directory: Path, part: Part) -> tuple[Integers, Integers]:
    """The number of the first message of every run that a member sent, and when it sent it."""
    sends = [records[records[:, 0] == SEND] for records in read_records(records_file(directory, part.process))]
    together = np.concatenate(sends) if sends else np.empty((0, RECORD_FIELDS), np.int64)
    return together[:, 2], together[:, 5]


class _Clock:
    """How long messages took and how fast they came, by the times in the records of all members."""

    def __init__(self, sends: Sequence[tuple[Integers, Integers]]) -> None:
        self._sends = sends
        self._began_ns: dict[int, int] = {}
        self._ended_ns: dict[int, int] = {}

    def absorb(self, process: int, records: Integers, statistics: Statistics) -> None:
        """Take the next records of a process. A delivered run is always a part of one that was sent."""
        self._began_ns.setdefault(process, int(records[0, 5]))
        deliveries = records[records[:, 0] == DELIVER]
        if not len(deliveries):
            return
        self._ended_ns[process] = int(deliveries[-1, 5])
        for origin, (firsts, times) in enumerate(self._sends):
            of_origin = deliveries[deliveries[:, 1] == origin]
            sent_ns = times[np.searchsorted(firsts, of_origin[:, 2], side="right") - 1]
            # Nanoseconds would be all different, and they are not what a clock that may be set is good for.
            waits_ns = np.maximum(of_origin[:, 5] - sent_ns, 0) // _MICROSECOND_NS * _MICROSECOND_NS
            samples = statistics.origin if origin == process else statistics.remote
            samples.add_counted(waits_ns, of_origin[:, 3])

    def deliveries_per_s(self, statistics: Statistics) -> float:
        """Of the slowest member, from its first event to its last delivery."""
        rates = [
            int(statistics.delivered[process].sum()) * _SECOND_NS / max(ended_ns - self._began_ns[process], 1)
            for process, ended_ns in self._ended_ns.items()
        ]
        return round(min(rates, default=0.0), 1)
