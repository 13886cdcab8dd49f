"""Instructions for the other hosts of a group: the commands to type there, and the files to bring back."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

import msgspec
from rich.console import Console
from rich.markup import escape

from quire.cli.calling import call
from quire.live.runs.plan import Plan


def say_what_to_type(plan: Plan, remote: Sequence[int], hosts: Path) -> None:
    console = Console(stderr=True, highlight=False, soft_wrap=True)
    name = escape(hosts.name)
    console.print(f"within {plan.join_s:g} seconds, run these on the other hosts, with the same {name}:")
    for member in remote:
        command = _member_command(plan, member, hosts)
        console.print(f"  [dim]{escape(plan.members[member])}[/]  [bold]{escape(command)}[/]")


def _member_command(plan: Plan, member: int, hosts: Path) -> str:
    words = ["quire", "member", hosts.name, "--me", str(member), "--messages", str(plan.messages), "--size", str(plan.size)]
    if plan.protocol is not None:
        words += ["--protocol", plan.protocol]
    for name, value in plan.options.items():
        words += ["--option", f"{name}={value}"]
    if plan.senders is not None:
        words += ["--senders", ",".join(map(str, plan.senders))]
    if plan.rate is not None:
        words += ["--rate", str(plan.rate)]
    if plan.insecure:
        words += ["--insecure"]
    if plan.timeout_s is not None:
        words += ["--timeout", f"{plan.timeout_s:g}"]
    return shlex.join([*words, "--join", f"{plan.join_s:g}", "--out", "parts"])


def say_what_is_missing(plan: Plan, remote: Sequence[int], parts: Path, out: Path, *, json: bool) -> None:
    if json:
        name = plan.run_name()
        print(msgspec.json.encode({"run": name, "parts": str(parts), "missing": list(remote), "audit": None}).decode())
        return
    console = Console(highlight=False, soft_wrap=True)
    files = ", ".join(f"p{member:05d}-*" for member in remote)
    console.print(f"The members of this machine are done; their parts of the trace are in {escape(str(parts))}.")
    console.print(f"next: copy {files} from the other hosts there, then")
    console.print(f"  [bold]{escape(call('collect', parts, '--out', out))}[/]")
