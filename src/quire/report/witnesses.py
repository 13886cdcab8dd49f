"""Draws a witness: only its messages and members, step by step, with the violation marked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from quire.model.messages import MessageId
from quire.pipeline.auditing.search import Found
from quire.pipeline.auditing.verdicts import Check, Witness
from quire.report.html import Html, join, tag
from quire.report.order import Event, steps
from quire.trace.kinds import DELIVER, KINDS, RECEIVE, SEND, VIEW

_STEP, _ROW, _LEFT, _TOP = 92, 62, 92, 22
_LETTER = 7.5
_STEPS_MAX = 40
_VERBS = {SEND: "sent", DELIVER: "delivered", VIEW: "saw"}


class _Mark(NamedTuple):
    """An event of the drawing."""

    process: int
    pos: int
    kind: int
    message: MessageId | None
    """None for an event that is about no message: a change of membership."""
    label: str
    lamport: int


def named(check: Check) -> tuple[MessageId, ...]:
    """The messages that a check's witness mentions."""
    return () if check.witness is None else check.witness.names


def draw(check: Check, found: Sequence[Found], hosts: Sequence[str] = ()) -> Html | None:
    """A small space-time diagram of the witness; None where there is nothing to draw. `found` are the first events of the
    messages that it names."""
    witness = check.witness
    if witness is None:
        return None
    members = sorted(
        {*witness.members, *(name.origin for name in witness.names), *(event.member for event in witness.positions)}
    )
    marks = _marks(witness, members, found)
    if not marks:
        return None
    # A view of a message comes after its send, like a delivery.
    order = [
        Event(mark.process, RECEIVE if mark.kind == VIEW else mark.kind, *(mark.message or (-1, -1)), mark.lamport)
        for mark in marks
    ]
    step = steps(order)
    if max(step) > _STEPS_MAX:
        return None
    wrong = {(event.member, event.pos) for event in witness.positions if event.event != "send"}
    never = None if witness.missing is None else (witness.members[0], witness.missing)
    names = {member: hosts[member] if hosts else f"member {member}" for member in members}
    return _drawn(marks, step, names, wrong, check.because, never)


def _marks(witness: Witness, members: Sequence[int], found: Sequence[Found]) -> list[_Mark]:
    """The events that the witness names, in local order, with the sends and the links of its chain."""
    positions = {(event.member, event.pos): event for event in witness.positions}
    marks = {}
    for event in found:
        message = event.message
        at = (event.process, event.pos)
        linked = bool(witness.chain) and _links(event, witness.names)
        if message in witness.names and event.process in members and (at in positions or event.kind == SEND or linked):
            named = next((logged.message for logged in positions.values() if logged.name == message), str(message))
            shown = positions[at].message if at in positions else named
            marks[at] = _Mark(*at, event.kind, message, shown, event.lamport)
    for at, logged in positions.items():
        if at not in marks:
            marks[at] = _Mark(*at, KINDS.index(logged.event), logged.name, logged.message, 0)
    return [marks[at] for at in sorted(marks)]


def _links(event: Found, messages: Sequence[MessageId]) -> bool:
    """Whether this delivery is a link of the chain: the member then sent the next of its messages."""
    if event.kind != DELIVER or event.message not in messages:
        return False
    following = messages[messages.index(event.message) + 1 :]
    return bool(following) and following[0].origin == event.process


