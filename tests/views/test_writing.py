"""What a member writes to its journal, how often, and when it asks for that to be durable."""

from __future__ import annotations

import pytest

from quire.model.errors import BadInput
from quire.model.messages import Run
from quire.views.effects import Deliver, Effect, ProcessEffect, Save, Sync
from quire.views.records import Delivered, Record, Sent
from quire.views.restarting import recover
from quire.views.view import founding_view
from tests.views.stage import Stage


class Watched(Stage):
    """Disks sync when they are asked to, and at no other time."""

    def __init__(self, founders: int, **settings: object) -> None:
        self.asked: set[str] = set()
        self.delivered: dict[str, list[bytes]] = {}
        super().__init__(founders, journal=True, **settings)  # type: ignore[arg-type]
        self.found()
        self.asked.clear()
        self.delivered.clear()

    def run_dry(self) -> None:
        """Everything arrives, and everything that somebody waits for becomes durable; no timer runs."""
        while links := self.deliverable():
            self.arrive(links[0])
            self.sync_what_was_asked_for()

    def sync_what_was_asked_for(self) -> None:
        while self.asked:
            self.sync(self.asked.pop())

    def records(self, name: str) -> list[Record]:
        return [self.codec.record(record) for record in self.processes[name].journal]

    def _perform(self, name: str, effect: Effect | ProcessEffect) -> None:
        super()._perform(name, effect)
        if isinstance(effect, Sync):
            self.asked.add(name)
        elif isinstance(effect, Deliver):
            self.delivered.setdefault(name, []).extend(effect.entry.run.payloads())

    def replayed(self, name: str) -> list[bytes]:
        """What a process that begins with this journal delivers."""
        found = recover(founding_view(self.settings.founders), self.records(name))
        return [payload for entry in found.replay for payload in entry.run.payloads()]


MESSAGES = [bytes([65 + number]) * (100 + number) for number in range(7)]


def test_a_message_is_in_a_journal_once_whoever_sent_it_and_whether_or_not_it_is_delivered() -> None:
    stage = Watched(3, uniform=True)
    stage.submit("m0", MESSAGES)
    stage.settle()
    assert {name: len(stage.log(name)) for name in stage.founders} == dict.fromkeys(stage.founders, len(MESSAGES))
    for name in stage.founders:
        written = b"".join(stage.processes[name].journal)
        assert [written.count(message) for message in MESSAGES] == [1] * len(MESSAGES)


@pytest.mark.parametrize("protocol", ["single-phase", "causal-vector", "fifo"])
def test_everything_that_was_written_once_is_there_after_a_restart(protocol: str) -> None:
    stage = Watched(3, uniform=True, protocol=protocol)
    for name in stage.founders:
        stage.submit(name, [name.encode() + message for message in MESSAGES])
    stage.settle()
    for name in stage.founders:
        assert stage.replayed(name) == stage.delivered[name]
    found = recover(founding_view(stage.settings.founders), stage.records("m0"))
    mine = [payload for data in found.runs if data.run.origin == 0 for payload in data.run.payloads()]
    assert mine == [b"m0" + message for message in MESSAGES]


def test_a_run_that_was_delivered_in_parts_is_there_after_a_restart() -> None:
    """Where times count messages, a run of one member is between the messages of another's."""
    stage = Watched(2, options={"batches": "run-length"})
    for name in stage.founders:
        stage.submit(name, [name.encode() + message for message in MESSAGES[:3]])
        stage.sync_what_was_asked_for()
    stage.settle()
    delivered = [record for record in stage.records("m0") if isinstance(record, Delivered)]
    assert len(delivered) > 2
    assert stage.replayed("m0") == stage.delivered["m0"]


def test_deliveries_after_a_checkpoint_are_those_of_the_runs_that_it_kept() -> None:
    """m0 holds what m2 sent, of which the checkpoint has one message delivered and the other two not."""
    stage = Watched(3, run_max=1)
    stage.submit("m2", MESSAGES[:1])
    stage.run_dry()
    stage.sync_what_was_asked_for()
    stage.run_dry()
    assert stage.delivered["m0"] == MESSAGES[:1]
    stage.submit("m2", MESSAGES[1:3])
    stage.sync("m2")
    stage.pass_on("m2", "m0")
    stage.shorten_journal("m0")
    held = stage.member("m0").membership.ordering
    assert (held.delivered[2], held.unstable.count[2], held.unstable.dropped(2)) == (1, 3, 0)
    stage.settle()
    assert stage.replayed("m0") == MESSAGES[1:3]


def test_a_delivery_waits_for_the_next_sync_or_the_timer() -> None:
    """Whoever restarts without it delivers it again, in the same place."""
    stage = Watched(3, uniform=True)
    stage.submit("m0")
    stage.sync_what_was_asked_for()
    stage.run_dry()
    assert stage.log("m0") == [("m0.1", 1)]
    assert stage.asked == set()
    kept = stage.processes["m0"]
    assert kept.synced < len(kept.journal)
    stage.tick("m0")
    assert stage.asked == {"m0"}


def test_a_full_window_opens_without_the_timer_where_nothing_is_synced_unasked() -> None:
    stage = Watched(3, outstanding=8, run_max=2)
    for name in stage.founders:
        stage.submit(name, [b"x"] * 50)
        stage.sync_what_was_asked_for()
    stage.run_dry()
    assert {name: len(stage.log(name)) for name in stage.founders} == dict.fromkeys(stage.founders, 150)


def test_nothing_is_asked_of_the_disk_twice() -> None:
    """A sync that was asked for covers everything that was written before it."""
    stage = Watched(3, uniform=True)
    member = stage.member("m0")
    asked = [effect for effect in member.tick() if isinstance(effect, Sync)]
    assert asked == []
    stage.submit("m0")
    stage.sync("m0")
    assert [effect for effect in member.tick() if isinstance(effect, Sync)] == []


def test_records_that_refer_to_what_is_not_there_are_refused() -> None:
    """No disk makes such a journal; a program that does would make up messages."""
    stage = Watched(2)
    stage.submit("m0", MESSAGES[:2])
    stage.settle()
    records, founding = stage.records("m0"), founding_view(stage.settings.founders)
    sent = next(record for record in records if isinstance(record, Sent))
    before = records[: records.index(sent) - 1]
    with pytest.raises(BadInput, match="no operations 1 to 2"):
        recover(founding, [*before, sent])
    with pytest.raises(BadInput, match="no run with messages 0 to 2 of member 0"):
        recover(founding, [*before, Delivered(0, 2)])


def test_what_is_written_of_a_run_has_its_measures_and_not_its_messages() -> None:
    stage = Watched(2)
    saved: list[Run] = []
    perform = stage._perform

    def watch(name: str, effect: Effect | ProcessEffect) -> None:
        if isinstance(effect, Save) and isinstance(effect.record, Sent):
            saved.append(effect.record.data.run)
        perform(name, effect)

    stage._perform = watch  # type: ignore[method-assign]
    stage.submit("m0", MESSAGES[:3])
    stage.sync("m0")
    assert [run.body.payload for run in saved] == [b""]
    assert [run.payload_bytes() for run in saved] == [sum(map(len, MESSAGES[:3]))]
