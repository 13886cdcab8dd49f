"""A witness drawn: only its messages and members, step by step, and where it went wrong."""

from __future__ import annotations

from collections.abc import Sequence

from quire.model.orders import Guarantee
from quire.pipeline.auditing.search import Found
from quire.pipeline.auditing.verdicts import Check
from quire.report.html import Html, join, tag
from quire.report.order import Event, steps
from quire.trace.schema import DELIVER, SEND

_STEP, _ROW, _LEFT, _TOP = 92, 62, 92, 22
_STEPS_MAX = 40

_MISSING = frozenset({Guarantee.AGREEMENT, Guarantee.FIFO, Guarantee.CAUSAL})
"""Checks whose witness may be that the first of its messages did not come."""

Message = tuple[int, int]


def named(check: Check) -> list[Message]:
    """The messages that a check's witness speaks of."""
    if check.witness is None:
        return []
    return [(int(origin), int(seq)) for origin, _, seq in (text.partition(":") for text in check.witness.messages)]


def draw(guarantee: Guarantee, check: Check, found: Sequence[Found]) -> Html | None:
    """A small space-time diagram of the witness; None where there is nothing to draw."""
    witness = check.witness
    messages = named(check)
    if witness is None or not messages:
        return None
    wrong = {(place.member, place.pos) for place in witness.positions if place.event == "deliver"}
    told = {(place.member, place.pos) for place in witness.positions}
    members = sorted({*witness.members, *(origin for origin, _ in messages), *(member for member, _ in told)})
    events = sorted(
        {
            event for event in found
            if (event.origin, event.seq) in messages and event.process in members
            and ((event.process, event.pos) in told or event.kind == SEND or (witness.chain and _links(event, messages)))
        },
        key=lambda event: (event.process, event.pos),
    )  # fmt: skip
    if not events:
        return None
    step = steps([Event(event.process, event.kind, event.origin, event.seq, event.lamport) for event in events])
    if max(step) > _STEPS_MAX:
        return None
    delivered = {(event.process, event.origin, event.seq) for event in found if event.kind == DELIVER}
    missing = guarantee in _MISSING and (witness.members[0], *messages[0]) not in delivered
    never = (witness.members[0], messages[0]) if missing else None
    return _drawn(events, step, members, wrong, check.because, never)


def _links(event: Found, messages: Sequence[Message]) -> bool:
    """Whether this delivery is a link of the story: the member then sent the next of its messages."""
    following = messages[messages.index((event.origin, event.seq)) + 1 :]
    return event.kind == DELIVER and bool(following) and following[0][0] == event.process


def _drawn(
    events: Sequence[Found], step: Sequence[int], members: Sequence[int], wrong: set[tuple[int, int]], says: str,
    never: tuple[int, Message] | None,
) -> Html:  # fmt: skip
    row = {member: _TOP + 14 + place * _ROW for place, member in enumerate(members)}
    at = {
        (event.process, event.pos): (_LEFT + 26 + _STEP * step[index], row[event.process]) for index, event in enumerate(events)
    }
    width = _LEFT + 26 + _STEP * (max(step) + (2 if never else 1))
    height = _TOP + _ROW * len(members)
    sent = {(event.origin, event.seq): at[event.process, event.pos] for event in events if event.kind == SEND}
    lines = [
        join(
            tag("text", f"member {member}", class_="who", x=_LEFT - 8, y=y, dy="0.32em", text_anchor="end"),
            tag("line", class_="life", x1=_LEFT, x2=width - 12, y1=y, y2=y),
        )
        for member, y in row.items()
    ]
    arrows, dots = [], []
    if never is not None and never[1] in sent:
        arrows.append(_never(sent[never[1]], (width - _STEP, row[never[0]])))
    for event in events:
        x, y = at[event.process, event.pos]
        message = (event.origin, event.seq)
        bad = (event.process, event.pos) in wrong
        if event.kind == DELIVER and message in sent and event.process != event.origin:
            arrows.append(_arrow(sent[message], (x, y), bad))
        kind = "sent" if event.kind == SEND else "delivered"
        dots.append(
            tag(
                "g",
                tag("title", f"member {event.process} {kind} {event.origin}:{event.seq} at position {event.pos}"),
                tag("circle", cx=x, cy=y, r=6),
                tag("text", f"{event.origin}:{event.seq}", x=x + 10, y=y + 20 if _goes_up(event, events, never) else y - 9),
                class_=f"event {kind}{' wrong' if bad else ''}",
            )
        )
    svg = tag(
        "svg", tag("title", says), *lines, *arrows, *dots,
        view_box=f"0 0 {width} {height}", width=width, height=height, role="img", aria_label=says, class_="witness",
    )  # fmt: skip
    return tag("div", svg, class_="scroll drawn", tabindex=0)


def _goes_up(event: Found, events: Sequence[Found], never: tuple[int, Message] | None) -> bool:
    """Whether a message leaves upwards, where its name would be in its way."""
    if event.kind != SEND:
        return False
    message = (event.origin, event.seq)
    goes_to = [other.process for other in events if (other.origin, other.seq) == message]
    goes_to += [never[0]] if never is not None and never[1] == message else []
    return min(goes_to) < event.process


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
