"""The paper's rules as they are printed, kept to show what each of them does wrong.

Instances are named and ordered by a linear clock that moves when they start, events are numbered only when something
changes, and vectors hold one such number for each object (4.1). Two readings of "on receipt" exist: `literal` takes the
sender's component alone, `max` merges all of them.
"""

from __future__ import annotations

from typing import Any

Number = tuple[int, int, int]
"""The global event number of the paper: linear clock and object of the instance, and the number of the event."""

ZERO: Number = (0, -1, 0)


class PrintedObject:
    def __init__(self, width: int) -> None:
        self.linear_clock = 0
        self.events = 0
        self.vector = [ZERO] * width


class PrintedInstance:
    def __init__(self, name: tuple[int, int], index: int, vector: list[Number]) -> None:
        self.name = name
        self.index = index
        self.vector = list(vector)


class PrintedMessage:
    def __init__(self, number: Number, vector: list[Number], index: int) -> None:
        self.number = number
        self.vector = vector
        self.receipt = [number if each == index else old for each, old in enumerate(vector)]


class PrintedVectors:
    """Follows a script of events and gives every message its tno, V and RV."""

    def __init__(self, objects: list[str], receive_rule: str) -> None:
        self.objects = {name: PrintedObject(len(objects)) for name in objects}
        self.indices = {name: index for index, name in enumerate(objects)}
        self.names = objects
        self.literal = receive_rule == "literal"
        self.instances: dict[str, PrintedInstance] = {}
        self.homes: dict[str, str] = {}
        self.senders: dict[str, str] = {}
        self.messages: dict[str, PrintedMessage] = {}

    def follow(self, events: list[Any]) -> None:
        for kind, *rest in events:
            getattr(self, f"on_{kind}")(*rest)

    def on_start(self, instance: str, home: str, _op: str, request: str | None = None) -> None:
        there = self.objects[home]
        if request is not None:
            there.linear_clock = max(there.linear_clock, self.messages[request].number[0])
        there.linear_clock += 1
        self.homes[instance] = home
        self.instances[instance] = PrintedInstance((there.linear_clock, self.indices[home]), self.indices[home], there.vector)
        if request is not None:
            self.on_recv(request, instance)

    def on_change(self, instance: str) -> None:
        self.objects[self.homes[instance]].events += 1

    def on_send(self, message: str, instance: str, *_: Any) -> None:
        sender = self.instances[instance]
        number = (*sender.name, self.objects[self.homes[instance]].events)
        self.messages[message] = PrintedMessage(number, list(sender.vector), sender.index)
        self.senders[message] = instance
        sender.vector[sender.index] = number

    def on_recv(self, message: str, instance: str) -> None:
        receiver, receipt = self.instances[instance], self.messages[message].receipt
        source = self.instances[self.senders[message]].index
        for index, number in enumerate(receipt):
            if self.literal:
                if index == source:
                    receiver.vector[index] = number
            else:
                receiver.vector[index] = max(receiver.vector[index], number)

    def on_commit(self, instance: str) -> None:
        home = self.objects[self.homes[instance]]
        home.vector = list(map(max, home.vector, self.instances[instance].vector))

    def on_abort(self, instance: str) -> None:
        """An aborted instance leaves nothing."""

    def shown(self, number: Number) -> str | int:
        return 0 if number == ZERO else f"{number[0]}{self.names[number[1]]}{number[2]}"

    def precedes(self, first: str, second: str) -> bool:
        """Ordering rule (1), without its condition on operations."""
        one, other = self.messages[first], self.messages[second]
        return _less(one.vector, other.vector) and _less(one.receipt, other.receipt)


def _less(one: list[Number], other: list[Number]) -> bool:
    return one != other and all(a <= b for a, b in zip(one, other, strict=True))
