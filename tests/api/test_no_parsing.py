"""Nothing parses Python at run time: in CPython 3.11 two threads that do so at once may fail with a SystemError, and Spark's
gateway, the tasks of an import and those of a stream all run in threads."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCES = Path(__file__).parents[2] / "src" / "quire"

PARSERS = {"load", "lib.format", "matrix", "bmat"}
"""Of NumPy: `np.load` reads the header of a file with `ast.literal_eval`."""


def parsers_in(source: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import | ast.ImportFrom):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else [alias.name for alias in node.names]
            yield from (name for name in names if name.partition(".")[0] in ("ast", "pickle", "codeop"))
        elif isinstance(node, ast.Attribute):
            whole = ast.unparse(node)
            module, _, name = whole.partition(".")
            if module in ("np", "numpy") and name in PARSERS:
                yield whole
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("eval", "exec", "compile"):
            yield node.func.id


def test_no_module_parses_python_or_reads_what_numpy_would_have_to_parse() -> None:
    found = {
        str(path.relative_to(SOURCES)): named
        for path in sorted(SOURCES.rglob("*.py"))
        if (named := list(parsers_in(path.read_text())))
    }

    assert found == {}


@pytest.mark.parametrize(
    "source", ["import ast", "from ast import literal_eval", "np.load(path)", "numpy.load(path)", "eval('1')", "import pickle"]
)
def test_such_a_call_would_be_found(source: str) -> None:
    assert list(parsers_in(source))
