"""What happened, as a page tells it that only sees what processes record."""

from __future__ import annotations

from quire.live.observing.feed import Observation
from quire.model.orders import Guarantee
from quire.trace.log import EventLog
from quire.trace.parts.description import Clock, PartDescription, RunIdentity
from quire.trace.tail import Excerpt, numbered_anew
from quire.trace.views import ViewEvent, ViewMember
from quire.watch.incidents import Incidents
from quire.watch.scene import Scene

RUN = RunIdentity(
    run="r", group="g", protocol="single-phase", options={}, members=3, views=True, promises=(Guarantee.TOTAL,)
)  # fmt: skip


def test_a_member_that_was_cut_off_is_told_of_by_its_records() -> None:
    log = EventLog(2)
    log.installed("g", 1, [ViewMember(number, 1) for number in range(3)], 1, 1, 10)
    for at, what in enumerate((ViewEvent.BLOCKED, ViewEvent.UNBLOCKED, ViewEvent.EXCLUDED), start=2):
        log.happened(what, "g", 1, 1, at, 10 * at)
    log.installed("g", 3, [ViewMember(number, 1 + number // 2) for number in range(3)], 2, 5, 50)
    records = log.take()
    names, records = numbered_anew([(records, log.names)])
    description = PartDescription(identity=RUN, process=2, incarnation=1, name="c", clock=Clock("h", 0, 0), versions={})

    scene = Scene()
    scene.add("c")
    scene.begin("c", description)
    scene.traced("c", Excerpt(description=description, first=0, rows=0, until=5, names=names, records=records), missed=False)

    assert [(sentence.kind, sentence.text) for sentence in reversed(scene.incidents.latest())] == [
        ("view", "view 1 began, with 0, 1 and c"),
        ("blocked", "c waits for a majority"),
        ("unblocked", "c reaches a majority again"),
        ("excluded", "c learned that the others went on without it after view 1"),
        ("view", "view 3 began, with 0, 1 and c"),
    ]


def test_views_that_become_known_late_are_told_as_if_in_order() -> None:
    incidents = Incidents()
    incidents.installed("a", 4, ("a", "b", "c"), 40)
    incidents.installed("b", 2, ("a", "b", "c"), 20)
    incidents.installed("b", 3, ("a", "b"), 30)
    assert [sentence.text for sentence in reversed(incidents.latest())] == [
        "view 2 began, with a, b and c",
        "c is gone: b agreed on view 3 without c",
        "c joined: view 4 has a, b and c",
    ]


def test_whoever_says_something_and_of_whom_is_told() -> None:
    incidents = Incidents()
    why = "it has acknowledged nothing for 1.2 s, and 54 frames wait for that"
    incidents.told("a", Observation(number=0, time_ns=1, kind="stalled", peers=("c",), why=why))
    incidents.told("a", Observation(number=1, time_ns=2, kind="gap", peers=("c",), why="message a:3 is held back"))
    assert [each.text for each in incidents.latest()] == ["a: message a:3 is held back", f"a says of c: {why}"]
