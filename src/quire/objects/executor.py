"""Runs the operations of a member's objects, and the roots that its application starts.

It stands between a node, which decides what may run, and a runtime, which runs coroutines. Notices of the node are handled
after the input that caused them, so a trace records what the node did, in order.
"""

from __future__ import annotations

import inspect
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from itertools import count
from typing import Any

from quire.model.errors import BadInput, WindowFull
from quire.objects.call import Call, Pending, decode, encode
from quire.objects.declare import Method, Object
from quire.objects.runtime import Done, Promise, Runtime
from quire.objects.state import captured, restore
from quire.protocols.node import Notice
from quire.protocols.objects.activity import Status
from quire.protocols.objects.errors import CallDied, HostLost
from quire.protocols.objects.node import ObjectNode
from quire.protocols.objects.notices import Answered, CalleeLost, Ended, Orphaned, Returned, Started, StateCame, StateWanted
from quire.protocols.objects.packets import Instance, Pace, Stamp, Undo

Program = Callable[[Call], Awaitable[Any]]
"""What a root does: calls objects and returns something."""

RETRY_NS = 2_000_000
"""The shortest pause before a root is retried; the one that it gave way to may need as long as it needed itself."""
RETRY_DOUBLINGS = 5
RETRY_NS_MAX = 500_000_000
RETRIES_MAX = 1000


