"""The vectors of a member's instances: the causal past of active ones, and what ended ones pass on to later ones.

An instance starts with the past of all ended instances that conflict with it, adds what it receives, and at its end passes all
of it on to those that conflict with it, whether it committed or aborted. With dense vectors it starts with the past of all
ended instances of its object.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from quire.protocols.objects.activity import Activity
from quire.protocols.objects.declarations import ObjectType
from quire.protocols.objects.packets import Instance, Mark, Past, PastOnWire, Request, Response
from quire.protocols.objects.vectors import dense_key, merge, precedes, prune


class Memory:
    def __init__(self, dense: bool, floor: Callable[[], Mapping[int, int]] | None) -> None:
        self.dense = dense
        self.first = 0
        """Sends are counted from here on where they are counted by object."""
        self._floor = floor
        """What is delivered everywhere, by sender; None: nothing is ever forgotten."""
        self._stores: dict[tuple[str, str], Past] = {}
        self._dense_counts: dict[Instance, int] = {}

    def start(self, activity: Activity, type: ObjectType) -> None:
        """The instance starts now: every conflicting instance that has ended here is in its past."""
        name = activity.instance.object
        for op in ("",) if self.dense else sorted(type.conflicting[activity.op]):
            merge(activity.past, self._stores.get((name, op), {}).items())

    def receive(self, activity: Activity, message: Request | Response) -> None:
        merge(activity.past, message.past)
        mark = Mark(message.sends, message.clock, isinstance(message, Response))
        merge(activity.past, [(self.key(message.sender), mark)])

    def is_next(self, activity: Activity, response: Response, come: Sequence[Response]) -> bool:
        """Whether no other response to the instance, whether it has arrived or not, significantly precedes this one. The
        exact vector says which of its calls ended in the past of this one; the dense vector says that only of responses that
        have arrived."""
        past = dict(response.past)
        if not self.dense:
            outstanding = (callee for call in activity.open.values() for callee in call.waiting if callee != response.sender)
            return not any(callee in past and past[callee].ended for callee in outstanding)
        others = (each for each in come if each is not response)
        return not any(precedes(dense_key(each.sender), each.sends, past) for each in others)

    def send(self, activity: Activity, clock: int, *, ends: bool) -> tuple[int, PastOnWire]:
        """The number and the past of the message that the instance sends with this clock, which is in the past of the next
        one."""
        self._forget(activity.past)
        past, key = tuple(activity.past.items()), self.key(activity.instance)
        if self.dense:
            activity.sends = self._dense_counts[key] = self._dense_counts.get(key, self.first) + 1
        else:
            activity.sends += 1
        activity.past[key] = Mark(activity.sends, clock, ends)
        return activity.sends, past

    def end(self, activity: Activity) -> None:
        """Keep what the instance knew for conflicting instances that start later."""
        store = self._stores.setdefault((activity.instance.object, "" if self.dense else activity.op), {})
        merge(store, activity.past.items())
        self._forget(store)

    def sizes(self) -> tuple[int, ...]:
        return tuple(map(len, self._stores.values()))

    def key(self, instance: Instance) -> Instance:
        return dense_key(instance) if self.dense else instance

    def _forget(self, past: Past) -> None:
        if self._floor is not None and past:
            prune(past, self._floor())
