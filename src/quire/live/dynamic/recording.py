"""The part of a trace that a member of a changing group writes, ahead of anything that others can know.

Every event is written before the process sends, or writes to its journal, anything that depends on it. So a process that is
killed has recorded everything that others may know; only its last records may be known to nobody else. That is why the parts of
a run fit together however its processes ended.
"""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path

import msgspec

from quire.live import clock
from quire.live.dynamic.joining import DynamicSettings
from quire.live.events import Reporter
from quire.live.observing.observer import Observer
from quire.live.recording import Recording
from quire.model.orders import implied_by, in_order
from quire.trace.membership_recorder import GROUP, MembershipRecorder, number_of, promises
from quire.trace.parts.description import RunIdentity
from quire.trace.tail import TraceTail
from quire.trace.views import ViewEvent, ViewMember
from quire.views.effects import Report
from quire.views.process import Process

_HAPPENINGS = {"no-quorum": ViewEvent.BLOCKED, "quorum": ViewEvent.UNBLOCKED}


class MemberRecording:
    """Used once. Raises BadInput where the directory cannot be written to."""

    def __init__(
        self,
        settings: DynamicSettings,
        directory: Path | None,
        load: Mapping[str, object] | None = None,
        tail: TraceTail | None = None,
    ) -> None:
        """`load`: what a command is to send, if that is known beforehand. `tail`: the recent events for observers; with it,
        there need not be a directory."""
        self._number = number_of(settings.me)
        identity = identify_member(settings, load)
        self._recording = Recording(directory, identity, self._number, name=settings.me, at_once=True, tail=tail)
        self._tail = tail
        self._report: Reporter | None = None
        self._recorder: MembershipRecorder | None = None
        self.keep = self._recording.keep_up
        """Writes what was recorded, before others can know of it."""

    @property
    def failure(self) -> str:
        """Why some of the events are not in the part; empty if all are."""
        return self._recording.failure

    def watch(self, process: Process, report: Reporter) -> None:
        """Record what this process does, from its start. `report` is called if that cannot be written."""
        self._report = report
        if self._tail is not None:
            self._tail.lamport = lambda: process.lamport
        self._recorder = MembershipRecorder(process, self._recording.log, self._recording.wall_ns, self._meet)

    def reported(self, effect: Report) -> None:
        if self._recorder is not None and effect.kind in _HAPPENINGS:
            self._recorder.happened(_HAPPENINGS[effect.kind])

    async def end(self, failure: str = "") -> None:
        await self._recording.end(failure)

    def _meet(self, members: tuple[ViewMember, ...]) -> None:
        if self._report is not None:
            self._recording.begin(clock.wall_ns(), {}, self._report)
            self._report = None
        self._recording.meet(members)


def record_member(
    settings: DynamicSettings, trace: str | Path | None, observer: Observer | None, load: Mapping[str, object] | None = None
) -> MemberRecording | None:
    """The recording of a member: to a directory, for observers, or both; None: there is none."""
    if trace is None and observer is None:
        return None
    directory = None if trace is None else Path(trace)
    return MemberRecording(settings, directory, load, tail=None if observer is None else observer.tail)


def identify_member(settings: DynamicSettings, load: Mapping[str, object] | None) -> RunIdentity:
    """The identity of the run, also at members that join later: it is made from settings that must be equal at all."""
    rules, group = settings.rules, settings.network.group
    facts = (group, rules.protocol, dict(rules.options), rules.uniform, load)
    founders = sorted(number_of(one.name) for one in rules.founders)
    numbered = founders == list(range(len(founders)))
    return RunIdentity(
        run=f"{rules.protocol}-{sha256(msgspec.json.encode(facts, order='sorted')).hexdigest()[:8]}",
        group=group,
        protocol=rules.protocol,
        options=msgspec.to_builtins(dict(rules.options)),
        members=len(founders) if numbered else 0,
        open=True,
        views=True,
        promises=in_order(implied_by(promises(rules))),
        groups={GROUP: tuple(founders) if numbered else ()},
        settings={} if load is None else {"load": dict(load)},
    )
