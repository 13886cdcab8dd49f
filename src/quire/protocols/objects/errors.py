"""The errors of calls. Each says who has to act, and whether retrying can help."""

from __future__ import annotations

from quire.model.errors import BadInput, QuireError


class UnknownObject(BadInput):
    """The group has no object of that name."""


class UnknownOperation(BadInput):
    """The object has no operation of that name."""


class EmptyDestination(BadInput):
    """A call must name at least one object, and none of them twice."""


class InstanceEnded(QuireError):
    """The instance that makes the call, or finishes, has already ended."""


class MayNotCall(QuireError):
    """The operation may not call others: it is declared not to, or its object has replicas, each of which would make the
    call."""


class CallFailed(QuireError):
    """Base class of the errors with which a call ends at its caller."""


class CallAborted(CallFailed):
    """The called operation raised an exception. The caller may continue without it."""

    def __init__(self, object: str, why: str) -> None:
        super().__init__(f"{object} aborted the call: {why}" if why else f"{object} aborted the call")
        self.object = object
        self.why = why


class HostLost(CallFailed):
    """The host of a called object is gone, and the object with it. Whether the operation ran is unknown. The caller may
    continue without it."""

    def __init__(self, object: str, host: int) -> None:
        super().__init__(f"{object} is gone with its host, member {host}; the call may have been run there, or not")
        self.object = object
        self.host = host


class CallDied(CallFailed):
    """The call gave way to an older one, to avoid a deadlock. The whole tree of calls is retried from its root."""

    retryable = True

    def __init__(self, object: str = "") -> None:
        super().__init__(f"the call to {object} gave way to an older one" if object else "the call gave way to an older one")
        self.object = object
