"""The registry finds protocols and checks options, and refuses the rest in one sentence that says what to do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

import msgspec
import pytest

from quire.model.errors import BadInput
from quire.model.orders import Guarantee, implied_by
from quire.protocols import fifo, single_phase, two_phase
from quire.protocols.registry import PROTOCOLS, create, describe, find, for_order, option_name, read_options


@pytest.mark.parametrize("name", PROTOCOLS)
def test_every_protocol_can_be_made_without_options(name: str) -> None:
    protocol = create(name, 1, 3)
    assert isinstance(protocol, PROTOCOLS[name].protocol)
    assert (protocol.me, protocol.members) == (1, 3)


@pytest.mark.parametrize("name", PROTOCOLS)
def test_every_option_has_a_default_and_a_phrase_that_says_what_it_may_be(name: str) -> None:
    assert read_options(name, {}) == PROTOCOLS[name].options()
    for field in msgspec.structs.fields(PROTOCOLS[name].options):
        assert describe(field.type).startswith(
            ("choose ", "it must be a whole number from ", "it must be true or false", "it must be text")
        )


def test_an_unknown_protocol_is_refused_with_a_list_of_those_that_exist() -> None:
    with pytest.raises(BadInput) as refused:
        find("paxos")
    assert str(refused.value) == f"there is no protocol 'paxos'; choose one of {', '.join(PROTOCOLS)}"


@pytest.mark.parametrize("order", ["fifo", "causal", "total", "acyclic"])
def test_the_protocol_for_an_order_promises_it(order: str) -> None:
    name, options = for_order(order)
    assert Guarantee(order) in implied_by(find(name).protocol.promises)
    assert create(name, 0, 3, options).members == 3


def test_an_unknown_order_is_refused_with_a_list_of_those_that_exist() -> None:
    with pytest.raises(BadInput, match="there is no order 'random'; choose one of fifo, causal, total, acyclic"):
        for_order("random")


def test_text_is_converted() -> None:
    assert read_options("single-phase", {"acks": "basic", "outstanding": "12"}) == single_phase.SinglePhaseOptions(
        acks="basic", outstanding=12
    )
    assert read_options("fifo", {"held": 7}) == fifo.FifoOptions(held=7)


REFUSED: list[tuple[str, Mapping[str, object], str]] = [
    ("fifo", {"speed": 3}, "fifo has no option 'speed'; it has held"),
    ("two-phase", {"speed": 3}, "two-phase has no option 'speed'; it has outstanding, lead"),
    (
        "single-phase",
        {"acks": "lazy"},
        "single-phase cannot take acks=lazy: choose basic, economical or point-to-point",
    ),
    (
        "single-phase",
        {"lookahead": "-1"},
        "single-phase cannot take lookahead=-1: it must be a whole number from 0 to 1000000",
    ),
    ("fifo", {"held": "many"}, "fifo cannot take held=many: it must be a whole number from 1 to 1073741824"),
    ("fifo", {"held": "1.5"}, "fifo cannot take held=1.5: it must be a whole number from 1 to 1073741824"),
    ("fifo", {"held": None}, "fifo cannot take held=None: it must be a whole number from 1 to 1073741824"),
]


@pytest.mark.parametrize(("name", "options", "sentence"), REFUSED)
def test_a_bad_option_is_refused_in_one_sentence(name: str, options: Mapping[str, object], sentence: str) -> None:
    with pytest.raises(BadInput) as refused:
        read_options(name, options)
    assert str(refused.value) == sentence


class Example(msgspec.Struct, frozen=True, kw_only=True):
    lock_step: bool = False


def test_an_option_may_be_written_with_hyphens_or_underscores_but_once(monkeypatch: pytest.MonkeyPatch) -> None:
    entry = msgspec.structs.replace(PROTOCOLS["fifo"], options=Example)
    monkeypatch.setitem(PROTOCOLS, "fifo", entry)
    assert read_options("fifo", {"lock-step": "true"}) == read_options("fifo", {"lock_step": "1"}) == Example(lock_step=True)
    with pytest.raises(BadInput, match="fifo was given lock-step twice"):
        read_options("fifo", {"lock-step": True, "lock_step": True})
    with pytest.raises(BadInput, match="fifo cannot take lock-step=perhaps: it must be true or false"):
        read_options("fifo", {"lock-step": "perhaps"})


def test_people_write_options_with_hyphens() -> None:
    assert option_name("lock_step") == "lock-step"


@pytest.mark.parametrize(
    ("kind", "phrase"),
    [
        (Literal["one"], "it must be one"),
        (Literal["one", "two"], "choose one or two"),
        (Literal["one", "two", "three"], "choose one, two or three"),
        (bool, "it must be true or false"),
        (int, "it must be a whole number"),
        (Annotated[int, msgspec.Meta(ge=0, le=1000000)], "it must be a whole number from 0 to 1000000"),
        (Annotated[int, msgspec.Meta(ge=1)], "it must be a whole number from 1 up"),
        (Annotated[int, msgspec.Meta(le=9)], "it must be a whole number of at most 9"),
        (str, "it must be text"),
        (float, "it must be a number"),
    ],
)
def test_a_type_is_described_in_a_phrase(kind: object, phrase: str) -> None:
    assert describe(kind) == phrase


def test_options_that_were_read_before_are_taken_as_they_are() -> None:
    protocol = create("two-phase", 0, 2, two_phase.TwoPhaseOptions(outstanding=3))
    assert isinstance(protocol, two_phase.TwoPhase)
    assert protocol.options.outstanding == 3


@pytest.mark.parametrize(("me", "members"), [(0, 0), (-1, 2), (2, 2)])
@pytest.mark.parametrize("name", PROTOCOLS)
def test_a_member_that_is_not_in_the_group_is_refused(name: str, me: int, members: int) -> None:
    with pytest.raises(BadInput):
        create(name, me, members)
