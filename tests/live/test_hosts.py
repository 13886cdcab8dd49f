"""Groups over several hosts: real interfaces, both families of addresses, keys, and a cable that is pulled."""

from __future__ import annotations

import json
import socket
import subprocess
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.kit.patience import PATIENCE_S
from tests.live.hosts import Hosts, hosts
from tests.live.test_member import QUIRE, end, quire

MESSAGES = 3000
TALK_BYTES, HELD_BYTES = 20_000, 5_000


def start(stack: ExitStack, here: Hosts, plan: Path, *arguments: str) -> list[subprocess.Popen[str]]:
    members = []
    for me in range(len(here.namespaces)):
        process = subprocess.Popen(
            [*here.on(me), *QUIRE, "member", plan, "--me", str(me), *arguments],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        stack.callback(end, process)
        members.append(process)
    return members


def wait_until(reached: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not reached():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def is_told_much(member: subprocess.Popen[str]) -> bool:
    """Whether more has come to its host than is said until a group has come together."""
    devices = [line.split() for line in Path(f"/proc/{member.pid}/net/dev").read_text().splitlines()]
    return any(name == "net:" and int(received) > TALK_BYTES for name, received, *_ in devices)


def is_held_up(member: subprocess.Popen[str], host: str) -> bool:
    """Whether more of what it has sent to this host is on its way than there ever is while it gets there."""
    remote = socket.inet_aton(host)[::-1].hex().upper()
    sockets = [line.split() for line in Path(f"/proc/{member.pid}/net/tcp").read_text().splitlines()[1:]]
    return any(fields[2].startswith(remote) and int(fields[4].partition(":")[0], 16) > HELD_BYTES for fields in sockets)


def write_plan(directory: Path, addresses: Sequence[str], *lines: str) -> Path:
    path = directory / "group.toml"
    members = [f"[{address}]:7000" if ":" in address else f"{address}:7000" for address in addresses]
    path.write_text("\n".join([f"members = {members}", 'group = "board"', "timeout_s = 15", f"messages = {MESSAGES}", *lines]))
    return path


@pytest.mark.parametrize("family", ["ipv4", "ipv6"])
def test_members_on_hosts_of_their_own_with_certificates(tmp_path: Path, family: str) -> None:
    assert quire("keys", "board", "--members", "3", "--out", tmp_path / "keys").exit_code == 0
    with hosts(3) as here, ExitStack() as stack:
        addresses = here.ipv4 if family == "ipv4" else here.ipv6
        plan = write_plan(tmp_path, addresses, 'order = "total"', 'certificates = "keys/member-{me}"', 'out = "parts"')
        said = [member.communicate(timeout=PATIENCE_S) for member in start(stack, here, plan)]
    assert [out.partition(";")[0] for out, _ in said] == [
        f"member {me}: {MESSAGES:,} sent, {3 * MESSAGES:,} delivered" for me in range(3)
    ], said
    collected = quire("collect", tmp_path / "parts", "--json", "--out", tmp_path / "run")
    assert json.loads(collected.stdout)["complete"]


def test_a_cable_that_is_pulled_for_a_while_loses_and_repeats_nothing(tmp_path: Path) -> None:
    assert quire("keys", "board", "--secret", "--out", tmp_path / "group.secret").exit_code == 0
    with hosts(3) as here, ExitStack() as stack:
        lines = ('order = "total"', 'secret_file = "group.secret"', "rate = 1000", 'out = "parts"')
        members = start(stack, here, write_plan(tmp_path, here.ipv4, *lines))
        wait_until(lambda: all(map(is_told_much, members)))
        here.cable(2, "down")
        wait_until(lambda: all(is_held_up(member, here.ipv4[2]) for member in members[:2]))
        here.cable(2, "up")
        said = [member.communicate(timeout=PATIENCE_S) for member in members]
    assert [member.returncode for member in members] == [0, 0, 0], said
    collected = quire("collect", tmp_path / "parts", "--json", "--out", tmp_path / "run")
    result = json.loads(collected.stdout)
    assert result["complete"]
    assert result["deliveries"] == 9 * MESSAGES


def test_a_host_that_is_gone_for_good_is_named_at_all_others(tmp_path: Path) -> None:
    assert quire("keys", "board", "--secret", "--out", tmp_path / "group.secret").exit_code == 0
    with hosts(3) as here, ExitStack() as stack:
        lines = ('protocol = "two-phase"', 'secret_file = "group.secret"', "rate = 100")
        plan = write_plan(tmp_path, here.ipv4, *lines)
        plan.write_text(plan.read_text().replace("timeout_s = 15", "timeout_s = 5"))
        members = start(stack, here, plan)
        wait_until(lambda: all(map(is_told_much, members)))
        here.cable(2, "down")
        said = [member.communicate(timeout=PATIENCE_S)[1] for member in members]
    assert [member.returncode != 0 for member in members] == [True, True, True], said
    for complaint in said[:2]:
        assert f"member 2 ({here.ipv4[2]}:7000) has been unreachable" in complaint
