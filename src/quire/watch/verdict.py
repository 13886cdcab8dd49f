"""The live verdict: which orders hold in what was delivered so far, by the audit's kernels, and how far judging lags.

Judging runs in its own thread with the lowest priority: if there is no time for it, it lags, and reports by how much.
"""

from __future__ import annotations

import os
import queue
import threading
import time
from collections.abc import Callable
from typing import Any

import msgspec

from quire.model.orders import Guarantee, implied_by
from quire.trace.parts.description import PartDescription
from quire.trace.tables import as_records
from quire.trace.tail import Excerpt
from quire.watch.followed import Followed, follow, judged_of
from quire.watch.member import WatchedProcess
from quire.watch.updates import ProcessUpdate

QUEUE_MAX = 2048
"""The most excerpts that wait; further ones are dropped, and judging starts over."""

JUDGE_S = 1.0
"""The least time between two judgements: the processes are heard from one after the other, and a judgement after each of them
would take as long as one after all."""

PATIENCE_S = 5.0
"""How long to wait for processes that have never been heard from."""

SAYS = {
    Guarantee.INTEGRITY: "nobody delivered a message twice, or one that nobody sent to it",
    Guarantee.AGREEMENT: "whoever goes on has what others delivered",
    Guarantee.FIFO: "messages of each member were delivered in the order in which it sent them",
    Guarantee.CAUSAL: "what happened before a message was delivered before it",
    Guarantee.TOTAL: "no two members delivered two messages in different orders",
    Guarantee.SIGNIFICANT: "conflicting requests began in their significant order, and everywhere alike",
    Guarantee.SERIALISABLE: "one order of the committed transactions explains what each of them read",
}


class LiveFindings(msgspec.Struct, kw_only=True):
    """The verdict so far."""

    why: str = "nothing was delivered yet"
    """Why there is no verdict; empty if there is one."""
    messages: int = 0
    deliveries: int = 0
    lag_s: float = 0.0
    since: float = 0.0
    """The time from which on everything is judged."""
    judged: tuple[str, ...] = ()
    expected: tuple[str, ...] = ()
    beyond: str = ""
    """What could not be judged, as a sentence; empty if everything was."""
    violated: dict[str, tuple[int, str]] = {}
    """The violated orders: how often, and the first violation as a sentence."""

    @property
    def verdict(self) -> str:
        if any(name in self.violated for name in self.expected):
            return "violated"
        return "undecided" if self.why else "holds"

    def shown(self) -> dict[str, Any]:
        checks = [
            {
                "name": name.value,
                "expected": name.value in self.expected,
                "verdict": "violated" if name.value in self.violated else "undecided" if self.why else "holds",
                "count": self.violated.get(name.value, (0, ""))[0],
                "because": self.violated.get(name.value, (0, holds))[1],
            }
            for name, holds in SAYS.items()
            if name.value in self.judged
        ]
        return {**msgspec.structs.asdict(self), "verdict": self.verdict, "checks": checks}


class LiveJudge:
    """Judges the processes of one group: the first group that is heard from. Use it in `with`."""

    def __init__(self) -> None:
        self.findings = LiveFindings()
        self.has_judged = False
        """Whether there was a judgement, or there will be none."""
        self.on_violation: Callable[[str, str], None] = lambda *_: None
        """Called from the judging thread with each violated order and the reason, once per order."""
        self.expects: Callable[[], bool] = lambda: False
        """Whether some of the processes have not been heard from yet."""
        self._queue: queue.Queue[Callable[[], None] | None] = queue.Queue(QUEUE_MAX)
        self._thread = threading.Thread(target=self._work, name="quire-verdict", daemon=True)
        self._over = False
        self._described: PartDescription | None = None
        self._followed: Followed | None = None
        self._names: dict[int, str] = {}
        self._heard_first = 0.0
        self._present: set[int] = set()
        """The processes that are heard from at present."""

    def __enter__(self) -> LiveJudge:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Wait for the thread: an interpreter that exits while a thread runs compiled kernel code would abort."""
        self._over = True
        self._queue.put(None)
        self._thread.join()

    # Called by the scene, in its event loop.

    def begin(self, description: PartDescription) -> None:
        self._names[description.process] = description.name or str(description.process)
        if self._described is None:
            self._described = description
            promised = implied_by(description.identity.promises)
            self.findings.judged = tuple(name.value for name in judged_of(description.identity))
            self.findings.expected = tuple(name.value for name in judged_of(description.identity) if name in promised)

    def take(self, excerpt: Excerpt, *, missed: bool) -> None:
        described = excerpt.description
        if described is None or self._described is None or described.identity.run != self._described.identity.run:
            return
        heard = ProcessUpdate(
            described.process, described.incarnation, as_records(excerpt.records), excerpt.meaning(),
            0 if excerpt.ahead else excerpt.lamport, excerpt.first == 0,
        )  # fmt: skip
        # Decided now, not when the thread processes it: by then, others may still be in the queue.
        now = time.monotonic()
        self._heard_first = self._heard_first or now
        self._present.add(described.process)
        complete = not self.expects() or now > self._heard_first + PATIENCE_S
        present = frozenset(self._present) if complete else None
        self._put(lambda: self._follow(heard, missed=missed, present=present))

    def gone(self, process: WatchedProcess) -> None:
        number = process.process
        if number is not None:
            self._present.discard(number)
            self._put(lambda: None if self._followed is None else self._followed.gone(number))

    def _put(self, job: Callable[[], None]) -> None:
        try:
            self._queue.put_nowait(job)
        except queue.Full:
            self._followed = None

    # Run by the judging thread.

    def _work(self) -> None:
        try:
            from quire.watch.followed_orders import prepare
        except ImportError:
            self.findings.why = "the verdict needs the audit's kernels: pip install 'quire[spark]'"
            self.has_judged = True
            return
        self.findings.why = "the kernels of the audit are made ready"
        prepare()
        _lower_priority()
        self.findings.why = "nothing was delivered yet"
        due, news = 0.0, False
        while not self._over:
            try:
                job = self._queue.get(timeout=max(0.0, due - time.monotonic()) if news else None)
            except queue.Empty:
                news = False
                if self._followed is not None:
                    self._judge(self._followed)
                    self.has_judged = True
                due = time.monotonic() + JUDGE_S
                continue
            if job is None:
                break
            job()
            news = True

    def _follow(self, heard: ProcessUpdate, *, missed: bool, present: frozenset[int] | None) -> None:
        if self._followed is None or missed or self._followed.must_begin_anew(heard):
            # Missing records could explain anything, so start over, and judge only what comes from here on.
            assert self._described is not None
            self._followed = follow(self._described.identity, self._names)
            self.findings.since = time.time()
        self._followed.take(heard, present)

    def _judge(self, followed: Followed) -> None:
        findings = self.findings
        found = followed.judge()
        findings.messages, findings.deliveries = found.messages, found.deliveries
        findings.why = found.why or ("" if found.deliveries else "nothing was delivered yet")
        findings.lag_s, findings.beyond = followed.lag_s(), found.beyond
        for name, (count, because) in found.violated.items():
            before = findings.violated.get(name.value)
            findings.violated = {**findings.violated, name.value: (count, because if before is None else before[1])}
            if before is None:
                self.on_violation(name.value, because)


def _lower_priority() -> None:
    """Lower the priority of this thread alone, if the system supports it."""
    if hasattr(os, "setpriority"):
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), 19)
