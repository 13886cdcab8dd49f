"""What clients testify, and what others say of it, for the tests of units without backups."""

from __future__ import annotations

from typing import Any

from quire.model.messages import Run, pack
from quire.protocols.node import Effects, Send
from quire.protocols.sequencing.events import JOIN, LEAVE, MESSAGES, Event, Remembered
from quire.protocols.sequencing.failover import SurvivingClient, SurvivingOptions
from quire.protocols.sequencing.failover import packets as wire
from quire.protocols.sequencing.failover.configurations import Name
from quire.protocols.sequencing.failover.memory import Memory
from quire.protocols.sequencing.senders import Numbers

A, B = Name(10, 0), Name(11, 0)
UNIT, OTHER, REG = 10, 11, 20
OPTIONS = SurvivingOptions(order="total", backups=0, balance_ticks=0, silent_ticks=3)
LIFE = 7


def sends(effects: Effects, kind: type[Any]) -> list[Any]:
    return [each.packet for each in effects if isinstance(each, Send) and isinstance(each.packet, kind)]


def said(effects: Effects, kind: type[Any]) -> list[Any]:
    """What is in the letters."""
    return [letter.packet for letter in sends(effects, wire.Letter) if isinstance(letter.packet, kind)]


def message(seq: int, who: int = 0, counter: int | None = None, life: int = 0, **more: Any) -> Event:
    counter = seq - 1 if counter is None else counter
    run = Run(who, counter, 1, pack([b"m"]))
    return Event("G", seq, MESSAGES, who, run=run, remembered=Remembered(life, counter), **more)


def join(seq: int, who: int, req: int, members: tuple[int, ...], senders: dict[int, Numbers] | None = None) -> Event:
    return Event("G", seq, JOIN, who, req, members=members, remembered=Remembered(0, senders=senders or {}))


def leave(seq: int, who: int, req: int, members: tuple[int, ...]) -> Event:
    return Event("G", seq, LEAVE, who, req, members=members, remembered=Remembered(0))


def told_by(
    me: int, delivered: int, kept: tuple[Event, ...] = (), view: tuple[int, ...] = (0, 1), **more: Any
) -> wire.Testimony:
    """Of a client that has delivered so much of what it received."""
    memory = Memory(me)
    for event in kept:
        if event.last <= delivered:
            memory.delivered(event, view)
    held = [event for event in kept if event.last > delivered]
    since, senders = memory.senders("G")
    return wire.Testimony(UNIT, 1, "G", delivered, view, kept=memory.kept("G", held), since=since, senders=senders, **more)


def member(group: str = "G") -> SurvivingClient:
    client = SurvivingClient(0, (10, 11), (UNIT, OTHER), (REG,), OPTIONS)
    client.locations[group] = UNIT
    client.hold.delivered[group] = 0
    client.views[group] = (0, 1)
    return client
