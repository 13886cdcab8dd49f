"""The state of an active instance (one execution of an operation): its request, its causal past, and its calls."""

from __future__ import annotations

from typing import Literal

import msgspec

from quire.model.errors import BadInput, TooLarge
from quire.model.messages import MessageId
from quire.protocols.objects.declarations import Placed
from quire.protocols.objects.errors import CallDied, InstanceEnded, MayNotCall
from quire.protocols.objects.packets import Instance, Pace, Past, PastOnWire, Request, Response, Stamp, Undo
from quire.protocols.objects.queue import Copy, Key

Status = Literal["ok", "aborted", "died"]

TAKE_BACK_BYTES_MAX = 64 << 20
"""How many bytes of arguments an instance remembers of calls that may have to be undone."""


class Call(msgspec.Struct):
    """A call that an instance makes, from the request until all responses are delivered."""

    call: int
    targets: tuple[str, ...]
    op: str
    payload: bytes
    undo: bool
    number: int = -1
    """The number of the message, once it is sent."""
    rest: tuple[str, ...] = ()
    """Of a split call, the targets that are still to be called."""
    waiting: set[Instance] = msgspec.field(default_factory=set)
    failed: bool = False
    undos: list[Undo] = msgspec.field(default_factory=list)
    gated: tuple[str, ...] = ()
    """Of a serial call, the targets that run one after the other: those that may call others themselves."""
    released: int = 1
    """How many of the gated ones may run, or have run."""

    def to_release(self) -> tuple[str, ...]:
        """The next target of a serial call that may run, once the one before has answered; after a failure, all remaining
        targets, none of which may run."""
        if any(callee.object in self.gated[: self.released] for callee in self.waiting):
            return ()
        first, self.released = self.released, len(self.gated) if self.failed else self.released + 1
        return self.gated[first : self.released]


class Activity(msgspec.Struct):
    instance: Instance
    op: str
    """Empty: a root."""
    payload: bytes
    key: Key
    chain: tuple[Instance, ...]
    """The instance itself and all its direct and indirect callers, root first."""
    pace: Pace
    undo: bool
    caller: Instance | None
    may_call: bool
    past: Past
    sends: int = 0
    open: dict[int, Call] = msgspec.field(default_factory=dict)
    """Calls under way, by the numbers that the application gave them."""
    queued: list[Call] = msgspec.field(default_factory=list)
    """Calls that wait for the one before, where one goes at a time."""
    doomed: bool = False
    """A call of it died; so it must fail, and its callers too, up to the root."""
    own: bool = False
    """It died of its own tree."""
    orphan: bool = False
    """It has lost one of its callers, and must end without effect."""
    ending: tuple[Status, bytes] | None = None
    undos: list[Undo] = msgspec.field(default_factory=list)
    dues: list[Undo] = msgspec.field(default_factory=list)

    @property
    def age(self) -> Stamp:
        return self.key[0]

    @property
    def request(self) -> MessageId:
        return MessageId(self.instance.origin, self.instance.number)

    def check_may_call(self, call: int) -> None:
        """Raise the reason why it may not make a call with this number, if there is one."""
        if not self.may_call:
            raise MayNotCall(f"{self.op} of {self.instance.object} may not call others: it is declared so, or has replicas")
        if self.ending is not None or self.orphan:
            raise InstanceEnded(f"{self.instance} has finished and cannot call any more")
        if call in self.open or any(each.call == call for each in self.queued):
            raise BadInput(f"{self.instance} has a call {call} already")
        if self.doomed:
            raise CallDied

    def request_of(self, call: Call, clock: int, sends: int, past: PastOnWire, targets: tuple[str, ...]) -> Request:
        """The message with which it calls these targets."""
        return Request(
            number=call.number,
            clock=clock,
            sender=self.instance,
            sends=sends,
            past=past,
            chain=self.chain,
            age=self.age,
            targets=targets,
            op=call.op,
            payload=call.payload,
            undo=call.undo,
            pace=self.pace,
        )

    def response(
        self, number: int, clock: int, sends: int, past: PastOnWire, status: Status, payload: bytes, *, can_be_undone: bool
    ) -> Response:
        """The message with which it answers its caller."""
        assert self.caller is not None
        undos, dues = self.to_take_back(status)
        if status == "ok" and not self.undo and can_be_undone:
            undos = (*undos, Undo(self.request, self.instance.object, self.op, self.payload))
        return Response(number, clock, self.instance, sends, past, self.caller, status, payload, undos, dues, self.own)

    def outcome(self) -> tuple[Status, bytes]:
        """How it ends, now that all its calls have ended."""
        assert self.ending is not None
        if self.orphan:
            return "aborted", b""
        return ("died", b"") if self.doomed else self.ending

    def call_of(self, callee: Instance) -> Call | None:
        return next((call for call in self.open.values() if callee in call.waiting), None)

    def take_over(self, call: Call, response: Response) -> None:
        """Add what a callee wants undone, each operation once."""
        known = {(undo.request, undo.object) for undo in (*call.undos, *self.dues)}
        call.undos += [undo for undo in response.undos if (undo.request, undo.object) not in known]
        self.dues += [undo for undo in response.dues if (undo.request, undo.object) not in known]

    def check_room_to_take_back(self, more: int) -> None:
        """Raise TooLarge if the arguments of operations that may have to be undone are larger than what can be reported to
        its caller."""
        size = more + sum(len(undo.payload) for undo in (*self.undos, *self.dues))
        if size > TAKE_BACK_BYTES_MAX:
            raise TooLarge("what a tree of calls may have to take back", size, TAKE_BACK_BYTES_MAX)

    def to_take_back(self, status: Status) -> tuple[tuple[Undo, ...], tuple[Undo, ...]]:
        """What its caller must undo if that caller fails, and what it must undo in any case; both with the earliest first."""
        if status != "ok":
            return (), (*self.dues, *self.undos)
        return tuple(self.undos), tuple(self.dues)


def become(copy: Copy, me: int, placed: Placed) -> Activity:
    """The instance that a copy of a request becomes at this member."""
    request = copy.request
    instance = Instance(copy.stamp.member, request.number, copy.object, me)
    return Activity(
        instance=instance,
        op=request.op,
        payload=request.payload,
        key=copy.key,
        chain=(*request.chain, instance),
        pace=request.pace,
        undo=request.undo,
        caller=request.sender,
        may_call=not request.undo and placed.may_call(request.op),
        past={},
    )
