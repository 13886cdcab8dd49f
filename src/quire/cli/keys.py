"""`quire keys`: certificates, or a secret, for the members of a group."""

from __future__ import annotations

import os
import secrets
import stat
from pathlib import Path
from typing import Annotated

import msgspec
import typer
from rich.console import Console

from quire.live.settings import check_group_name
from quire.model.errors import BadInput

MEMBERS_MAX = 1000
DAYS_MAX = 36500
SECRET_BYTES = 32

_CERTIFICATE_MODE, _KEY_MODE, _DIRECTORY_MODE = 0o644, 0o600, 0o700


def keys(
    group: Annotated[str, typer.Argument(help="Name of the group, as its members will join it.")],
    out: Annotated[Path, typer.Option(help="Directory for the certificates; with --secret, the file for the secret.")],
    members: Annotated[int, typer.Option(help="How many members the group has.")] = 3,
    days: Annotated[int, typer.Option(help="How long the certificates are valid.")] = 365,
    secret: Annotated[bool, typer.Option("--secret", help="Make one secret for all members instead of certificates.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace what is there.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print the files as JSON.")] = False,
) -> None:
    """Make what the members of a group need to know each other: certificates for mutual TLS, or a shared secret.

    Certificates: OUT/authority.key certifies and belongs nowhere but in a safe place; OUT/member-N/ holds everything that
    member N needs and goes to its host.
    """
    check_group_name(group)
    if not 1 <= members <= MEMBERS_MAX:
        raise BadInput(f"a group has 1 to {MEMBERS_MAX} members, not {members}")
    if not 1 <= days <= DAYS_MAX:
        raise BadInput(f"certificates are valid for 1 to {DAYS_MAX} days, not {days}")
    try:
        files = write_secret(out, force=force) if secret else write_certificates(out, group, members, days, force=force)
    except OSError as error:
        raise BadInput(f"the keys cannot be written to {error.filename or out}: {error.strerror}") from error
    if json:
        print(msgspec.json.encode({"group": group, "files": [str(file) for file in files]}).decode())
    else:
        _show(out, files, secret=secret)


def write_secret(path: Path, *, force: bool = False) -> list[Path]:
    """A new random secret, as text, in a file that only its owner can read."""
    if path.is_dir():
        raise BadInput(f"{path} is a directory; name a file for the secret")
    _check_free([path], force=force)
    path.parent.mkdir(mode=_DIRECTORY_MODE, parents=True, exist_ok=True)
    _write(path, secrets.token_hex(SECRET_BYTES).encode() + b"\n", _KEY_MODE)
    return [path]


def write_certificates(directory: Path, group: str, members: int, days: int, *, force: bool = False) -> list[Path]:
    """A new authority and a folder for each member; returns the files."""
    # Most commands need no certificates, and the library that makes them takes a while to load.
    from quire.live.network.authority import Authority

    if directory.exists() and not directory.is_dir():
        raise BadInput(f"{directory} is not a directory; name one for the certificates")
    authority = Authority(group, days)
    contents = {
        directory / "authority.pem": (authority.pair.certificate, _CERTIFICATE_MODE),
        directory / "authority.key": (authority.pair.key, _KEY_MODE),
    }
    for member in range(members):
        folder, pair = directory / f"member-{member}", authority.certify(member)
        contents[folder / "authority.pem"] = (authority.pair.certificate, _CERTIFICATE_MODE)
        contents[folder / "certificate.pem"] = (pair.certificate, _CERTIFICATE_MODE)
        contents[folder / "key.pem"] = (pair.key, _KEY_MODE)
    _check_free(contents, force=force)
    for path, (content, mode) in contents.items():
        path.parent.mkdir(mode=_DIRECTORY_MODE, parents=True, exist_ok=True)
        _write(path, content, mode)
    return list(contents)


def _check_free(paths: list[Path] | dict[Path, tuple[bytes, int]], *, force: bool) -> None:
    for path in paths:
        if os.path.lexists(path) and not force:
            raise BadInput(f"{path} exists; use --force to replace it, which makes the old keys worthless")


def _write(path: Path, content: bytes, mode: int) -> None:
    """Write a file that never was readable by more people than `mode` says, not even for a moment."""
    path.unlink(missing_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, stat.S_IMODE(mode))
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)


def _show(out: Path, files: list[Path], *, secret: bool) -> None:
    console = Console(highlight=False, soft_wrap=True)
    if secret:
        console.print(f"the group's secret is in {out}; give it to every member and to nobody else", markup=False)
        return
    for file in files:
        console.print(str(file), markup=False)
    console.print("copy each member's folder to its host, and keep authority.key in a safe place", markup=False)
