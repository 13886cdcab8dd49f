"""Collects the parts of a trace that the processes of a run wrote, on whatever hosts, into one run directory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import chain, groupby
from pathlib import Path

import numpy as np

from quire.live.clock import stopwatch_s
from quire.live.services.registry import SERVICES
from quire.model.errors import BadInput
from quire.model.moments import Happened
from quire.model.orders import Guarantee
from quire.trace.kinds import DELIVER
from quire.trace.parts.description import PartEnd
from quire.trace.parts.observing import Observed, Observing
from quire.trace.parts.runs import RunParts, runs_in
from quire.trace.parts.survey import RunSurvey
from quire.trace.records import COUNT, FIRST, KIND, ORIGIN, TIME_NS
from quire.trace.schema import Outcome, RunInfo
from quire.trace.statistics import Statistics, Summary, arrivals_of, per_message
from quire.trace.store import RunWriter
from quire.trace.tables import Integers

_SECOND_NS = 1_000_000_000


class LiveSummary(Summary, frozen=True, kw_only=True):
    """Latency is wall-clock time from the multicast. Except at the origin it compares the clocks of two processes, so across
    hosts it is only as accurate as their clocks agree. `deliveries_per_s` is that of the slowest member."""

    source: str
    deliveries_per_s: float
    details: dict[str, object]
    """What only a service can report about a run."""
    notes: tuple[str, ...] = ()
    """Which processes' parts do not reach to the end, and what follows from it."""
    happened: tuple[Happened, ...] = ()
    """The faults during the run, and the views that resulted."""
    older: int = 0
    """How many earlier runs left their parts in the same directory."""


def collect(
    directory: Path,
    out: Path,
    *,
    without: Sequence[int] = (),
    observed: Sequence[Observed] = (),
    happened: Sequence[Happened] = (),
    force: bool = False,
) -> LiveSummary:
    """Make a run directory from the parts of the latest run in `directory`, which stay there. `without`: processes whose parts
    may be missing; `observed`: events of members of a changing group that another process saw; `happened`: what the report
    is to tell. Raises BadInput where other parts are missing, or where there is none at all."""
    with _reading(directory):
        older = len(runs_in(directory)) - 1
        survey = RunSurvey(latest_run(directory), without)
        return _write_run(survey, out, observed, happened, older=older, force=force)


def latest_run(directory: Path) -> RunParts:
    """The latest run of which there are parts in a directory; raises BadInput where there is none."""
    with _reading(directory):
        runs = runs_in(directory)
    if not runs:
        raise BadInput(f"{directory} holds no part of a run; run the processes with trace={directory}")
    return runs[-1]


@contextmanager
def _reading(directory: Path) -> Iterator[None]:
    """Turn errors while reading a directory into BadInput."""
    try:
        yield
    except OSError as error:
        if error.filename is None or not Path(error.filename).is_relative_to(directory):
            raise
        raise BadInput(f"cannot read {error.filename}: {error.strerror}") from error


def _write_run(
    survey: RunSurvey, out: Path, observed: Sequence[Observed], happened: Sequence[Happened], *, older: int, force: bool
) -> LiveSummary:
    began = stopwatch_s()
    identity = survey.identity
    statistics, clock = Statistics(survey.members), _Clock(survey)
    with RunWriter(out, identity.run, force=force) as writer:
        for process, parts in groupby(survey.parts, lambda each: survey.numbers[each.part.process]):
            for piece in Observing(process, observed)(chain.from_iterable(map(survey.pieces, parts))):
                statistics.absorb(process, piece.names, piece.records)
                clock.absorb(process, piece.records, statistics)
                writer.write(process, piece.names, piece.records)
        ends = [each.end for each in survey.parts if each.end is not None]
        details = _details(survey, ends)
        info = _info(survey, statistics, details, happened)
        writer.finish(info)
    loads = [end.relay_load for end in ends if end.relay_load is not None]
    return LiveSummary(
        run=info.run,
        source=info.source,
        protocol=info.protocol,
        options=info.options,
        members=info.members,
        messages=info.outcome.messages,
        deliveries=info.outcome.deliveries,
        complete=info.outcome.complete,
        crashed=info.outcome.crashed,
        notes=info.outcome.notes,
        happened=info.outcome.happened,
        older=older,
        deliveries_per_s=clock.deliveries_per_s(statistics),
        details=details,
        packets=statistics.packet_counts(),
        packets_point_to_point=statistics.copy_counts(),
        latency=statistics.latency(),
        header_bytes=statistics.header_bytes,
        header_bytes_point_to_point=statistics.header_bytes_point_to_point,
        header_bytes_per_message=statistics.header_bytes_point_to_point / max(info.outcome.messages, 1),
        header_entries_per_message=per_message(sum(each.entries for each in loads) if loads else None, info.outcome.messages),
        arrivals=arrivals_of([each.arrived for each in loads], [each.role for each in loads]) if loads else None,
        wall_s=stopwatch_s() - began,
        digest=statistics.digest(),
        trace=str(out),
    )


