"""The `call` argument of a running operation, or of a root: the handle by which it calls other objects."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from quire.model.errors import BadInput
from quire.model.payloads import as_bytes
from quire.objects.runtime import Promise
from quire.protocols.objects.errors import CallAborted, CallDied, HostLost
from quire.protocols.objects.notices import Answered, CalleeLost
from quire.protocols.objects.packets import Instance

if TYPE_CHECKING:
    from quire.objects.executor import Executor

_encoder = msgspec.msgpack.Encoder()


def encode(value: Any, what: str = "the arguments of a call") -> bytes:
    """Arguments and results are sent as MessagePack. Raises BadInput for values that cannot be encoded, and TooLarge."""
    try:
        data = _encoder.encode(value)
    except (TypeError, ValueError, OverflowError) as error:
        raise BadInput(f"arguments and results must be plain data that MessagePack can encode: {error}") from None
    return as_bytes(data, what)


def decode(payload: bytes) -> Any:
    return msgspec.msgpack.decode(payload)


class Pending:
    """A call that has been sent. Await it for its result; several may be pending at once."""

    def __init__(self, promise: Promise, targets: str | Sequence[str]) -> None:
        self._promise = promise
        self._targets = targets
        self._answers: dict[Instance, Answered] = {}
        self._lost: dict[str, int] = {}
        """The objects that have lost a host, and which host."""

    def __await__(self) -> Generator[Any, Any, Any]:
        return self._promise.__await__()

    def answered(self, answer: Answered | CalleeLost) -> None:
        if isinstance(answer, Answered):
            self._answers[answer.callee] = answer
        else:
            self._lost.setdefault(answer.callee.object, answer.callee.member)
        if answer.left:
            return
        # By member, so that of replicas, which answer alike, the same one is always chosen.
        answers = [self._answers[callee] for callee in sorted(self._answers, key=lambda each: each.member)]
        for status in ("died", "aborted"):
            for each in answers:
                # A target that was not run because another one failed has no reason of its own.
                if each.status == status and (each.payload or status == "died"):
                    self._promise.fail(_failure(each))
                    return
        for lost, host in self._lost.items():
            if not any(each.callee.object == lost for each in answers):
                self._promise.fail(HostLost(lost, host))
                return
        results: dict[str, Any] = {}
        try:
            for each in answers:
                results.setdefault(each.callee.object, decode(each.payload))
        except msgspec.DecodeError as error:
            self._promise.fail(CallAborted(answer.callee.object, f"its answer cannot be read: {error}"))
            return
        self._promise.keep(results[self._targets] if isinstance(self._targets, str) else results)


def _failure(answer: Answered) -> Exception:
    if answer.status == "died":
        return CallDied(answer.callee.object)
    try:
        why = str(decode(answer.payload)) if answer.payload else ""
    except msgspec.DecodeError as error:
        why = f"its reason cannot be read: {error}"
    return CallAborted(answer.callee.object, why)


class Call:
    """The context that every operation gets. `attempt` counts how often the root was tried, from 1."""

    def __init__(self, executor: Executor, instance: Instance, attempt: int = 1) -> None:
        self.instance = instance
        self.attempt = attempt
        self._executor = executor

    def invoke(self, targets: str | Sequence[str], op: str, *args: Any, **kwargs: Any) -> Pending:
        """Call an operation of one object, or of several at once, and await the result: what the operation returned, or a
        mapping from objects to that. The call is sent at once; it may be awaited later.

        Raises CallAborted if it raised an exception at some object, which may be caught, and CallDied if it had to give way,
        which ends the caller too: the root is then tried again. Raises BadInput if the call is invalid, and TooLarge if its
        arguments, or what would have to be undone of the tree, are too large.
        """
        return self._executor.invoke(self.instance, targets, op, encode((args, kwargs)))

    async def sleep(self, seconds: float) -> None:
        """Wait for some time; works in the simulator too."""
        await self._executor.sleep(int(seconds * 1_000_000_000))
