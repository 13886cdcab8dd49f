"""Three sequencers with one backup or five with two, and clients in two groups that they join and leave.

So many sequencers may be lost at a time as there are backups, so they are killed only when all are there and back each other
up; some are asked to end instead, as where they are restarted one after the other. They are stopped and cut off at any time,
and the clients killed, stopped and cut off. Bodies of messages go through the sequencers, or directly from client to client.
"""

from __future__ import annotations

import random
import signal
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from quire.live.runs.collecting import collect
from quire.model.faults import Kill
from quire.model.moments import Moment
from quire.model.orders import Guarantee
from tests.faults.chaos.processes import ServiceProcesses, Stage, stage
from tests.faults.chaos.rounds import TIMEOUT_MS, Judge, Maker, Outcome, Round, check_promises
from tests.faults.chaos.worker import read_notes

CLIENTS = 3
NEVER = 1 << 62
BLANK = (None, "blank")
"""What has a number that was given by a sequencer that was lost, of which nobody knows more."""

Entry = tuple[Any, ...]
"""What has a number in a group: a message with its origin, or a change with whom it is about."""


def sequencers_of(round: Round) -> range:
    return range(round.members - CLIENTS)


def backups_of(round: Round) -> int:
    """If the round does not say it: so many that a majority is left when as many sequencers are lost."""
    return int(str(round.options.get("backups", len(sequencers_of(round)) // 2)))


def journals_of(round: Round, directory: Path) -> list[str | None]:
    """Where each sequencer keeps its register on disk, if it does."""
    kept = round.options.get("journal", False)
    return [str(directory / f"register-{number}") if kept else None for number in sequencers_of(round)]


def ask_sequencer(maker: Maker, choose: random.Random, sequencers: range, asked: list[Kill], at_ms: int) -> int:
    """One of the sequencers is asked to end, and started again."""
    at_ms = maker.quiet_ms(at_ms, sequencers)
    [restart] = maker.kill([choose.choice(sequencers)], at_ms)
    asked.append(Kill(restart.member, at_ms))
    return at_ms


def kill_client(maker: Maker, clients: Collection[int], at_ms: int) -> None:
    maker.kill(maker.free(at_ms, clients)[:1], at_ms)


def make_round(seed: int, seconds: float, apart: bool) -> Round:
    choose = random.Random(seed)
    backups = choose.choice((1, 1, 2))
    sequencers = range(2 * backups + 1)
    maker = Maker(choose, len(sequencers) + CLIENTS, seconds)
    clients, asked = maker.members[len(sequencers) :], list[Kill]()

    def kill_sequencers(at_ms: int) -> int:
        at_ms = maker.quiet_ms(at_ms, sequencers)
        maker.kill(choose.sample(sequencers, choose.randint(1, backups)), at_ms)
        return at_ms

    kinds: list[Callable[[int], int | None]] = [
        kill_sequencers,
        partial(ask_sequencer, maker, choose, sequencers, asked),
        partial(kill_client, maker, clients),
        maker.stop_shortly,
        maker.stop_for_long,
    ]
    kinds += [maker.part, maker.cut] * apart
    options: dict[str, object] = {
        "order": choose.choice(("total", "hybrid", "causal-total")),
        "bodies": choose.choice(("relay", "direct")),
    }
    return Round(seed, len(maker.members), maker.make(kinds, pause_ms=3000), options, asked=tuple(asked))


def loses_groups(round: Round, evicted: int) -> bool:
    """Whether a group may be lost. With backups it may not be, unless all sequencers are killed at once; without, only together
    with a client, which was killed, or `evicted` because it stood still or was cut off."""
    sequencers = sequencers_of(round)
    killed = [fault for fault in round.faults if isinstance(fault, Kill)]
    if backups_of(round):
        moments = Counter(fault.at_ms for fault in killed if fault.member in sequencers)
        return max(moments.values(), default=0) > backups_of(round)
    return evicted > 0 or any(fault.member not in sequencers for fault in killed)


class SequencerProcesses(ServiceProcesses):
    module = "tests.faults.chaos.sequencer_process"

    def __init__(self, round: Round, place: Stage, directory: Path) -> None:
        super().__init__(round, place, directory)
        self._directory = directory
        self._killed_at = -1
        self.evicted = 0
        """How many clients were told that the service goes on without them."""
        self._numbers = sequencers_of(round)
        self._clients = range(self._numbers.stop, round.members)
        self._sequencers = place.addresses(7400)[: len(self._numbers)]
        self._register = place.addresses(8400)[: len(self._numbers)]
        self._journals = journals_of(round, directory)
        direct = place.hosts is not None and round.options.get("bodies") == "direct"
        self._listen = place.addresses(7700) if direct else [None] * round.members
        """Where clients reach each other; where all are on one host, they find a place themselves."""

    def settings(self, number: int) -> dict[str, Any]:
        return {
            "me": number if number in self._numbers else None,
            "backups": backups_of(self.round),
            "listen": self._listen[number],
            "sequencers": [*self._sequencers],
            "register": [*self._register],
            "journal": self._journals[number] if number in self._numbers else None,
            "stays": number == self._clients[0],
            "options": {name: value for name, value in self.round.options.items() if name in ("order", "bodies")},
            "timeout_s": TIMEOUT_MS / 1000,
            "trace": str(self._directory / "parts"),
            "notes": str(self._directory / "notes"),
        }

    def heard(self, number: int, line: bytes) -> None:
        self.evicted += b'"evicted"' in line
        super().heard(number, line)

    async def may_happen(self, moment: Moment) -> None:
        if isinstance(moment.fault, Kill) and moment.fault.member in self._numbers:
            # Several that are killed at once are lost together, and one that does not run says nothing.
            if self._killed_at != moment.at_ms:
                await self.until_said("whole", self._numbers, "before the next sequencer is killed")
            self._killed_at = moment.at_ms

    async def _kill(self, number: int) -> None:
        if Kill(number, self._killed_at) not in self.round.asked:
            await super()._kill(number)
            return
        self.signal(signal.SIGTERM, [number])
        await self._following[number]
        assert self.has_ended_well(number), f"sequencer {number} was asked to end, and did not"

    async def take_part(self) -> None:
        await self.until_said("ready", range(self.count), "at the start")
        self.begin()
        await self.have_faults_happen()
        await self.until_said("whole", self._numbers, "after the last fault")
        await self.until_said("ready", self._clients, "after the last fault")
        self.signal(signal.SIGINT, self._clients)
        await self.until_said("ended", self._clients, "at the end")


class Log:
    """What was numbered in each group, as all clients were told; raises AssertionError where two were told different things."""

    def __init__(self) -> None:
        self.entries: dict[tuple[str, int], Entry] = {}
        self.acknowledged = 0
        self.clients = 0
        self.lost: set[str] = set()
        """The groups that were lost, as some client was told."""

    def take(self, notes: list[list[Any]]) -> None:
        """What one client noted, from when it connected."""
        me = next((about[0] for what, *about in notes if what == "came"), None)
        self.lost.update(about[0] for what, *about in notes if what == "lost")
        last: dict[str, int] = {}
        seen: set[Entry] = set()
        for group, number, entry in _numbered(notes):
            assert self.entries.setdefault((group, number), entry) == entry, f"two entries {number} of {group}: {entry}"
            assert number == last.get(group, number - 1) + 1, f"client {me} has {number} after {last.get(group)} of {group}"
            last[group] = number
            assert (group, *entry) not in seen or entry == BLANK, f"client {me} has {entry} of {group} twice"
            seen.add((group, *entry))
            self.acknowledged += entry[0] == me and isinstance(entry[1], int)
            if entry == (me, f"leave {number}"):
                del last[group]
        self.clients += me is not None

    def has_all_of(self, notes: list[list[Any]]) -> None:
        """Of a client that left: whatever was accepted of it has one number, in the order in which it was sent. When nobody was
        in the group, nobody was told of it: then there is a number of which nobody knows."""
        me = notes[0][1]
        for group in {about[0] for what, *about in notes if what == "accepted"} - self.lost:
            accepted = [about[1] for what, *about in notes if what == "accepted" and about[0] == group]
            entries = sorted((number, entry) for (of, number), entry in self.entries.items() if of == group)
            sent = [(entry[1], number) for number, entry in entries if entry[0] == me and isinstance(entry[1], int)]
            assert [message for message, _ in sent] == sorted(message for message, _ in sent), f"{group} has {sent} of {me}"
            numbers = dict(sent)
            assert numbers.keys() <= {*accepted}
            unknown = sorted({*range(1, entries[-1][0])} - {number for number, _ in entries})
            after = 0
            for message in accepted:
                number = numbers.get(message) or next((number for number in unknown if number > after), NEVER)
                assert after < number < NEVER, (
                    f"a message of client {me} to {group} was accepted and is lost: {message}, or before"
                )
                after = number


def _numbered(notes: list[list[Any]]) -> Iterator[tuple[str, int, Entry]]:
    for what, *about in notes:
        if what == "changed":
            group, number, change, who = about
            yield group, number, (who, f"{change} {number}")
        elif what == "delivered":
            group, first, messages = about
            yield from ((group, number, tuple(message)) for number, message in enumerate(messages, first))
        elif what == "blank":
            group, first, last = about
            yield from ((group, number, BLANK) for number in range(first, last + 1))


def play(round: Round, directory: Path, judge: Judge) -> Outcome:
    began = time.monotonic()
    (directory / "notes").mkdir()
    with stage(round) as place:
        processes = SequencerProcesses(round, place, directory)
        processes.play(directory)
    collected = collect(directory / "parts", directory / "run")
    log, noted = Log(), [read_notes(path) for path in sorted((directory / "notes").iterdir())]
    for notes in noted:
        log.take(notes)
    for notes in noted:
        if notes and notes[-1][0] in ("flushed", "left"):
            log.has_all_of(notes)
    # Whom the last messages of a group were sent to, nobody knows after it was lost.
    check_promises(judge(directory / "run"), unknown=[Guarantee.AGREEMENT] if log.lost else ())
    if not loses_groups(round, processes.evicted):
        assert not log.lost, f"groups were lost though all their clients were there: {sorted(log.lost)}"
    what = f"{log.clients} clients came, {len(log.lost)} groups lost, {collected.deliveries} deliveries"
    return Outcome(round, log.acknowledged, len(log.entries), what, time.monotonic() - began)
