"""The keywords that every way into a live group shares are declared once, and look as if each declared them itself."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, get_type_hints

import pytest

import quire
from quire.live.network_options import JOIN_S, TIMEOUT_S, Network, NetworkOptions
from quire.model.errors import BadInput

WHERE = ["127.0.0.1:7000", "127.0.0.1:7001"]

WAYS_IN: dict[str, Callable[..., Any]] = {
    "join": lambda **network: quire.join("g", me=0, members=WHERE, order="total", **network),
    "join_store": lambda **network: quire.join_store("g", me=1, members=WHERE, replicas=1, **network),
    "serve": lambda **network: quire.serve(WHERE, 0, **network),
    "connect": lambda **network: quire.connect(WHERE, **network),
}


def test_the_keywords_and_the_value_made_of_them_are_the_same() -> None:
    assert get_type_hints(NetworkOptions) == get_type_hints(Network)


@pytest.mark.parametrize("name", [*WAYS_IN, "join_objects"])
def test_every_way_in_shows_all_keywords_with_their_defaults(name: str) -> None:
    parameters = inspect.signature(getattr(quire, name)).parameters
    assert NetworkOptions.__annotations__.keys() <= parameters.keys()
    assert "network" not in parameters
    assert (parameters["timeout_s"].default, parameters["join_s"].default) == (TIMEOUT_S, JOIN_S)
    assert parameters["secret"].default is None
    assert parameters["secret"].kind is inspect.Parameter.KEYWORD_ONLY
    assert "timeout_s" in str(inspect.signature(getattr(quire, name)))


@pytest.mark.parametrize("name", WAYS_IN)
def test_an_unknown_keyword_is_a_type_error_that_names_it(name: str) -> None:
    with pytest.raises(TypeError, match="timeuot_s"):
        WAYS_IN[name](timeuot_s=3)


@pytest.mark.parametrize("name", WAYS_IN)
def test_every_way_in_checks_the_keywords_in_the_same_words(name: str) -> None:
    for network, sentence in (
        ({"timeout_s": 0.0}, "timeout_s must be 0.1 to 3600 seconds, not 0.0"),
        ({"join_s": 1e6}, "join_s must be 0.1 to 86400 seconds"),
        ({"secret": "short"}, "a group's secret needs at least 16 bytes"),
    ):
        with pytest.raises(BadInput, match=sentence):
            WAYS_IN[name](**network)


def test_no_representation_shows_the_secret() -> None:
    assert "correct horse" not in repr(Network(secret="correct horse battery staple"))