def _details(survey: RunSurvey, ends: Sequence[PartEnd]) -> dict[str, object]:
    """The final reports of the processes of a service with a planned load, combined."""
    service = SERVICES.get(survey.identity.protocol)
    if service is None or len(ends) < len(survey.parts) or not any(end.details for end in ends):
        return {}
    return service.summarise([end.details for end in ends])


def _info(survey: RunSurvey, statistics: Statistics, details: dict[str, object], happened: Sequence[Happened]) -> RunInfo:
    identity = survey.identity
    # A service that may refuse requests knows better than a count of deliveries whether everything was done; and where a
    # majority is enough, not every process delivers everything.
    counted = identity.views or Guarantee.AGREEMENT not in identity.promises or (statistics.delivered == statistics.due).all()
    everything = bool(details.get("complete", counted))
    clients = {str(number): process for process, number in survey.numbers.items() if number != process}
    return RunInfo(
        run=identity.run,
        source="run",
        protocol=identity.protocol,
        options=identity.options,
        members=survey.members,
        groups=survey.groups(),
        promises=identity.promises,
        settings={"group": identity.group, **identity.settings}
        | ({"details": details} if details else {})
        | ({"names": survey.names()} if survey.names() else {"clients": clients} if clients else {}),
        versions=survey.parts[0].part.description.versions,
        outcome=Outcome(
            complete=everything and not survey.ended_early,
            messages=int(statistics.sent.sum()),
            deliveries=int(statistics.delivered.sum()),
            crashed=tuple(sorted(survey.ended_early)),
            notes=tuple(survey.notes()),
            happened=tuple(happened),
        ),
    )


class _Clock:
    """Latency and throughput, from the times in the records of all members."""

    def __init__(self, survey: RunSurvey) -> None:
        self._sends = [survey.sent(process) for process in range(survey.members)]
        self._began_ns: dict[int, int] = {}
        self._ended_ns: dict[int, int] = {}

    def absorb(self, process: int, records: Integers, statistics: Statistics) -> None:
        """Process the next records of a process. A delivered run is always a part of one that was sent."""
        if not len(records):
            return
        self._began_ns.setdefault(process, int(records[0, TIME_NS]))
        deliveries = records[records[:, KIND] == DELIVER]
        if not len(deliveries):
            return
        self._ended_ns[process] = int(deliveries[-1, TIME_NS])
        for origin, (firsts, times) in enumerate(self._sends):
            of_origin = deliveries[deliveries[:, ORIGIN] == origin]
            if not len(firsts) or not len(of_origin):
                continue  # What a crashed process sent last may not be recorded.
            sent_ns = times[np.searchsorted(firsts, of_origin[:, FIRST], side="right") - 1]
            latencies = statistics.origin if origin == process else statistics.remote
            latencies.add(np.maximum(of_origin[:, TIME_NS] - sent_ns, 0), of_origin[:, COUNT])

    def deliveries_per_s(self, statistics: Statistics) -> float:
        """The throughput of the slowest member, from its first event to its last delivery."""
        rates = [
            int(statistics.delivered[process].sum()) * _SECOND_NS / max(ended_ns - self._began_ns[process], 1)
            for process, ended_ns in self._ended_ns.items()
        ]
        return round(min(rates, default=0.0), 1)
