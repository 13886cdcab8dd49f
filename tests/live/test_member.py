"""`quire member`: groups whose members were each started by hand."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from quire.cli.app import app
from quire.live.runs.fleet import free_addresses
from quire.model.errors import BadInput
from tests.kit.patience import PATIENCE_S

QUIRE = [sys.executable, "-c", "from quire.cli.main import main; main()"]


def write_plan(directory: Path, *lines: str, members: int = 3) -> Path:
    path = directory / "group.toml"
    path.write_text("\n".join([f"members = {list(free_addresses(members))}", "timeout_s = 10", *lines]))
    return path


def end(process: subprocess.Popen[str]) -> None:
    """However the test went, leave no process."""
    process.kill()
    process.communicate()


@contextmanager
def started(plan: Path, *arguments: str | Path, members: int = 3) -> Iterator[list[subprocess.Popen[str]]]:
    with ExitStack() as stack:
        processes = []
        for me in range(members):
            process = subprocess.Popen(
                [*QUIRE, "member", plan, "--me", str(me), *arguments],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            )  # fmt: skip
            stack.callback(end, process)
            processes.append(process)
        yield processes


def complained(text: str) -> str:
    """What a member said besides its result; not that it waited for others, which on a busy machine may start late and answer
    late."""
    return "".join(line for line in text.splitlines(keepends=True) if not re.search("event=(awaited|stalled) ", line))


def quire(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def test_members_with_a_secret_leave_parts_that_become_a_run(tmp_path: Path) -> None:
    assert quire("keys", "board", "--secret", "--out", tmp_path / "group.secret").exit_code == 0
    plan = write_plan(
        tmp_path, 'group = "board"', 'order = "total"', 'secret_file = "group.secret"', "messages = 200", 'out = "parts"'
    )

    with started(plan) as members:
        said = [member.communicate(timeout=PATIENCE_S) for member in members]

    assert [member.returncode for member in members] == [0, 0, 0], said
    for me, (out, complaints) in enumerate(said):
        parts = tmp_path / "parts"
        assert out == f"member {me}: 200 sent, 600 delivered; its part of the trace is in {parts}\n"
        assert complained(complaints) == ""
    collected = quire("collect", tmp_path / "parts", "--json", "--out", tmp_path / "run")
    assert json.loads(collected.stdout)["deliveries"] == 1800


def test_members_with_certificates_find_each_other(tmp_path: Path) -> None:
    assert quire("keys", "board", "--members", "2", "--out", tmp_path / "keys").exit_code == 0
    plan = write_plan(tmp_path, 'group = "board"', 'certificates = "keys/member-{me}"', "messages = 50", members=2)

    with started(plan, "--protocol", "causal-vector", "--json", members=2) as members:
        said = [member.communicate(timeout=PATIENCE_S) for member in members]

    for me, (out, complaints) in enumerate(said):
        assert json.loads(out) == {
            "member": me, "type": "ended", "sent": 50, "delivered": 100, "stopped": False, "error": "", "bad_input": False,
        }, complaints  # fmt: skip


def test_without_a_load_lines_of_all_inputs_come_out_everywhere_in_one_order(tmp_path: Path) -> None:
    plan = write_plan(tmp_path, 'order = "total"')
    texts = ["".join(f"{me} says {number}\n" for number in range(50)) for me in range(3)]

    with started(plan) as members:
        for member, text in zip(members, texts, strict=True):
            assert member.stdin is not None
            member.stdin.write(text)
            member.stdin.close()
            member.stdin = None
        said, complaints = zip(*(member.communicate(timeout=PATIENCE_S) for member in members), strict=True)

    assert [member.returncode for member in members] == [0, 0, 0]
    assert [*map(complained, complaints)] == [f"member {me}: 50 sent, 150 delivered\n" for me in range(3)]
    assert said[0] == said[1] == said[2]
    assert sorted(said[0].splitlines()) == sorted(
        f"{me}:{number} {me} says {number}" for me in range(3) for number in range(50)
    )


def say(member: subprocess.Popen[str], line: str) -> None:
    assert member.stdin is not None
    member.stdin.write(line)
    member.stdin.flush()


def end_input(member: subprocess.Popen[str]) -> None:
    assert member.stdin is not None
    member.stdin.close()
    member.stdin = None


def lines_of(member: subprocess.Popen[str], count: int) -> list[str]:
    assert member.stdout is not None
    return [member.stdout.readline() for _ in range(count)]


def test_ctrl_c_at_one_member_has_it_leave_after_everything_it_sent_is_delivered_and_the_others_go_on(tmp_path: Path) -> None:
    plan = write_plan(tmp_path, 'order = "total"')

    with started(plan) as members:
        for me, member in enumerate(members):
            say(member, f"from {me}\n")
        seen = [lines_of(member, 3) for member in members]
        members[1].send_signal(signal.SIGINT)
        members[1].wait(PATIENCE_S)
        for member in (members[0], members[2]):
            say(member, "still here\n")
            end_input(member)
        said = [member.communicate(timeout=PATIENCE_S) for member in members]

    assert [member.returncode for member in members] == [0, 130, 0]
    assert sorted(seen[1]) == ["0:0 from 0\n", "1:0 from 1\n", "2:0 from 2\n"]
    assert seen[0] == seen[1] == seen[2]
    assert said[0][0] == said[2][0]
    assert sorted(said[0][0].splitlines()) == ["0:1 still here", "2:1 still here"]
    assert all("Traceback" not in complaints for _, complaints in said)


def test_ctrl_c_at_one_member_ends_a_fixed_group_after_everything_is_delivered(tmp_path: Path) -> None:
    plan = write_plan(tmp_path, 'protocol = "two-phase"')

    with started(plan) as members:
        for me, member in enumerate(members):
            say(member, f"from {me}\n")
        seen = lines_of(members[1], 3)
        members[1].send_signal(signal.SIGINT)
        said = [member.communicate(timeout=PATIENCE_S) for member in members]

    assert [member.returncode for member in members] == [0, 130, 0]
    assert sorted(seen) == ["0:0 from 0\n", "1:0 from 1\n", "2:0 from 2\n"]
    assert said[0][0] == said[2][0] == "".join(seen)
    early = "1 sent, 3 delivered; the group was closed before everything was sent\n"
    interrupted = ["", "quire: interrupted\n", ""]
    assert [complained(complaints) for _, complaints in said] == [f"member {me}: {early}{interrupted[me]}" for me in range(3)]


def test_a_killed_member_that_is_started_again_with_its_journal_goes_on_where_it_was(tmp_path: Path) -> None:
    plan = write_plan(tmp_path, 'order = "total"', 'journal = "journal-{me}"')

    with started(plan) as members:
        for me, member in enumerate(members):
            say(member, f"from {me}\n")
        for member in members:
            lines_of(member, 3)
        members[2].kill()
        members[2].wait(PATIENCE_S)
        say(members[0], "without you\n")
        assert lines_of(members[1], 1) == ["0:1 without you\n"]
        again = subprocess.Popen(
            [*QUIRE, "member", plan, "--me", "2"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        with again:
            try:
                # What was delivered since the last checkpoint comes again, and then what it missed.
                say(again, "here again\n")
                assert lines_of(again, 5)[3:] == ["0:1 without you\n", "2:1 here again\n"]
                assert lines_of(members[1], 1) == ["2:1 here again\n"]
                for member in (members[0], members[1], again):
                    end_input(member)
                assert [member.wait(PATIENCE_S) for member in (members[0], members[1], again)] == [0, 0, 0]
            finally:
                again.kill()


@pytest.mark.parametrize(
    ("protocol", "beginning", "rest"),
    [
        ("matrix", "quire: member 1 (127.0.0.1:", "has been unreachable"),
        ("fifo", "quire: this process did not become a member within join_s (0.5 s): ", "waiting for 1 (127.0.0.1:"),
    ],
)
def test_a_member_whose_peer_never_comes_says_which_and_ends_with_3(
    tmp_path: Path, protocol: str, beginning: str, rest: str
) -> None:
    plan = write_plan(tmp_path, f"protocol = {protocol!r}", "messages = 1", members=2)

    alone = quire("member", plan, "--me", "0", "--timeout", "0.5", "--join", "0.5", "--out", tmp_path / "parts")

    assert (alone.exit_code, alone.stdout) == (3, "")
    assert alone.stderr.startswith(beginning)
    assert rest in alone.stderr
    assert alone.stderr.count("\n") == 1
    assert not list((tmp_path / "parts").iterdir())


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("members = [", "does not describe a group"),
        ("group = 'x'", "missing required field `members`"),
        ("members = ['127.0.0.1:1']\nmesages = 5", "unknown field `mesages`"),
        ("members = ['127.0.0.1:1']\nmessages = 'many'", "Expected `int | null`"),
        ("members = ['127.0.0.1:1']\norder = 'fifo'\nprotocol = 'fifo'", "either an order or a protocol"),
        ("members = ['127.0.0.1:1']\nsecret_file = 'none'", "cannot read the group's secret in .*none: No such file"),
        ("members = ['10.0.0.1:1']", "give a secret or certificates"),
        ("members = ['127.0.0.1:1']\nsenders = [1]", "sender 1 is not a member"),
        ("members = ['127.0.0.1:1']\nprotocol = 'matrix'\njournal = 'j'", "matrix keeps no journal"),
        ("members = ['127.0.0.1:1']\nrate = -1.0", "rate must be a positive number"),
    ],
)
def test_a_plan_that_makes_no_sense_is_refused_in_one_sentence(tmp_path: Path, text: str, sentence: str) -> None:
    plan = tmp_path / "group.toml"
    plan.write_text(text)

    done = quire("member", plan, "--me", "0")

    assert isinstance(done.exception, BadInput)
    with pytest.raises(BadInput, match=sentence):
        raise done.exception
    assert "\n" not in str(done.exception)
