"""docs/papers.md names only what is there: tests, wrong rules and grids that exist, and every erratum that the code names."""

from __future__ import annotations

import re
from pathlib import Path

from quire.sweep.grid import shipped

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "papers.md").read_text()
TESTS = "\n".join(path.read_text() for path in sorted((ROOT / "tests").rglob("*.py")))
NAME = re.compile(r"\bE-S\d+\b|\b[KYGTS]\d{1,2}\b")
ANOMALY = re.compile(r'"G\d"')
"""What cycles in histories of databases are called, which are no errata."""
ERRATA = {
    *(f"E-S{number}" for number in range(1, 15)),
    *(f"K{number}" for number in range(1, 25)),
    *(f"Y{number}" for number in range(1, 9)),
    *(f"G{number}" for number in range(1, 14)),
    *(f"T{number}" for number in range(1, 11)),
    *(f"S{number}" for number in range(1, 4)),
}


def rows() -> dict[str, list[str]]:
    """The rows of the tables that begin with the name of an erratum."""
    found = re.findall(r"^\| (\S+) \|(.*)\|$", PAGE, re.MULTILINE)
    return {name: [cell.strip() for cell in rest.split("|")] for name, rest in found if NAME.fullmatch(name)}


def test_every_erratum_has_one_row_that_says_what_is_printed_what_fails_and_what_is_done() -> None:
    assert set(rows()) == ERRATA
    assert len(re.findall(r"^\| (?:E-S\d+|[KYGTS]\d+) \|", PAGE, re.MULTILINE)) == len(ERRATA)
    for name, cells in rows().items():
        assert all(cells[:2]), name
        assert name.startswith("S") or cells[2], name


def test_every_test_that_the_page_names_exists() -> None:
    named = set(re.findall(r"`(test_\w+)`", PAGE))
    assert len(named) > 50
    assert [name for name in sorted(named) if f"def {name}(" not in TESTS] == []


def test_every_wrong_rule_that_the_page_names_is_planted_somewhere() -> None:
    named = set(re.findall(r"`([A-Z]\w+[a-z]|[a-z]+(?:_[a-z]+){2,})`", PAGE)) - set(re.findall(r"`(test_\w+)`", PAGE))
    assert {"RankByCurrentClock", "no_read_timestamps"} <= named
    assert [name for name in sorted(named) if not re.search(rf"\b(?:class|def) {name}\b", TESTS)] == []


def test_every_shipped_grid_is_on_the_page_and_no_other() -> None:
    assert set(re.findall(r"[Gg]rid `([\w-]+)`", PAGE)) == set(shipped())


def test_every_erratum_that_the_code_names_is_explained_and_the_code_says_where() -> None:
    named = 0
    for path in sorted((ROOT / "src").rglob("*.py")):
        text = ANOMALY.sub("", path.read_text())
        unknown = set(NAME.findall(text)) - ERRATA
        assert not unknown, (path, unknown)
        if NAME.search(text):
            named += 1
            assert "docs/papers.md" in text, f"{path} names errata and does not say where they are explained"
    assert named > 2
