"""The examples, as real processes that people type into."""

from __future__ import annotations

import json
import select
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from quire.live.runs.fleet import free_addresses
from tests.kit.patience import PATIENCE_S

EXAMPLES = Path(__file__).parents[2] / "examples"


class Terminal:
    """A process to type into and read from."""

    def __init__(self, example: str, *arguments: str | Path) -> None:
        self.process = subprocess.Popen(
            [sys.executable, EXAMPLES / example, *arguments],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, bufsize=1,
        )  # fmt: skip

    def type(self, line: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().rstrip("\n")

    def has_said_something(self) -> bool:
        """Whether there is a line to read, where each was read before the next was asked for."""
        assert self.process.stdout is not None
        return bool(select.select([self.process.stdout], [], [], 0)[0])

    def end(self) -> None:
        """However the test went, leave no process."""
        self.process.kill()
        self.process.communicate()

    def rest(self) -> list[str]:
        """What it still says until it ends, which it must do well and without a word of complaint."""
        out, complaints = self.process.communicate(timeout=PATIENCE_S)
        assert (self.process.returncode, complaints) == (0, "")
        return out.splitlines()


@contextmanager
def terminals(example: str, *extra: list[str | Path], members: int = 3) -> Iterator[list[Terminal]]:
    addresses = free_addresses(members)
    with ExitStack() as stack:
        opened = []
        for me in range(members):
            terminal = Terminal(example, str(me), *(each[me] for each in extra), *addresses)
            stack.callback(terminal.end)
            opened.append(terminal)
        yield opened


def test_the_chat_shows_everybody_the_same_lines_in_the_same_order() -> None:
    with terminals("chat.py") as people:
        for person in people:
            assert "Everybody is here" in person.line()
        for number in range(20):
            for me, person in enumerate(people):
                person.type(f"{me} says {number}")
        # Who quits has said everything; so that the others have too, wait until it is seen.
        seen = [people[0].line() for _ in range(60)]
        people[0].type("/quit")
        logs = [seen + people[0].rest(), people[1].rest(), people[2].rest()]
    assert logs[0] == logs[1] == logs[2]
    assert sorted(logs[0][:-1]) == sorted(f"{me}: {me} says {number}" for me in range(3) for number in range(20))
    assert logs[0][-1].startswith("The chat is over")


def test_copies_of_the_dictionary_are_equal_and_writers_read_their_own_writes() -> None:
    with terminals("replicated_dict.py") as people:
        for number in range(10):
            for me, person in enumerate(people):
                person.type(f"set shared {me}/{number}")
                person.type(f"set own-{me} {number}")
                person.type(f"get own-{me}")
        people[1].type("delete own-1")
        people[1].type("get own-1")
        for me in (0, 2):
            assert [people[me].line() for _ in range(10)] == list(map(str, range(10)))
        assert [people[1].line() for _ in range(11)] == [*map(str, range(10)), "None"]
        people[2].type("quit")
        copies = [json.loads(person.rest()[-1]) for person in people]
    assert copies[0] == copies[1] == copies[2]
    assert set(copies[0]) == {"shared", "own-0", "own-2"}
    assert copies[0]["shared"].endswith("/9")


def test_the_whiteboards_log_has_a_stroke_before_whatever_was_drawn_over_it(tmp_path: Path) -> None:
    logs: list[str | Path] = [tmp_path / f"board-{me}.jsonl" for me in range(3)]
    with terminals("whiteboard.py", logs) as people:
        for person in people:
            assert "end with Ctrl-D" in person.line()
        for number in range(10):
            me = number % 3
            people[me].type(f"blue {number},{number}")
            for other in range(3):  # Everybody sees it before the next one draws over it.
                assert people[other].line() == f"1 more from {me}"
        assert people[0].process.stdin is not None
        people[0].process.stdin.close()
        people[0].process.stdin = None
        for person in people:
            assert person.rest() == []
    for log in map(Path, logs):
        strokes = [json.loads(line) for line in log.read_text().splitlines()]
        assert [stroke["points"] for stroke in strokes] == [[f"{number},{number}"] for number in range(10)]


@pytest.mark.parametrize("example", ["chat.py", "replicated_dict.py", "whiteboard.py"])
def test_an_example_with_bad_input_ends_with_one_sentence(example: str, tmp_path: Path) -> None:
    log = [tmp_path / "log"] if example == "whiteboard.py" else []
    terminal = Terminal(example, "7", *log, "127.0.0.1:7000")
    out, complaint = terminal.process.communicate(timeout=PATIENCE_S)
    assert (terminal.process.returncode, out) == (1, "")
    assert complaint.endswith("me=7 is not one of the 1 members, which are numbered from 0\n")
    assert complaint.count("\n") == 1
