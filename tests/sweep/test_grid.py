"""Grid files: what they mean, and that what they cannot mean is refused in one sentence."""

from __future__ import annotations

from pathlib import Path

import pytest

from quire.model.errors import BadInput
from quire.protocols.registry import PROTOCOLS
from quire.sweep.grid import Grid, read_grid, shipped


def write(path: Path, text: str) -> Grid:
    file = path / "grid.toml"
    file.write_text(text)
    return read_grid(str(file))


def test_a_grid_is_the_product_of_its_lists_and_the_rest_has_defaults(tmp_path: Path) -> None:
    grid = write(
        tmp_path, 'title = "t"\n[[grid]]\nprotocol = ["fifo", "two-phase"]\nmembers = [2, 3, 4]\nload = 5\nseeds = 2\n'
    )
    cells = [(cell.protocol, cell.members, cell.load, cell.seed, cell.loss) for cell in grid.cells.values()]  # type: ignore[attr-defined]
    assert len(cells) == 12
    assert cells[0] == ("fifo", 2, 5.0, 0, 0.0)
    assert cells[-1] == ("two-phase", 4, 5.0, 1, 0.0)


def test_tables_are_put_together_and_a_cell_that_occurs_twice_is_one(tmp_path: Path) -> None:
    grid = write(tmp_path, 'title = "t"\n[[grid]]\nmembers = [2, 3]\n[[grid]]\nmembers = [3, 4]\n')
    assert [cell.members for cell in grid.cells.values()] == [2, 3, 4]  # type: ignore[attr-defined]


def test_all_protocols_are_those_of_the_registry(tmp_path: Path) -> None:
    grid = write(tmp_path, 'title = "t"\n[[grid]]\nprotocol = "all"\nmembers = 4\n')
    assert [cell.protocol for cell in grid.cells.values()] == list(PROTOCOLS)  # type: ignore[attr-defined]


def test_every_shipped_grid_can_be_read_and_is_of_a_size_that_a_person_waits_for() -> None:
    papers = {"sun-load", "kindberg-load", "yen-figure-7", "yen-headers", "transactions-omitted", "objects-ordered-pairs"}
    assert papers | {"all-protocols"} <= set(shipped())
    for name in shipped():
        grid = read_grid(name)
        assert 20 <= len(grid.cells) <= 2000
        assert grid.file.figure, "a shipped grid says what to draw"
        for figure in grid.file.figure:
            assert any(figure.takes({f: getattr(cell, f) for f in cell.__struct_fields__}) for cell in grid.cells.values())


BAD = {
    "title = ": "is not TOML",
    "": "missing required field `title`",
    'title = "t"\ngrid = []': "has no cells",
    'title = "t"\nbogus = 1\n[[grid]]': "unknown field `bogus`",
    'title = "t"\nexperiment = "x"\n[[grid]]': "no experiment 'x'; choose one of simulate, routes, precedence, omission",
    'title = "t"\n[[grid]]\nmemberz = 3': "'memberz' is not a setting of simulate",
    'title = "t"\n[[grid]]\nmembers = "three"': "members cannot be 'three'",
    'title = "t"\n[[grid]]\nmembers = []': "members has no values",
    'title = "t"\nexperiment = "precedence"\n[[grid]]\nconflicts = 101': "conflicts",
    'title = "t"\nexperiment = "precedence"\n[[grid]]\nobjects = 0': "at least one object",
    'title = "t"\nexperiment = "precedence"\n[[grid]]\nvectors = "long"': "vectors",
    'title = "t"\nexperiment = "omission"\n[[grid]]\nwrite_share = 1.5': "write_share must be from 0 to 1",
    'title = "t"\nexperiment = "omission"\n[[grid]]\nprocessors = 0': "processors must be from 1",
    'title = "t"\nexperiment = "omission"\n[[grid]]\ndelay = "often"': "delay",
    'title = "t"\n[[grid]]\nmembers = [[1]]': "members cannot be",
    'title = "t"\n[[grid]]\nmembers = 0': "members must be from 1 to",
    'title = "t"\n[[grid]]\nprotocol = "nonsense"': "there is no protocol 'nonsense'",
    'title = "t"\n[[grid]]\nprotocol = ""': "protocol must be a name",
    'title = "t"\n[[grid]]\nprotocol = "fifo acks=basic"': "fifo has no option 'acks'",
    'title = "t"\n[[grid]]\nload = 0': "load must be a number of messages a second above 0",
    'title = "t"\n[[grid]]\nload = nan': "load must be a number of messages a second above 0",
    'title = "t"\n[[grid]]\nloss = 1.0': "loss is a probability from 0 to below 1",
    'title = "t"\n[[grid]]\ndelay = "matrix:/etc/passwd"': "a sweep does not support delay matrices",
    'title = "t"\n[[grid]]\ndelay = "soon"': "there is no delay model 'soon'",
    'title = "t"\n[[grid]]\nseeds = 0': "seeds is how many there are",
    'title = "t"\n[[grid]]\nseeds = 2\nseed = 1': "seed and seeds exclude each other",
    'title = "t"\n[[grid]]\nseeds = 100000\nmembers = [2, 3]': "there are more than 100000 cells",
    'title = "t"\n[[grid]]\n[[figure]]\ntitle = "f"\nx = "z"\ny = "acks"': "in figure 1, x is 'z', which is not a setting",
    'title = "t"\n[[grid]]\n[[figure]]\ntitle = "f"\nx = "load"\ny = "z"': "y is 'z', which simulate does not measure",
    'title = "t"\n[[grid]]\n[[figure]]\ntitle = "f"\nx = "load"\ny = []': "y names no quantity",
    'title = "t"\nexperiment = "routes"\n[[grid]]\nsites = 0': "routes can be counted for 1 to",
    'title = "t"\nexperiment = "routes"\n[[grid]]\nmessages = 0': "messages must be from 1 to",
    'title = "t"\nexperiment = "routes"\n[[grid]]\ninside = "x"': "inside cannot be 'x'",
}


@pytest.mark.parametrize("text", BAD, ids=list(BAD.values()))
def test_what_is_no_grid_is_refused_in_one_sentence(text: str, tmp_path: Path) -> None:
    with pytest.raises(BadInput) as refused:
        write(tmp_path, text)
    assert BAD[text] in str(refused.value)
    assert "\n" not in str(refused.value)
    assert "grid.toml" in str(refused.value) or "experiment" in str(refused.value)


def test_bytes_that_are_no_text_and_names_that_are_no_grid_are_refused(tmp_path: Path) -> None:
    (tmp_path / "bad.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(BadInput, match="is not TOML"):
        read_grid(str(tmp_path / "bad.toml"))
    with pytest.raises(BadInput, match="cannot read the grid"):
        read_grid(str(tmp_path / "none.toml"))
    with pytest.raises(BadInput, match=r"there is no grid '\.\./sun-load'; name a TOML file, or one of"):
        read_grid("../sun-load")
