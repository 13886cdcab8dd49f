"""`quire keys`: certificates, or a secret, for the members of a group."""

from __future__ import annotations

import os
import re
import secrets
import stat
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import msgspec
import typer
from rich.console import Console

from quire.files.errors import writing
from quire.files.replacing import exchange, locked
from quire.files.scratch import NEW, Scratch
from quire.files.whole import check_file, write_file
from quire.model.errors import BadInput

MEMBERS_MAX = 1000
DAYS_MAX = 36500
SECRET_BYTES = 32
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")

_CERTIFICATE_MODE, _KEY_MODE, _DIRECTORY_MODE = 0o644, 0o600, 0o700


def keys(
    group: Annotated[str, typer.Argument(help="Name of the group that the members will join.")],
    out: Annotated[Path, typer.Option(help="Directory for the certificates; with --secret, the file for the secret.")],
    members: Annotated[int, typer.Option(help="How many members the group has.")] = 3,
    names: Annotated[str, typer.Option(help="Names of all members that may join, like a,b,c, if members have names.")] = "",
    days: Annotated[int, typer.Option(help="How long the certificates are valid.")] = 365,
    secret: Annotated[bool, typer.Option("--secret", help="Make one secret for all members instead of certificates.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace existing keys.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print the files as JSON.")] = False,
) -> None:
    """Make the credentials of a group: certificates for mutual TLS, or a shared secret.

    Copy OUT/member-N/ (with --names: OUT/member-NAME/) to the host of that member. Keep OUT/authority.key safe: it signs
    the members' certificates, and no member needs it.
    """
    from quire.live.settings import check_group_name

    check_group_name(group)
    if not 1 <= members <= MEMBERS_MAX:
        raise BadInput(f"a group has 1 to {MEMBERS_MAX} members, not {members}")
    if not 1 <= days <= DAYS_MAX:
        raise BadInput(f"certificates are valid for 1 to {DAYS_MAX} days, not {days}")
    who = _names(names) if names else range(members)
    files = write_secret(out, force=force) if secret else write_certificates(out, group, who, days, force=force)
    if json:
        print(msgspec.json.encode({"group": group, "files": [str(file) for file in files]}).decode())
    else:
        _show(out, files, secret=secret)


def write_secret(path: Path, *, force: bool = False) -> list[Path]:
    """A new random secret, as text, in a file that only its owner can read."""
    check_file(path, _is_secret, "a secret made by `quire keys`", force=force)
    with writing(path):
        path.absolute().parent.mkdir(mode=_DIRECTORY_MODE, parents=True, exist_ok=True)
    write_file(path, lambda whole: _write(whole, secrets.token_hex(SECRET_BYTES).encode() + b"\n", _KEY_MODE))
    return [path]


def _is_secret(path: Path) -> bool:
    return re.fullmatch(rb"[0-9a-f]{%d}\n" % (2 * SECRET_BYTES), path.read_bytes()) is not None


def _names(text: str) -> list[str]:
    names = text.split(",")
    for name in names:
        if not _NAME.fullmatch(name):
            raise BadInput(f"{name!r} cannot name a folder of keys; use letters, digits, dots, hyphens and underscores")
    if len(set(names)) < len(names) or len(names) > MEMBERS_MAX:
        raise BadInput(f"give 1 to {MEMBERS_MAX} different names")
    return names


def write_certificates(
    directory: Path, group: str, members: Iterable[int | str], days: int, *, force: bool = False
) -> list[Path]:
    """A new authority and a folder for each member; returns the files. Those of an earlier authority there are removed."""
    # Most commands need no certificates, and the library that makes them takes a while to load.
    from quire.live.network.authority import Authority

    if directory.exists() and not directory.is_dir():
        raise BadInput(f"{directory} is not a directory; name one for the certificates")
    authority = Authority(group, days)
    contents = {
        "authority.pem": (authority.pair.certificate, _CERTIFICATE_MODE),
        "authority.key": (authority.pair.key, _KEY_MODE),
    }
    for member in members:
        folder, pair = f"member-{member}", authority.certify(member)
        contents[f"{folder}/authority.pem"] = (authority.pair.certificate, _CERTIFICATE_MODE)
        contents[f"{folder}/certificate.pem"] = (pair.certificate, _CERTIFICATE_MODE)
        contents[f"{folder}/key.pem"] = (pair.key, _KEY_MODE)
    old = _replaceable(directory, contents, force=force)
    is_new = not directory.exists()
    try:
        with writing(directory):
            _replace(directory, old, contents)
    except BaseException:
        if is_new:
            with suppress(OSError):
                directory.rmdir()
        raise
    return [directory / name for name in contents]


def _replace(directory: Path, old: list[str], contents: Mapping[str, tuple[bytes, int]]) -> None:
    directory.mkdir(mode=_DIRECTORY_MODE, parents=True, exist_ok=True)
    with Scratch(directory, ".keys.") as scratch:
        for name, (content, mode) in contents.items():
            path = scratch.path / NEW / name
            path.parent.mkdir(mode=_DIRECTORY_MODE, parents=True, exist_ok=True)
            _write(path, content, mode)
        with locked(directory):
            exchange(scratch, old)


def _replaceable(directory: Path, contents: Iterable[str], *, force: bool) -> list[str]:
    """The keys there that are ours, and make way; raises BadInput where anything else is in the way."""
    old = _key_files(directory) if force else []
    for name in contents:
        if name not in old and os.path.lexists(directory / name):
            path = directory / name
            if not force:
                raise BadInput(f"{path} exists; use --force to replace it; the old keys then stop working")
            raise BadInput(f"{path} was not made by quire keys, so it will not be replaced")
    return old


def _key_files(directory: Path) -> list[str]:
    """The files in this directory that `quire keys` made, by the names in the certificates beside them."""
    from quire.live.network.authority import made_for

    found = []
    if made_for(directory / "authority.pem") == "authority":
        found += ["authority.pem", "authority.key"]
    for folder in sorted(directory.glob("member-*")):
        member = folder.name.partition("-")[2]
        if not folder.is_symlink() and made_for(folder / "certificate.pem") == f"member {member}":
            found += [f"{folder.name}/{name}" for name in ("authority.pem", "certificate.pem", "key.pem")]
    return [name for name in found if os.path.lexists(directory / name)]


def _write(path: Path, content: bytes, mode: int) -> None:
    """Write a file that never was readable by more people than `mode` says, not even for a moment."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, stat.S_IMODE(mode))
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)


def _show(out: Path, files: list[Path], *, secret: bool) -> None:
    console = Console(highlight=False, soft_wrap=True)
    if secret:
        console.print(f"the group's secret is in {out}; give it to every member, and keep it secret", markup=False)
        return
    for file in files:
        console.print(str(file), markup=False)
    console.print("copy each member's folder to its host, and keep authority.key safe", markup=False)