def _drawn(
    marks: Sequence[_Mark], step: Sequence[int], members: Mapping[int, str], wrong: set[tuple[int, int]], says: str,
    never: tuple[int, MessageId] | None,
) -> Html:  # fmt: skip
    row = {member: _TOP + 14 + number * _ROW for number, member in enumerate(members)}
    wide = max(_STEP, round(28 + _LETTER * max(len(mark.label) for mark in marks)))
    at = {(mark.process, mark.pos): (_LEFT + 26 + wide * step[index], row[mark.process]) for index, mark in enumerate(marks)}
    width = _LEFT + 26 + wide * (max(step) + (2 if never else 1))
    height = _TOP + _ROW * len(members)
    sent = {mark.message: at[mark.process, mark.pos] for mark in marks if mark.kind == SEND}
    lines = [
        join(
            tag("text", members[member], class_="who", x=_LEFT - 8, y=y, dy="0.32em", text_anchor="end"),
            tag("line", class_="life", x1=_LEFT, x2=width - 12, y1=y, y2=y),
        )
        for member, y in row.items()
    ]
    arrows, dots = [], []
    if never is not None and never[1] in sent:
        arrows.append(_never(sent[never[1]], (width - wide, row[never[0]])))
    for mark in marks:
        x, y = at[mark.process, mark.pos]
        bad = (mark.process, mark.pos) in wrong
        arrives = mark.kind != SEND and mark.message is not None and mark.process != mark.message.origin
        if arrives and mark.message in sent:
            arrows.append(_arrow(sent[mark.message], (x, y), bad))
        verb = _VERBS.get(mark.kind, KINDS[mark.kind])
        dots.append(
            tag(
                "g",
                tag("title", f"{members[mark.process]} {verb} {mark.label} at position {mark.pos}"),
                tag("circle", cx=x, cy=y, r=6),
                tag("text", mark.label, x=x + 10, y=y + 20 if _goes_up(mark, marks, never) else y - 9),
                class_=f"event {verb}{' wrong' if bad else ''}",
            )
        )
    svg = tag(
        "svg", tag("title", says), *lines, *arrows, *dots,
        view_box=f"0 0 {width} {height}", width=width, height=height, role="img", aria_label=says, class_="witness",
    )  # fmt: skip
    return tag("div", svg, class_="scroll drawn", tabindex=0)


def _goes_up(mark: _Mark, marks: Sequence[_Mark], never: tuple[int, MessageId] | None) -> bool:
    """Whether a message leaves upwards, where its name would be in its way."""
    if mark.kind != SEND:
        return False
    goes_to = [other.process for other in marks if other.message == mark.message]
    goes_to += [never[0]] if never is not None and never[1] == mark.message else []
    return min(goes_to) < mark.process


def _never(start: tuple[float, float], end: tuple[float, float]) -> Html:
    """The way of a message that never arrived."""
    (x1, y1), (x2, y2) = start, end
    cross = [tag("line", x1=x2 - 6, y1=y2 - side * 6, x2=x2 + 6, y2=y2 + side * 6) for side in (1, -1)]
    way = tag("line", x1=x1, y1=y1, x2=x2, y2=y2, class_="way")
    return tag("g", way, *cross, tag("text", "never", x=x2 + 11, y=y2 - 8), class_="never")


def _arrow(start: tuple[float, float], end: tuple[float, float], bad: bool) -> Html:
    """A line that ends short of the event, with a head."""
    (x1, y1), (x2, y2) = start, end
    length = max(((x2 - x1) ** 2 + (y2 - y1) ** 2) ** 0.5, 1)
    ux, uy = (x2 - x1) / length, (y2 - y1) / length
    tip = (x2 - 8 * ux, y2 - 8 * uy)
    left = (tip[0] - 8 * ux - 4 * uy, tip[1] - 8 * uy + 4 * ux)
    right = (tip[0] - 8 * ux + 4 * uy, tip[1] - 8 * uy - 4 * ux)
    head = " ".join(f"{x:.1f},{y:.1f}" for x, y in (tip, left, right))
    return tag(
        "g",
        tag("line", x1=f"{x1 + 7 * ux:.1f}", y1=f"{y1 + 7 * uy:.1f}", x2=f"{tip[0] - 6 * ux:.1f}", y2=f"{tip[1] - 6 * uy:.1f}"),
        tag("polygon", points=head),
        class_=f"arrow{' wrong' if bad else ''}",
    )