class Executor:
    def __init__(
        self,
        node: ObjectNode,
        objects: Mapping[str, Object],
        runtime: Runtime,
        *,
        observe: Callable[[Notice], None] | None = None,
        retries: int = RETRIES_MAX,
    ) -> None:
        missing = [name for name in node.catalogue.at(node.address) if name not in objects]
        if missing:
            raise BadInput(f"{missing[0]} is placed at member {node.address}, but no object was given for it")
        self.node = node
        self.objects = objects
        self.on_wrong: Callable[[BadInput], None] = _refuse
        """Called where this member came back and cannot be given the state of an object."""
        self.died = 0
        """How many times a root was retried."""
        self._runtime = runtime
        self._observe = observe
        self._retries = retries
        self._numbers = count()
        self._pending: dict[tuple[Instance, int], Pending] = {}
        self._stops: dict[Instance, Callable[[], None]] = {}
        """The function that stops each running operation."""
        self._ending: dict[Instance, Promise] = {}
        self._room: deque[Promise] = deque()
        self._inbox: deque[Notice] = deque()

    def on_notice(self, notice: Notice) -> None:
        """Handle a notice of the node. The driver calls this with each one."""
        if self._observe is not None:
            self._observe(notice)
        if not isinstance(notice, Started | Answered | CalleeLost | Orphaned | Ended | StateWanted | StateCame | Returned):
            return
        if not self._inbox:
            self._runtime.soon(self._drain)
        self._inbox.append(notice)

    def _drain(self) -> None:
        for _ in range(len(self._inbox)):
            notice = self._inbox.popleft()
            if isinstance(notice, Started):
                self._run(notice)
            elif isinstance(notice, Answered | CalleeLost):
                pending = self._pending[notice.instance, notice.call]
                if not notice.left:
                    del self._pending[notice.instance, notice.call]
                pending.answered(notice)
            elif isinstance(notice, Orphaned):
                if notice.instance in self._stops:
                    self._stops[notice.instance]()
            elif isinstance(notice, StateWanted):
                self._hand_over(notice)
            elif isinstance(notice, StateCame):
                self._restore(notice)
            elif isinstance(notice, Returned):
                for waiting in self._room:
                    waiting.keep(None)
                self._room.clear()
            elif isinstance(notice, Ended):
                self._ending.pop(notice.instance).keep(notice)
                if self._room:
                    self._room.popleft().keep(None)
        if self._inbox:
            self._runtime.soon(self._drain)

    # Members that come back.

    def _hand_over(self, wanted: StateWanted) -> None:
        state, wrong = b"", ""
        try:
            state = captured(self.objects[wanted.object])
        except BadInput as error:
            wrong = f"{wanted.object} cannot be handed over: {error}"
        self._runtime.perform(self.node.hand_over(self._runtime.now(), wanted.object, wanted.to, state, wrong))

    def _restore(self, came: StateCame) -> None:
        try:
            if came.wrong:
                raise BadInput(came.wrong)
            restore(self.objects[came.object], came.state)
        except BadInput as error:
            self.on_wrong(error)
            return
        self._runtime.perform(self.node.restored(self._runtime.now(), came.object))

    # Operations.

    def _run(self, started: Started) -> None:
        instance = started.instance
        operation = self.objects[instance.object].operations[started.op]
        method = operation.taken_back_by if started.undo else operation.method
        assert method is not None

        async def run() -> bytes:
            result = await self._perform(method, started)
            try:
                return encode(result, "the result of a call")
            except BadInput:
                # For its caller, which gets no result, the operation has not happened.
                if operation.taken_back_by is not None and not started.undo:
                    await self._perform(operation.taken_back_by, started)
                raise

        def done(result: Any, error: BaseException | None) -> None:
            self._stops.pop(instance, None)
            if error is None:
                self._finish(instance, "ok", result)
            else:
                died = isinstance(error, CallDied)
                self._finish(instance, "died" if died else "aborted", b"" if died else encode(_sentence(error)))

        ended = False

        def told(result: Any, error: BaseException | None) -> None:
            nonlocal ended
            ended = True
            done(result, error)

        stop = self._runtime.start(run(), told)
        if not ended:
            self._stops[instance] = stop

    async def _perform(self, method: Method, started: Started) -> Any:
        args, kwargs = decode(started.payload)
        result = method(self.objects[started.instance.object], Call(self, started.instance), *args, **kwargs)
        return await result if inspect.isawaitable(result) else result

    def _finish(self, instance: Instance, status: Status, payload: bytes) -> None:
        self._runtime.perform(self.node.finish(self._runtime.now(), instance, status, payload))

    def invoke(
        self, instance: Instance, targets: str | Sequence[str], op: str, payload: bytes, *, undo: bool = False
    ) -> Pending:
        number, names = next(self._numbers), (targets,) if isinstance(targets, str) else tuple(targets)
        effects = self.node.invoke(self._runtime.now(), instance, number, names, op, payload, undo=undo)
        pending = self._pending[instance, number] = Pending(self._runtime.promise(), targets)
        self._runtime.perform(effects)
        return pending

    async def sleep(self, delay_ns: int) -> None:
        promise = self._runtime.promise()
        self._runtime.later(delay_ns, lambda: promise.keep(None))
        await promise

    # Roots.

    def start(self, program: Program, done: Done) -> None:
        """Run a root concurrently, and call `done` with its outcome."""
        self._runtime.start(self.run(program), done)

    async def run(self, program: Program) -> Any:
        """Run a tree of calls from its root, again whenever it has to give way to an older one. Returns what the program
        returns. If the program raises, whatever its calls did is undone as far as possible, and the exception is raised."""
        age: Stamp | None = None
        pace: Pace = "parallel"
        for attempt in range(1, self._retries + 1):
            instance = await self._begin(age, pace)
            began = self._runtime.now()
            age = self.node.age_of(instance)
            error: Exception | None = None
            result = None
            try:
                result = await program(Call(self, instance, attempt))
            except Exception as raised:  # noqa: BLE001
                # Any exception of a root aborts it; the application sees it when everything is undone.
                error = raised
            except BaseException:
                # The application was cancelled. What was done must still be undone, but the application does not wait for it.
                self._runtime.start(self._end(instance, "aborted", age), lambda _result, _error: None)
                raise
            died = isinstance(error, CallDied)
            ended = await self._end(instance, "died" if died else "ok" if error is None else "aborted", age)
            if ended.status == "ok":
                return result
            if ended.status == "aborted":
                assert error is not None
                raise error
            self.died += 1
            pace = "split" if ended.own or pace == "split" else "serial"
            await self.sleep(self._pause_ns(attempt, self._runtime.now() - began))
        raise CallDied

    async def _begin(self, age: Stamp | None, pace: Pace) -> Instance:
        while True:
            try:
                return self.node.begin(self._runtime.now(), age, pace)
            except WindowFull:
                self._room.append(self._runtime.promise())
                await self._room[-1]

    async def _end(self, instance: Instance, status: Status, age: Stamp) -> Ended:
        ending = self._ending[instance] = self._runtime.promise()
        self._finish(instance, status, b"")
        ended: Ended = await ending
        for undo in ended.undos:
            await self._take_back(undo, age)
        return ended

    async def _take_back(self, undo: Undo, age: Stamp) -> None:
        """Undo an operation in a root of its own, which holds nothing while it waits. It may have to give way, and is then
        retried without limit."""
        for attempt in count(1):
            instance = await self._begin(age, "serial")
            began = self._runtime.now()
            status: Status = "ok"
            try:
                await self.invoke(instance, undo.object, undo.op, undo.payload, undo=True)
            except CallDied:
                status = "died"
            except HostLost:
                pass  # There is nothing left to undo.
            finally:
                ending = self._ending[instance] = self._runtime.promise()
                self._finish(instance, status, b"")
            await ending
            if status == "ok":
                return
            await self.sleep(self._pause_ns(attempt, self._runtime.now() - began))

    def _pause_ns(self, attempt: int, took_ns: int) -> int:
        doubled = max(RETRY_NS, took_ns) * 2 ** min(attempt - 1, RETRY_DOUBLINGS)
        return int(min(doubled, RETRY_NS_MAX) * (0.5 + self._runtime.jitter()))


def _refuse(error: BadInput) -> None:
    raise error


def _sentence(error: BaseException) -> str:
    return str(error) or type(error).__name__
