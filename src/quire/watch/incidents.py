"""Describes what happened in sentences: reports of several processes about the same thing are merged into one sentence."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Sequence

import msgspec

from quire.live.observing.feed import Observation
from quire.trace.views import ViewEvent

INCIDENTS_MAX = 200
_REPORTS_MAX = 64
_NEAR_NS = 15_000_000_000
"""A reported loss explains a view only if the view begins within this time after it."""

_RECORDED = {
    ViewEvent.BLOCKED: "{who} waits for a majority",
    ViewEvent.UNBLOCKED: "{who} reaches a majority again",
    ViewEvent.EXCLUDED: "{who} learned that the others went on without it after view {view}",
    ViewEvent.LEFT: "{who} left the group",
    ViewEvent.RESUME: "{who} was restarted, and resumes in view {view} with what its journal has",
}


class Sentence(msgspec.Struct, kw_only=True):
    time_ns: int
    kind: str
    text: str
    view: int | None = None


class _View(msgspec.Struct):
    """What is known about a view so far."""

    number: int
    members: tuple[str, ...]
    installed: dict[str, int]
    """The processes that have installed it, and when."""
    pauses_ns: dict[str, int]


def listed(names: Iterable[str]) -> str:
    names = list(names)
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}" if names else "nobody"


def seconds(ns: float) -> str:
    size = abs(ns)
    if size >= 1e9:
        return f"{ns / 1e9:.1f} s"
    return f"{ns / 1e6:.0f} ms" if size >= 1e6 else f"{ns / 1e3:.0f} µs"


class Incidents:
    def __init__(self) -> None:
        self._kept: OrderedDict[str, Sentence] = OrderedDict()
        self._views: OrderedDict[int, _View] = OrderedDict()
        self._reports: OrderedDict[str, list[tuple[int, str, str]]] = OrderedDict()
        """For each process reported lost: when, by whom, and why."""

    def told(self, who: str, event: Observation) -> None:
        """A process reports what happened."""
        match event.kind:
            case "view" if event.view is not None:
                self.installed(who, event.view, event.peers, event.time_ns)
            case "lost" | "disconnected":
                for peer in event.peers:
                    self._report(peer, event.time_ns, who, event.why)
            case "blocked":
                self._keep(f"blocked {who} {event.view}", event, f"{who} waits for a majority: {event.why}")
            case "unblocked":
                self._keep(f"unblocked {who} {event.number}", event, _RECORDED[ViewEvent.UNBLOCKED].format(who=who))
            case "excluded":
                text = _RECORDED[ViewEvent.EXCLUDED].format(who=who, view=event.view)
                self._keep(f"excluded {who} {event.view}", event, f"{text}, and asks to join again")
            case "restored":
                self._keep(f"restored {who} {event.view}", event, f"{who} has the state of view {event.view}")
            case "unread":
                self._keep(f"unread {who} {event.number}", event, f"{who}: {event.why}")
            case "stalled" | "evicted" | "too_large":
                text = f"{who} says of {listed(event.peers)}: {event.why}"
                self._keep(f"{event.kind} {who} {event.number}", event, text)
            case "gap" | "unrecorded":
                self._keep(f"{event.kind} {who} {event.number}", event, f"{who}: {event.why}")
            case "ended":
                self._keep(f"ended {who} {event.time_ns}", event, f"{who} has ended")
            case _:
                pass

    def recorded(self, who: str, what: ViewEvent, view: int, time_ns: int) -> None:
        """The trace of a process records what happened to it in a view."""
        if what in _RECORDED:
            text = _RECORDED[what].format(who=who, view=view)
            self._add(f"{what} {who} {time_ns}", Sentence(time_ns=time_ns, kind=what.value, text=text, view=view))

    def installed(self, who: str, number: int, members: Sequence[str], time_ns: int) -> None:
        """A process has installed a view."""
        view = self._views.get(number)
        if view is None:
            view = self._views[number] = _View(number, tuple(members), {}, {})
            _bound(self._views, _REPORTS_MAX)
        view.installed.setdefault(who, time_ns)
        self._retell(view)
        # If a process is reached late, earlier views may become known after later ones.
        later = min((each for each in self._views if each > number), default=None)
        if later is not None:
            self._retell(self._views[later])

    def paused(self, who: str, number: int, pause_ns: int) -> None:
        """A process delivered nothing for this long around the beginning of a view."""
        view = self._views.get(number)
        if view is not None and who not in view.pauses_ns:
            view.pauses_ns[who] = pause_ns
            self._retell(view)

    def unreachable(self, who: str, time_ns: int, why: str) -> None:
        sentence = Sentence(time_ns=time_ns, kind="unreachable", text=f"{who} does not answer any more: {why}")
        self._add(f"unreachable {who} {time_ns}", sentence)

    def broken(self, guarantee: str, time_ns: int, because: str) -> None:
        self._add(
            f"violated {guarantee}", Sentence(time_ns=time_ns, kind="violated", text=f"{guarantee} is violated: {because}")
        )

    def latest(self, count: int = INCIDENTS_MAX) -> list[Sentence]:
        """The last sentences, newest first."""
        return sorted(self._kept.values(), key=lambda each: -each.time_ns)[:count]

    def views(self) -> list[tuple[int, tuple[str, ...], int]]:
        """The views: number, members, and when it was first installed."""
        return [(view.number, view.members, min(view.installed.values())) for view in self._views.values()]

    def _report(self, peer: str, time_ns: int, who: str, why: str) -> None:
        reports = self._reports.setdefault(peer, [])
        reports.append((time_ns, who, why))
        del reports[:-_REPORTS_MAX]
        _bound(self._reports, _REPORTS_MAX * 4)

    def _retell(self, view: _View) -> None:
        earlier = max((each for each in self._views if each < view.number), default=None)
        past = view.members if earlier is None else self._views[earlier].members
        lost = [name for name in past if name not in view.members]
        joined = [name for name in view.members if name not in past]
        first = min(view.installed.values())
        agreed = listed(sorted(view.installed))
        pause = ""
        if view.pauses_ns and lost:
            longest = max(view.pauses_ns, key=lambda name: view.pauses_ns[name])
            pause = f"; deliveries paused for {seconds(view.pauses_ns[longest])} at most (at {longest})"
        if lost:
            losses = "; ".join(self._loss(name, view) for name in lost)
            without = f"view {view.number} without {listed(lost)}"
            text = f"{losses}: {agreed} agreed on {without}{self._took(view, lost)}{pause}"
            kind = "lost"
        elif joined:
            text, kind = f"{listed(joined)} joined: view {view.number} has {listed(view.members)}", "joined"
        else:
            text, kind = f"view {view.number} began, with {listed(view.members)}", "view"
        self._add(f"view {view.number}", Sentence(time_ns=first, kind=kind, text=text, view=view.number))

    def _reports_before(self, name: str, view: _View) -> list[tuple[int, str, str]]:
        first = min(view.installed.values())
        return [each for each in self._reports.get(name, ()) if first - _NEAR_NS <= each[0] <= first]

    def _loss(self, name: str, view: _View) -> str:
        reports = self._reports_before(name, view)
        return f"{name}: {reports[-1][2]}" if reports and reports[-1][2] else f"{name} is gone"

    def _took(self, view: _View, lost: Sequence[str]) -> str:
        began = [each[0] for name in lost for each in self._reports_before(name, view)]
        return f" in {seconds(max(view.installed.values()) - min(began))}" if began else ""

    def _keep(self, key: str, event: Observation, text: str) -> None:
        self._add(key, Sentence(time_ns=event.time_ns, kind=event.kind, text=text, view=event.view))

    def _add(self, key: str, sentence: Sentence) -> None:
        if key in self._kept:
            sentence.time_ns = min(sentence.time_ns, self._kept[key].time_ns)
        self._kept[key] = sentence
        _bound(self._kept, INCIDENTS_MAX)


def _bound(kept: OrderedDict, most: int) -> None:  # type: ignore[type-arg]
    while len(kept) > most:
        kept.popitem(last=False)
