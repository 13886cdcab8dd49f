"""Output in the place of older output: never half of one, never anything else that is there, whenever the process dies."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from quire.files import scratch
from quire.files.replacing import Staging
from quire.files.scratch import sweep
from quire.model.errors import BadInput, CannotWrite

WHAT = "a pile of notes"


def parts(directory: Path) -> list[str]:
    """A pile consists of what its description names."""
    try:
        return ["pile.txt", *(directory / "pile.txt").read_text().split()]
    except OSError as error:
        raise BadInput("there is no pile.txt") from error


def write_pile(root: Path, word: str, *names: str) -> None:
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(f"{word} {name}")
    (root / "pile.txt").write_text(" ".join(names))


def make(target: Path, word: str, *names: str, force: bool = False) -> None:
    with Staging(target, parts, WHAT, force=force) as staging:
        write_pile(staging.path, word, *names)
        staging.publish()


def content(root: Path) -> dict[str, str]:
    return {str(path.relative_to(root)): path.read_text() for path in sorted(root.rglob("*")) if path.is_file()}


OLD = {"deep/a": "old deep/a", "deep/b": "old deep/b", "pile.txt": "deep/a deep/b"}
NEW = {"deep/a": "new deep/a", "deep/er/c": "new deep/er/c", "pile.txt": "deep/a deep/er/c"}
FOREIGN = {"deep/key.pem": "precious", "key.pem": "precious"}


@pytest.fixture
def target(tmp_path: Path) -> Path:
    """Old output, with somebody's files beside it and in it."""
    target = tmp_path / "pile"
    make(target, "old", "deep/a", "deep/b")
    for name, text in FOREIGN.items():
        (target / name).write_text(text)
    return target


def replace(target: Path) -> None:
    make(target, "new", "deep/a", "deep/er/c", force=True)


def test_new_output_takes_the_place_of_the_old_and_every_other_file_stays(target: Path) -> None:
    replace(target)

    assert content(target) == NEW | FOREIGN
    assert [path.name for path in target.parent.iterdir()] == ["pile"]


def test_directories_that_only_the_old_output_needed_are_gone(tmp_path: Path) -> None:
    make(tmp_path / "pile", "old", "one/a", "two/b")

    make(tmp_path / "pile", "new", "two/c", force=True)

    assert not (tmp_path / "pile" / "one").exists()
    assert sorted(content(tmp_path / "pile")) == ["pile.txt", "two/c"]


def dies_at(step: int, work: Callable[[], None]) -> bool:
    """Whether a process that does this work is killed at that step of its moves, and leaves what it leaves."""
    child = os.fork()
    if not child:
        steps = iter(range(10_000))

        def step_by_step(move: Callable[..., None]) -> Callable[..., None]:
            def moved(*arguments: object) -> None:
                if next(steps) == step:
                    os.kill(os.getpid(), signal.SIGKILL)
                move(*arguments)

            return moved

        os.rename = step_by_step(os.rename)
        scratch._remove_directory = step_by_step(scratch._remove_directory)
        try:
            work()
        finally:
            os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL


def test_a_process_that_is_killed_at_any_step_leaves_the_old_output_or_the_new_one(target: Path) -> None:
    outcomes = []
    step = 1  # Before that there is an empty directory.
    while True:
        killed = dies_at(step, lambda: replace(target))
        readable = (target / "pile.txt").exists()
        if readable:
            described = {name: text for name, text in content(target).items() if name in parts(target)}
            assert described in (OLD, NEW), f"step {step}: what is described is whole"
        sweep(target)
        found = content(target)
        assert found in (OLD | FOREIGN, NEW | FOREIGN), f"step {step}"
        outcomes.append("new" if found == NEW | FOREIGN else "old")
        if not killed:
            break
        make(target, "old", "deep/a", "deep/b", force=True)
        step += 1

    assert outcomes == sorted(outcomes, reverse=True), "first the old one, then the new one"
    assert {"old", "new"} <= set(outcomes[:-1])


@pytest.mark.parametrize("error", [KeyboardInterrupt(), OSError(28, "No space left on device")])
@pytest.mark.parametrize("step", range(8))
def test_an_exception_at_any_step_leaves_the_old_output_or_the_new_one(
    target: Path, step: int, error: BaseException, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The mark, three old files, the decision, three new files."""
    move = os.rename
    steps = iter(range(10_000))

    def moved(*arguments: str) -> None:
        if next(steps) == step:
            raise error
        move(*arguments)

    monkeypatch.setattr(os, "rename", moved)

    with pytest.raises((KeyboardInterrupt, CannotWrite)):
        replace(target)

    assert content(target) == (OLD | FOREIGN if step < 5 else NEW | FOREIGN)


def test_without_force_nothing_is_replaced(target: Path) -> None:
    with pytest.raises(BadInput, match="exists already; choose another name, or use --force"):
        make(target, "new", "a")
    assert content(target) == OLD | FOREIGN


def test_an_unfinished_replacement_leaves_the_old_output(target: Path) -> None:
    with Staging(target, parts, WHAT, force=True) as staging:
        write_pile(staging.path, "new", "deep/a")

    assert content(target) == OLD | FOREIGN


@pytest.mark.parametrize(
    ("prepare", "sentence"),
    [
        (lambda target: (target / "pile.txt").unlink(),
         "is not a pile of notes, so it will not be replaced: there is no pile.txt"),
        (lambda target: (target / "deep").rename(target.parent / "far") and (target / "deep").symlink_to("../far"),
         "will not be replaced: .*/deep is a link to files elsewhere"),
        (lambda target: (target / "deep" / "er").mkdir() or (target / "deep" / "er" / "c").write_text("mine"),
         "will not be replaced: deep/er/c in it is not part of a pile of notes; move it elsewhere"),
    ],
)  # fmt: skip
def test_what_is_not_ours_is_refused_and_stays(target: Path, prepare: Callable[[Path], object], sentence: str) -> None:
    prepare(target)
    before = content(target.parent)

    with pytest.raises(BadInput, match=sentence):
        replace(target)

    assert content(target.parent) == before


def test_files_and_links_to_nothing_are_no_output(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    (tmp_path / "nothing").symlink_to("nowhere")
    for name in ("file", "nothing"):
        with pytest.raises(BadInput, match="is not a pile of notes, so it will not be replaced: it is not a directory"):
            make(tmp_path / name, "new", "a", force=True)
    assert (tmp_path / "nothing").is_symlink()


def test_a_link_to_output_stays_a_link(target: Path) -> None:
    link = target.parent / "link"
    link.symlink_to("pile")

    replace(link)

    assert link.is_symlink()
    assert content(target) == NEW | FOREIGN


def test_an_empty_directory_is_filled(tmp_path: Path) -> None:
    make(tmp_path, "new", "a", force=True)

    assert content(tmp_path) == {"a": "new a", "pile.txt": "a"}
