"""What `quire keys` writes, and what is said of keys and certificates that cannot be used."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from quire.cli.app import app
from quire.cli.keys import write_secret
from quire.live import Certificates
from quire.live.network.transports.tcp import tls_contexts
from quire.live.network_options import Network, read_secret_file
from quire.live.settings import certificate_name, read_settings
from quire.model.errors import BadInput
from tests.live.running import folders

__all__ = ["folders"]


def test_certificate_files_that_cannot_be_used_are_bad_input(tmp_path: Path, folders: Path) -> None:
    with pytest.raises(BadInput, match="the group's certificates cannot be used"):
        tls_contexts(Certificates.of(tmp_path))
    good = Certificates.of(folders / "member-0")
    with pytest.raises(BadInput, match="the group's certificates cannot be used"):
        tls_contexts(Certificates(good.authority, good.certificate, folders / "member-1" / "key.pem"))


def test_groups_with_long_or_strange_names_have_certificate_names_of_their_own() -> None:
    names = ["a", "A", "a" * 30, "a" * 31, "a" * 63 + "b", "a" * 64, "grüße 🎶", "a.b", "*"]
    found = {certificate_name(name, 1) for name in names}
    assert len(found) == len(names)
    for name in found:
        assert all(0 < len(label) <= 63 for label in name.split("."))
        assert "*" not in name


def test_quire_keys_makes_a_folder_for_every_member_that_only_its_owner_can_read(tmp_path: Path) -> None:
    out = tmp_path / "keys"
    result = CliRunner().invoke(app, ["keys", "board", "--members", "2", "--days", "7", "--out", str(out)])
    assert result.exit_code == 0
    modes = {str(path.relative_to(out)): path.stat().st_mode & 0o777 for path in out.rglob("*") if path.is_file()}
    assert modes == {
        "authority.pem": 0o644,
        "authority.key": 0o600,
        **{f"member-{me}/authority.pem": 0o644 for me in range(2)},
        **{f"member-{me}/certificate.pem": 0o644 for me in range(2)},
        **{f"member-{me}/key.pem": 0o600 for me in range(2)},
    }
    for me in range(2):
        tls_contexts(Certificates.of(out / f"member-{me}"))


def test_quire_keys_overwrites_nothing_unless_forced(tmp_path: Path) -> None:
    out = tmp_path / "keys"
    assert CliRunner().invoke(app, ["keys", "board", "--out", str(out)]).exit_code == 0
    before = (out / "authority.key").read_bytes()
    again = CliRunner().invoke(app, ["keys", "board", "--out", str(out)])
    assert isinstance(again.exception, BadInput)
    assert "exists; use --force" in str(again.exception)
    assert (out / "authority.key").read_bytes() == before
    assert CliRunner().invoke(app, ["keys", "board", "--out", str(out), "--force"]).exit_code == 0
    assert (out / "authority.key").read_bytes() != before
    assert (out / "authority.key").stat().st_mode & 0o777 == 0o600


def test_quire_keys_makes_a_secret_that_a_group_takes(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "secret"
    result = CliRunner().invoke(app, ["keys", "board", "--secret", "--out", str(path)])
    assert result.exit_code == 0
    assert path.stat().st_mode & 0o777 == 0o600
    secret = read_secret_file(path)
    assert len(secret) == 64
    assert secret.decode() not in result.output
    read_settings("board", 0, ["10.0.0.1:1", "10.0.0.2:1"], protocol="two-phase", network=Network(secret=secret))
    write_secret(path, force=True)
    assert read_secret_file(path) != secret


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["", "--out", "x"], "a group needs a name"),
        (["a\nb", "--out", "x"], "a group needs a name"),
        (["g", "--members", "0", "--out", "x"], "a group has 1 to 1000 members, not 0"),
        (["g", "--days", "0", "--out", "x"], "valid for 1 to 36500 days, not 0"),
        (["g", "--out", "/dev/null"], "/dev/null is not a directory"),
        (["g", "--out", "/dev/null/x"], "cannot write /dev/null/x: Not a directory"),
        (["g", "--secret", "--out", "/"], "/ is a directory; name a file"),
    ],
)
def test_quire_keys_refuses_bad_input_in_one_sentence(arguments: list[str], sentence: str) -> None:
    result = CliRunner().invoke(app, ["keys", *arguments])
    assert isinstance(result.exception, BadInput)
    assert sentence in str(result.exception)
    assert "\n" not in str(result.exception)


@pytest.mark.parametrize("content", [None, b"short\n"])
def test_a_secret_file_that_cannot_be_used_is_bad_input(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "secret"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(BadInput, match="secret") as caught:
        read_secret_file(path)
    assert "short" not in str(caught.value)
