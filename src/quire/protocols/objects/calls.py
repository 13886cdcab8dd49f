"""Calls at a member of a group of objects: sending, ordering, running and ending them, while nobody is lost or comes back.

`node` is the whole member; it adds the changes of membership, and says what the protocol is.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence

from quire.model.errors import ProtocolViolation, WindowFull
from quire.model.packets import Packet
from quire.protocols.node import NOTHING, Effects, Node
from quire.protocols.objects.activity import Activity, Call, Status, become
from quire.protocols.objects.checks import check
from quire.protocols.objects.declarations import Catalogue
from quire.protocols.objects.departures import Departures
from quire.protocols.objects.errors import InstanceEnded
from quire.protocols.objects.exchange import Exchange, ObjectOptions
from quire.protocols.objects.explain import Explanation, Heads
from quire.protocols.objects.memory import Memory
from quire.protocols.objects.notices import Answered, Ended, Refused, Sent, Started
from quire.protocols.objects.packets import (
    AnyContent,
    Data,
    Heartbeat,
    Instance,
    Nack,
    Pace,
    Part,
    Release,
    Request,
    Response,
    Stamp,
)
from quire.protocols.objects.queue import Copy, ObjectQueue, Running
from quire.protocols.objects.returns import Returns


class Calls(Node):
    packets = (Data, Heartbeat, Nack)

    def __init__(self, address: int, catalogue: Catalogue, options: ObjectOptions | None = None) -> None:
        super().__init__(address)
        self.catalogue = catalogue
        self.options = options or ObjectOptions()
        self.exchange = Exchange(address, catalogue.members, self.options)
        self.queues = {name: ObjectQueue(catalogue.find(name)) for name in catalogue.at(address)}
        self.activities: dict[Instance, Activity] = {}
        self.roots = 0
        self.memory = Memory(self.options.vectors == "dense", self.exchange.floor if self.options.collect else None)
        self._numbers = self._root_numbers = 0
        self._responses: dict[Instance, list[Response]] = {}
        self.heads = Heads(self.options.history)
        self.departures = Departures(address, catalogue, self.exchange.floor)
        self.returns = Returns(address, catalogue, self.departures)
        self._waiting: dict[tuple[Instance, int], None] = {}
        """Calls that are put off until a member that came back has the state of its objects."""

    def number_from(self, first: int) -> None:
        """Number messages and instances from here on: earlier numbers belong to previous processes of this member."""
        self._numbers = self._root_numbers = self.memory.first = first

    # Requests of the application.

    def begin(self, now: int, age: Stamp | None = None, pace: Pace = "parallel") -> Instance:  # noqa: ARG002
        """Open a root, which calls objects but runs at none. A root that is tried again keeps the `age` of its first try and
        proceeds at another `pace`. Call `finish` when it is done. Raises WindowFull while too many roots are open, or before
        this member has rejoined."""
        if not self.returns.is_back:
            raise WindowFull(f"member {self.address} has come back, and does not have the states of its objects yet")
        if self.roots >= self.options.roots:
            raise WindowFull(f"member {self.address} has {self.roots} open calls; try again when one has ended")
        stamp = self.exchange.tick()
        instance = Instance(self.address, self._root_numbers, "", self.address)
        self._root_numbers += 1
        self.roots += 1
        self.activities[instance] = Activity(instance, "", b"", (age or stamp, stamp), (instance,), pace, False, None, True, {})
        return instance

    def age_of(self, root: Instance) -> Stamp:
        return self._active(root).age

    def invoke(
        self, now: int, instance: Instance, call: int, targets: Sequence[str], op: str, payload: bytes, *, undo: bool = False
    ) -> Effects:
        """Call the operation at the targets for an active instance. `Answered` follows for every copy, with the returned
        number.

        Raises the error that the call would cause; CallDied if another call of the instance has died, so that this one would
        be in vain.
        """
        activity, targets = self._active(instance), tuple(targets)
        self.catalogue.check_call(targets, op)
        activity.check_may_call(call)
        self.departures.check_hosts(targets)
        undoable = 0 if undo else sum(op in self.catalogue.find(target).type.undoable for target in targets)
        if undoable:
            activity.check_room_to_take_back(undoable * len(payload))
        wanted = Call(call, targets, op, payload, undo)
        if activity.pace != "parallel" and (activity.open or activity.queued):
            activity.queued.append(wanted)
        else:
            self._call(now, activity, wanted)
        return self._flush(now)

    def finish(self, now: int, instance: Instance, status: Status, payload: bytes = b"") -> Effects:
        """The operation of the instance has returned. The instance ends when its calls have ended: a root with `Ended`, any
        other with a response."""
        activity = self._active(instance)
        if activity.ending is not None:
            raise InstanceEnded(f"{instance} has finished already")
        activity.ending = (status, payload)
        self._try_end(now, activity)
        return self._flush(now)

    def explain(self, first: tuple[int, int], second: tuple[int, int]) -> Explanation:
        """Why two messages, each given by its sender and number, are ordered here, or that they are not."""
        return self.heads.explain(first, second, self.catalogue)

    # Inputs of the driver.

    def receive(self, now: int, source: int, packet: Packet) -> Effects:
        if source in self.departures.fenced:
            return NOTHING
        if source not in self.exchange.links or not isinstance(packet, Data | Heartbeat | Nack):
            raise ProtocolViolation(source, "it is not in the group, or sent what this protocol does not know")
        if not self.exchange.is_between(source, packet):
            return NOTHING
        if isinstance(packet, Data):
            check(self.address, source, packet.content, self.catalogue)
        for content in self.exchange.receive(now, source, packet):
            self._accept(now, source, content)
        return self._flush(now)

    def wake(self, now: int) -> Effects:
        self.exchange.wake(now, self._waits())
        return self._flush(now)

    def due(self) -> int | None:
        return self.exchange.due(self._waits())

    def idle(self) -> bool:
        return not self.activities and not self._waits() and self.exchange.is_quiet()

    def _waits(self) -> bool:
        return any(queue.copies for queue in self.queues.values()) or bool(self._responses)

    def vector_sizes(self) -> tuple[int, ...]:
        """How many entries the vectors kept here have, for monitoring."""
        return (*(len(activity.past) for activity in self.activities.values()), *self.memory.sizes())

    # Sending.

    def _call(self, now: int, activity: Activity, call: Call) -> None:
        activity.open[call.call] = call
        if activity.pace == "split":
            call.rest = call.targets[1:]
            self._request(now, activity, call, call.targets[:1])
        else:
            self._request(now, activity, call, call.targets)

    def _request(self, now: int, activity: Activity, call: Call, targets: tuple[str, ...]) -> None:
        if self.returns.is_waited_for(targets):
            call.rest = (*targets, *call.rest)
            self._waiting[activity.instance, call.call] = None
            return
        call.number, self._numbers = self._numbers, self._numbers + len(targets)
        stamp = self.exchange.tick()
        sends, past = self.memory.send(activity, stamp.clock, ends=False)
        request = activity.request_of(call, stamp.clock, sends, past, targets)
        call.gated = self.catalogue.gated(targets, call.op)
        members: dict[int, None] = {}
        shared = call.number if len(targets) > 1 else None
        for index, target in enumerate(targets):
            placed = self.catalogue.find(target)
            live = self.departures.live(placed)
            members.update(dict.fromkeys(live))
            call.waiting.update(Instance(self.address, call.number, target, member) for member in live)
            self.exchange.out.append(
                Sent(activity.instance, call.op, call.number + index, target, live, shared, len(call.payload))
            )
            if placed.type.conflicting[call.op]:
                self.exchange.want(stamp.clock)
        self._post(now, members, request)

    def _respond(self, now: int, activity: Activity, status: Status, payload: bytes) -> None:
        assert activity.caller is not None
        if activity.caller.member in self.departures.gone:
            return
        clock, undoable = self.exchange.tick().clock, self.catalogue.find(activity.instance.object).type.undoable
        sends, past = self.memory.send(activity, clock, ends=True)
        number, self._numbers, to = self._numbers, self._numbers + 1, (activity.caller.member,)
        response = activity.response(number, clock, sends, past, status, payload, can_be_undone=activity.op in undoable)
        self.exchange.out.append(Sent(activity.instance, status, number, None, to, None, len(payload)))
        self._post(now, to, response)

    def _post(self, now: int, members: Sequence[int] | dict[int, None], content: AnyContent) -> None:
        self.heads.remember(content)
        for member in members:
            if member == self.address:
                self._accept(now, member, content)
            elif member in self.exchange.links:
                self.exchange.send(now, member, content)

    # Receiving.

    def _accept(self, now: int, source: int, content: AnyContent) -> None:
        """A message has arrived, and none before it is missing: it now waits for its delivery."""
        if source != self.address:
            self.departures.keep(source, content)
            self.heads.remember(content)
        if isinstance(content, Release):
            self._released(now, source, content)
            return
        if isinstance(content, Part):
            self._take_part(source, content)
            return
        if isinstance(content, Response):
            self.exchange.arrived(source, content.number, content.clock, 1)
            self._responses.setdefault(content.to, []).append(content)
            return
        here = [target for target in content.targets if target in self.queues]
        self.exchange.arrived(source, content.number, content.clock, len(here))
        stamp = Stamp(content.clock, source)
        for target in here:
            held = content.pace == "serial" and target in self.catalogue.gated(content.targets, content.op)[1:]
            copy = Copy(content, target, stamp, (content.age, stamp), held, now)
            copy.held = held and not self._is_orphan(copy)
            self.returns.hold(copy)
            self.queues[target].add(copy)
            if not self.queues[target].is_free(content.op):
                self.exchange.want(content.clock)

    def _released(self, now: int, source: int, release: Release) -> None:
        queue = self.queues.get(release.object)
        copy = queue.release((source, release.request)) if queue is not None else None
        # One that is not there gave way in the meantime, and its caller will read so.
        if queue is not None and copy is not None and not release.go:
            # Another target failed before; which way, its caller knows.
            queue.copies.remove(copy)
            self._refuse(now, copy, "aborted")

    # Delivering.

    def _flush(self, now: int) -> Effects:
        """Deliver messages until no more can be delivered."""
        moved = True
        while moved:
            moved = False
            for queue in self.queues.values():
                while (decision := queue.next_decision(self._is_stable) if queue.copies else None) is not None:
                    copy, starts = decision
                    if starts and not self._is_orphan(copy):
                        self._start(now, copy)
                    else:
                        self._refuse(now, copy, "aborted" if self._is_orphan(copy) else "died")
                    moved = True
            for instance in list(self._responses):
                moved = self._deliver_responses(now, instance) or moved
        self._hand_over_what_is_due()
        out, self.exchange.out = self.exchange.out, []
        return out

    def _is_stable(self, request: Request) -> bool:
        return self.exchange.is_stable(Stamp(request.clock, request.sender.member))

    def _start(self, now: int, copy: Copy) -> None:
        activity, request = become(copy, self.address, self.queues[copy.object].placed), copy.request
        self.memory.start(activity, self.queues[copy.object].placed.type)
        self.memory.receive(activity, request)
        self.activities[activity.instance] = activity
        self.queues[copy.object].active[activity.instance] = Running(activity.instance, request.op, copy.key, activity.may_call)
        source = copy.stamp.member
        self.exchange.delivered(source, request.number)
        number = request.number + request.targets.index(copy.object)
        self.exchange.out.append(
            Started(activity.instance, source, number, request.op, request.payload, request.undo, now - copy.came)
        )

    def _refuse(self, now: int, copy: Copy, status: Status) -> None:
        activity, request = become(copy, self.address, self.queues[copy.object].placed), copy.request
        activity.own = copy.own
        self.memory.receive(activity, request)
        source, number = copy.stamp.member, request.number + request.targets.index(copy.object)
        self.exchange.delivered(source, request.number)
        self.exchange.out.append(Refused(activity.instance, source, number, request.op, len(request.payload)))
        self._respond(now, activity, status, b"")

    def _deliver_responses(self, now: int, instance: Instance) -> bool:
        activity, waiting = self.activities.get(instance), self._responses[instance]
        moved = False
        for response in list(waiting):
            call = activity.call_of(response.sender) if activity is not None else None
            if activity is None or call is None:
                # Of an instance that has ended, or a second answer of one that answered: neglected.
                self._consume(instance, response)
            elif self._may_deliver(activity, response):
                self._consume(instance, response)
                self._answer(now, activity, call, response)
                moved = True
        return moved

    def _consume(self, instance: Instance, response: Response) -> None:
        self._responses[instance].remove(response)
        if not self._responses[instance]:
            del self._responses[instance]
        self.exchange.delivered(response.sender.member, response.number)

    def _may_deliver(self, activity: Activity, response: Response) -> bool:
        """Whether no other response to this instance significantly precedes it. With dense vectors, that requires stability."""
        if self.memory.dense and not self.exchange.is_stable(Stamp(response.clock, response.sender.member)):
            return False
        return self.memory.is_next(activity, response, self._responses[activity.instance])

    def _answer(self, now: int, activity: Activity, call: Call, response: Response) -> None:
        self.memory.receive(activity, response)
        call.waiting.discard(response.sender)
        if response.status == "died":
            activity.doomed = True
            activity.own = activity.own or response.own
        if response.status != "ok":
            call.failed, call.rest = True, ()
        activity.take_over(call, response)
        callee, left = response.sender, len(call.waiting) + len(call.rest)
        answer = (call.call, callee, callee.member, response.number, response.status, response.payload, left)
        self.exchange.out.append(Answered(activity.instance, activity.op, *answer))
        self._go_on(now, activity, call)

    def _go_on(self, now: int, activity: Activity, call: Call) -> None:
        """Stop waiting for a callee of this call."""
        if call.rest and not call.waiting:
            # Where it is not split, all of it was put off.
            following = call.rest[:1] if activity.pace == "split" else call.rest
            call.rest = call.rest[len(following) :]
            self._request(now, activity, call, following)
        elif not call.waiting:
            self._end_call(now, activity, call)
        elif activity.pace == "serial":
            for target in call.to_release():
                # Only what applications send is numbered; this has its clock for a number.
                clock = self.exchange.tick().clock
                release = Release(clock, clock, call.number, target, not call.failed)
                self._post(now, self.catalogue.find(target).members, release)

    def _end_call(self, now: int, activity: Activity, call: Call) -> None:
        del activity.open[call.call]
        # A call that failed at one of its targets is undone at the others, whatever becomes of its caller.
        (activity.dues if call.failed else activity.undos).extend(call.undos)
        if activity.queued and not activity.open:
            self._call(now, activity, activity.queued.pop(0))
        self._try_end(now, activity)

    # Ending.

    def _try_end(self, now: int, activity: Activity) -> None:
        if activity.ending is None or activity.open or activity.queued:
            return
        status, payload = activity.outcome()
        del self.activities[activity.instance]
        if activity.caller is None:
            self.roots -= 1
            _, dues = activity.to_take_back(status)
            self.exchange.out.append(Ended(activity.instance, status, tuple(reversed(dues)), activity.own))
            return
        del self.queues[activity.instance.object].active[activity.instance]
        self._respond(now, activity, status, payload)
        # At abort as well: what the instance sent lies before whatever conflicts with it, however it ended.
        self.memory.end(activity)

    # What follows from changes of membership.

    @abstractmethod
    def _is_orphan(self, copy: Copy) -> bool:
        """Whether a request must not be run because one of its callers is gone."""

    @abstractmethod
    def _take_part(self, source: int, part: Part) -> None:
        """A part of a state has arrived."""

    @abstractmethod
    def _hand_over_what_is_due(self) -> None:
        """Hand over states that are complete now to members that came back."""

    def _active(self, instance: Instance) -> Activity:
        if instance not in self.activities:
            raise InstanceEnded(f"{instance} is not active at member {self.address}")
        return self.activities[instance]
