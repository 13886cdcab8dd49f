"""Reconstructs a group from its members' testimonies: the state from which a sequencer without one goes on.

All clients that are entered in the group must have testified: otherwise one may have delivered, or been told, what nobody else
knows, and the group is lost. Every number that any of them mentions counts as assigned. Numbers whose events nobody received
stay blank, because nobody can have delivered them, nor a message after them, nor have been told that they are assigned: senders
retransmit what was lost, and it gets another number. Members are the clients that say so, or whose join a client received.

A group without a member is lost: nobody knows what was numbered in it. So is one in which a client received a join or leave
that presupposes another one, which nobody received.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping

from msgspec.structs import replace

from quire.model.messages import Run
from quire.protocols.sequencing.events import BLANK, JOIN, LEAVE, MESSAGES, Event, Remembered
from quire.protocols.sequencing.failover.memory import note
from quire.protocols.sequencing.failover.packets import Testimony
from quire.protocols.sequencing.senders import Numbers, copied
from quire.protocols.sequencing.state import GroupState


def rebuild(
    group: str, life: int, witnesses: Iterable[int], testimonies: Mapping[int, Testimony], mentioned: int = 0
) -> GroupState | None:
    """The group as its witnesses know it, or None if it is lost. `mentioned`: the highest of its numbers that anybody has
    heard of who testified about any group."""
    witnesses = tuple(witnesses)
    if not testimonies.keys() >= {*witnesses}:
        return None
    told = {client: testimonies[client] for client in witnesses}
    events: dict[int, Event] = {}
    for event in (event for each in told.values() for event in each.kept):
        if _what(events.setdefault(event.seq, event)) != _what(event):
            return None
    state = GroupState(group, life=life)
    for client, each in told.items():
        _place(state, client, each, events)
    if not state.members:
        return None
    # Of what everybody delivered before, nobody need know anything, nor does a leaver whose leave everybody has.
    while gone := [who for who, left in state.departing.items() if state.reached[who] == left <= min(state.reached.values())]:
        del state.departing[gone[0]], state.reached[gone[0]]
    delivered = (each.delivered for each in told.values())
    state.seq = max([mentioned, *delivered, *(event.last for event in events.values())])
    if not _fill(state, events):
        return None
    if not _follow(state, told):
        return None
    for event in state.history.values():
        if event.kind == MESSAGES:
            state.kept += event.run.count
            state.kept_bytes += event.size
    return state


def over(state: GroupState, testimonies: Mapping[int, Testimony], witnesses: Iterable[int]) -> dict[int, int]:
    """Witnesses that have left the group for good, each with its last request."""
    out = (client for client in witnesses if client not in state.reached and testimonies[client].pending < 0)
    return {client: testimonies[client].requests for client in out}


def _what(event: Event) -> tuple[int, int, int, int, int]:
    """What has a number, whoever knows it."""
    return event.kind, event.who, event.run.first, event.run.count, event.req


def _place(state: GroupState, client: int, told: Testimony, events: Mapping[int, Event]) -> None:
    """Whether a client is a member of the group, is leaving it, or neither."""
    own = [event for _, event in sorted(events.items()) if event.who == client and event.kind in (JOIN, LEAVE)]
    state.requests[client] = max([told.requests - (told.pending >= 0), *(event.req for event in own)])
    if told.at:
        state.at[client] = told.at
    later = [event for event in own if event.seq > told.delivered]
    last = later[-1] if later else None
    if last is not None and last.kind == LEAVE:
        # Whoever is not in it any more has delivered its leave.
        state.departing[client] = last.seq
        state.reached[client] = told.delivered if told.delivered >= 0 else last.seq
    elif told.delivered >= 0:
        state.members[client] = max((event.seq for event in own if event.kind == JOIN), default=0)
        state.reached[client] = told.delivered
    elif last is not None and last.req == told.pending:
        # Whoever is not in it, nor waits to be, has left since.
        state.members[client], state.reached[client] = last.seq, last.seq - 1


def _fill(state: GroupState, events: Mapping[int, Event]) -> bool:
    """Put the events in order, with blanks for missing ones that somebody may wait for. Returns False if events overlap."""
    at = min(state.reached.values())
    for seq, event in sorted(events.items()):
        if event.last <= at:
            state.history[seq] = _of_this_life(event, state.life)
            continue
        if seq <= at:
            return False
        if seq > at + 1:
            state.history[at + 1] = _blank(state, at + 1, seq - 1)
        state.history[seq] = _of_this_life(event, state.life)
        state.joined = seq if event.kind == JOIN else state.joined
        at = event.last
    if at < state.seq:
        state.history[at + 1] = _blank(state, at + 1, state.seq)
    return True


def _blank(state: GroupState, first: int, last: int) -> Event:
    return Event(state.group, first, BLANK, -1, run=Run(0, 0, last - first + 1), remembered=Remembered(state.life))


def begin(state: GroupState) -> None:
    """Assign the number at which this incarnation begins, and tell members with it who has sent what: some may have been
    told otherwise."""
    first = Event(
        state.group,
        state.seq + 1,
        BLANK,
        -1,
        run=Run(0, 0, 1),
        remembered=Remembered(state.life, senders=copied(state.senders)),
    )
    state.collect()
    state.record(first)


def renew(state: GroupState, life: int) -> None:
    """Begin another incarnation of a group about which everything is known."""
    state.life = life
    state.history = {seq: _of_this_life(event, life) for seq, event in state.history.items()}


def _of_this_life(event: Event, life: int) -> Event:
    """Members ignore everything from an earlier incarnation."""
    before = event.remembered or Remembered(life)
    return replace(event, remembered=replace(before, life=life))


def _follow(state: GroupState, told: Mapping[int, Testimony]) -> bool:
    """Make the members those that the members were told of, and update who has sent what."""
    first = min((each for each in told.values() if each.delivered >= 0), key=lambda each: each.delivered, default=None)
    view = None if first is None else {*first.view}
    state.senders = _senders(state, told)
    for seq, event in state.history.items():
        if first is not None and seq <= first.delivered:
            continue
        if event.kind in (JOIN, LEAVE):
            if view is not None:
                (view.add if event.kind == JOIN else view.discard)(event.who)
            if view is not None and view != {*event.members}:
                return False
            view = {*event.members}
        elif event.kind == MESSAGES and event.remembered is not None:
            known = state.senders.get(event.who)
            if known is None or event.remembered.counter >= known.next:
                note(state.senders, event, tuple(sorted(view or ())))
    state.members = {client: state.members[client] for client in sorted(state.members, key=state.members.__getitem__)}
    return view == {*state.members}


def _senders(state: GroupState, told: Mapping[int, Testimony]) -> dict[int, Numbers]:
    """Who has sent what, as far as anybody remembers.

    With its join, a client was told what the sequencer knew then, whether or not anybody received it later. So a client is
    believed about what came before it only if nobody else was there then, and nobody received the beginning of a later
    incarnation.
    """
    floor = min(state.reached.values())
    later = [event for seq, event in state.history.items() if seq > floor and event.remembered is not None]
    begun = next((event for event in reversed(later) if event.kind == BLANK and _senders_told(event) is not None), None)
    remember = {
        client: each for client, each in told.items()
        if each.since >= 0 and state.reached.get(client, -1) >= (0 if begun is None else begun.seq)
    }  # fmt: skip
    if begun is None and not remember:
        begun = next((event for event in later if event.kind == JOIN), None)
    senders = {} if begun is None else copied(_senders_told(begun) or {})
    for client, each in remember.items():
        others = [(other.since, state.reached[who]) for who, other in remember.items() if who != client]
        for sender, numbers in copied(each.senders).items():
            doubtful = [seq for _, seq, _ in numbers.window.values() if seq <= each.since]
            _unknow(numbers, [seq for seq in doubtful if any(since < seq <= reached for since, reached in others)])
            known = senders.setdefault(sender, Numbers())
            known.next = max(known.next, numbers.next)
            known.window = dict(sorted({**known.window, **numbers.window}.items()))
    for blank in (event for event in later if event.kind == BLANK):
        for numbers in senders.values():
            _unknow(numbers, range(blank.seq, blank.last + 1))
    return senders


def _senders_told(event: Event) -> dict[int, Numbers] | None:
    return None if event.remembered is None else event.remembered.senders


def _unknow(numbers: Numbers, blank: Container[int]) -> None:
    """Nobody received what had these numbers: treat them as unassigned."""
    for counter, (_, seq, _) in list(numbers.window.items()):
        if seq in blank:
            del numbers.window[counter]
            numbers.next = min(numbers.next, counter)
