"""The replica for read-one, write-all replication (`all`): the paper's protocol, corrected."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

from quire.protocols.node import Notice
from quire.protocols.transactions.cells import Cell, Found, TooLate
from quire.protocols.transactions.channels import Clock
from quire.protocols.transactions.claims import Claims, Wanted
from quire.protocols.transactions.notices import Traced
from quire.protocols.transactions.omission import Counts, insignificant
from quire.protocols.transactions.packets import Claim, Done, End, Numbered, Read, Refused, Request, Write
from quire.protocols.transactions.queue import Queued, ReceiptQueue
from quire.protocols.transactions.settings import Settings
from quire.protocols.transactions.timestamps import Timestamp, end_id, read_id, write_id


class Post(NamedTuple):
    """Send this to the peer over its channel."""

    peer: int
    content: Numbered


Outcome = Post | Notice


class Waiting(NamedTuple):
    """A read or write that waits for an older transaction to end."""

    source: int
    request: Request
    until_ns: int


class Replica:
    """The values stored at one processor, and the queue of requests for them."""

    def __init__(self, address: int, clients: Sequence[int], settings: Settings, clock: Clock) -> None:
        self._clock = clock
        self._settings = settings
        self.cells: dict[str, Cell] = {}
        self.queue = ReceiptQueue(address, clients)
        self.counts = Counts()
        self._waiting: dict[str, list[Waiting]] = {}
        self._claims = Claims(settings.lease_ns)
        self._latest = 0
        self._spare: set[tuple[str, Timestamp]] = set()
        """Writes that the next one in the queue made insignificant, unless that one does not commit first."""

    def cell(self, key: str) -> Cell:
        return self.cells.setdefault(key, Cell())

    def waiting_keys(self) -> dict[str, int]:
        """For each key, how many requests wait for an older transaction to end."""
        return {key: len(waiting) for key, waiting in self._waiting.items()}

    def heard(self, source: int, lc: int) -> None:
        """Everything that this peer sent up to this time has arrived."""
        self.queue.heard(source, lc)

    def request(self, now: int, source: int, request: Request) -> list[Outcome]:
        if self._settings.order == "stable":
            self.queue.put(source, request)
            return []
        return self._serve(now, [Queued(request.lc, source, request)], frozenset())

    def deliver(self, now: int) -> list[Outcome]:
        """Serve the requests that are stable by now."""
        stable = self.queue.take()
        return self._serve(now, stable, insignificant(stable, self.queue)) if stable else []

    def _serve(self, now: int, batch: list[Queued], omitted: Collection[Queued]) -> list[Outcome]:
        self.counts.transmitted += len(batch)
        self.counts.delivered += len(batch) - len(omitted)
        self.counts.batches += 1
        outcomes: list[Outcome] = []
        for queued in batch:
            _, source, request = queued
            outcomes += self._answer_or_wait(now, source, request)
            if queued in omitted and isinstance(request, Write):
                self._spare.add((request.key, request.t))
        return outcomes

    def _answer_or_wait(self, now: int, source: int, request: Request) -> list[Outcome]:
        self._latest = max(self._latest, request.t.tid)
        self._claims.heard(now, request.t)
        answer = self._answer(source, request)
        if answer is None:
            self._waiting.setdefault(request.key, []).append(Waiting(source, request, now + self._settings.lease_ns))
        return answer or []

    def _answer(self, source: int, request: Request) -> list[Outcome] | None:
        """The answer, or None if the request has to wait."""
        if self._claims.hold_up(request.t, request.key, writes=isinstance(request, Write)):
            return None
        return self._prewrite(source, request) if isinstance(request, Write) else self._read(source, request)

    def _prewrite(self, source: int, write: Write) -> list[Outcome]:
        refusal = self.cell(write.key).prewrite(write.t, write.version, write.value)
        if refusal is not None:
            return [self._refuse(source, write, refusal.hint)]
        done = Done(0, 0, self._clock.tick(), write.t, write.number, write.version, None)
        size = len(write.value or b"")
        return [Traced("deliver", write_id(write.version), "w", write.t, write.key, size=size), Post(source, done)]

    def _read(self, source: int, read: Read) -> list[Outcome] | None:
        match self.cell(read.key).read(read.t):
            case Found(version=version, value=value):
                done = Done(0, 0, self._clock.tick(), read.t, read.number, version, value)
                return [Traced("deliver", read_id(read.t, read.number), "r", read.t, read.key), Post(source, done)]
            case TooLate(hint=hint):
                return [self._refuse(source, read, hint)]
        return None

    def _refuse(self, source: int, request: Request, hint: Timestamp) -> Post:
        return Post(source, Refused(0, 0, self._clock.tick(), request.t, request.number, "late", hint, self._latest))

    def end(self, end: End) -> list[Outcome]:
        """The client has decided: install or remove what the transaction wrote here, and serve the requests that waited for
        it."""
        outcomes: list[Outcome] = [Traced("deliver", end_id(end.t), "commit" if end.commit else "abort", end.t)]
        # The end of a transaction that failed elsewhere may overtake its requests here, which nobody needs any more.
        self.queue.drop(end.t)
        self._drop_waiting(end.t)
        for key in end.keys:
            installed = self.cell(key).end(end.t, commit=end.commit)
            if (key, end.t) in self._spare:
                self._spare.discard((key, end.t))
                # It was left out for the sake of one that has still not committed: now it has to be carried out.
                self.counts.late += installed is not None
            outcomes += self._look_again(key)
        return outcomes + self._freed(self._claims.drop(end.t))

    def _drop_waiting(self, t: Timestamp) -> None:
        for key, waiting in list(self._waiting.items()):
            self._waiting[key] = [each for each in waiting if each.request.t != t]
            if not self._waiting[key]:
                del self._waiting[key]

    def claim(self, now: int, claim: Claim) -> list[Outcome]:
        """A transaction that was refused is retried."""
        return self._freed(self._claims.put(now, claim.t, claim.instead_of, claim.wanted))

    def _freed(self, claimed: Wanted) -> list[Outcome]:
        """Nothing has to wait for this any more."""
        return [outcome for key in claimed.among(self._waiting) for outcome in self._look_again(key)]

    def _look_again(self, key: str) -> list[Outcome]:
        waiting, outcomes = self._waiting.pop(key, []), list[Outcome]()
        for reader in waiting:
            answer = self._answer(reader.source, reader.request)
            if answer is None:
                self._waiting.setdefault(key, []).append(reader)
            outcomes += answer or []
        return outcomes

    def wake(self, now: int) -> list[Outcome]:
        """Stop waiting for silent clients, and tell readers that have waited for too long whose client is silent."""
        outcomes = self._freed(self._claims.void(now))
        for key, waiting in list(self._waiting.items()):
            for each in [each for each in waiting if each.until_ns <= now]:
                waiting.remove(each)
                request, holder = each.request, self.cell(key).blocker(each.request.t)
                if isinstance(request, Read) and holder is not None:
                    refused = Refused(0, 0, self._clock.tick(), request.t, request.number, "lost", holder, self._latest)
                    outcomes.append(Post(each.source, refused))
                else:  # It waits for a claim, whose client is there.
                    waiting.append(each._replace(until_ns=now + self._settings.lease_ns))
            if not waiting:
                del self._waiting[key]
        return outcomes

    def due(self) -> int | None:
        times = [each.until_ns for waiting in self._waiting.values() for each in waiting]
        claims = self._claims.due()
        return min(times if claims is None else [*times, claims], default=None)

    def idle(self) -> bool:
        return not self._waiting and not len(self.queue) and not any(cell.prewrites for cell in self.cells.values())
