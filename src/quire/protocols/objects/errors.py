"""The errors of calls. Each says who has to act, and whether retrying can help."""

from __future__ import annotations

from quire.model.errors import BadInput, QuireError


class UnknownObject(BadInput):
    """No object of that name is in the group."""


class UnknownOperation(BadInput):
    """The object has no operation of that name."""


class EmptyDestination(BadInput):
    """A call must name at least one object, and none twice."""


class InstanceEnded(QuireError):
    """The instance that calls, or finishes, has ended already."""


class MayNotCall(QuireError):
    """The operation may not call others: it is declared so, or its object has replicas, which would all call."""


class CallFailed(QuireError):
    """Base of the errors that a caller sees of a failed call."""


class CallAborted(CallFailed):
    """An operation that was called ended by an exception; the caller may go on without it."""

    def __init__(self, object: str, why: str) -> None:
        super().__init__(f"{object} aborted the call: {why}" if why else f"{object} aborted the call")
        self.object = object
        self.why = why


class HostLost(CallFailed):
    """The host of an object that was called is gone, and with it the object; nobody knows whether the operation was run. The
    caller may go on without it."""

    def __init__(self, object: str, host: int) -> None:
        super().__init__(f"{object} is gone with its host, member {host}; the call may have been run there, or not")
        self.object = object
        self.host = host


class CallDied(CallFailed):
    """The call gave way to an older one, to avoid deadlock. The whole tree of calls is retried from its root."""

    retryable = True

    def __init__(self, object: str = "") -> None:
        super().__init__(f"the call to {object} gave way to an older one" if object else "the call gave way to an older one")
        self.object = object
