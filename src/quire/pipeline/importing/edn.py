"""A parser for the part of EDN (Clojure's data notation) that Jepsen's histories use.

Keywords and symbols become strings without their colon; lists, vectors and sets become lists; a tag is dropped and the tagged
value is kept. Format: https://github.com/edn-format/edn
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from quire.pipeline.importing.values import NotJson

DEPTH_MAX = 200

_WORD = re.compile(
    r"""[\s,]+ | ;[^\n]* | "(?:[^"\\]|\\.)*" | \#\{ | \#_ | \#[A-Za-z][^\s,()\[\]{}"]* | [()\[\]{}] | [^\s,()\[\]{}";]+""",
    re.VERBOSE | re.DOTALL,
)
_OPEN = {"(": ")", "[": "]", "{": "}", "#{": "}"}
_NUMBER = re.compile(r"[-+]?\d+[NM]?")
_WORDS = {"nil": None, "true": True, "false": False}
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", '"': '"', "\\": "\\"}


def read_edn(text: str) -> Iterator[Any]:
    """The values in a text, one after the other. Raises NotJson if it is not EDN."""
    stack: list[tuple[str, list[Any]]] = []
    at = 0
    while at < len(text):
        match = _WORD.match(text, at)
        if match is None:
            raise NotJson(f"{text[at : at + 20]!r} is not EDN")
        word, at = match[0], match.end()
        if word == "#_":
            raise NotJson("'#_' leaves out what follows, which histories do not")
        if word[0] in " \t\r\n,;" or (word[0] == "#" and word != "#{"):
            continue
        if word in _OPEN:
            if len(stack) == DEPTH_MAX:
                raise NotJson("it is nested too deep")
            stack.append((word, []))
            continue
        if word in ")]}":
            if not stack or _OPEN[stack[-1][0]] != word:
                raise NotJson(f"{word!r} closes nothing")
            kind, values = stack.pop()
            value: Any = _mapping(values) if kind == "{" else values
        else:
            value = _atom(word)
        if stack:
            stack[-1][1].append(value)
        else:
            yield value
    if stack:
        raise NotJson(f"{stack[-1][0]!r} is not closed")


def _mapping(values: list[Any]) -> dict[Any, Any]:
    if len(values) % 2:
        raise NotJson("a map has a key without a value")
    return {
        key if isinstance(key, str | int) else repr(key): value for key, value in zip(values[::2], values[1::2], strict=True)
    }


def _atom(word: str) -> Any:
    if word in _WORDS:
        return _WORDS[word]
    if word[0] == '"':
        return re.sub(r"\\(.)", lambda found: _ESCAPES.get(found[1], found[1]), word[1:-1])
    if _NUMBER.fullmatch(word):
        return int(word.rstrip("NM"))
    return word.removeprefix(":")
