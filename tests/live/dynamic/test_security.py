"""Members with names know each other by a secret or by certificates, in which their names are."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import msgspec
import pytest
from typer.testing import CliRunner

import quire
from quire.cli.app import app
from quire.cli.keys import write_certificates
from quire.live.network.handshake import NAMED, NONCE_BYTES, Handshake, Trust
from quire.views.introductions import Introduction
from quire.wire.frames import INTRODUCTION, REFUSED, Reader, control_frame
from tests.live.dynamic.kit import places, run, together
from tests.live.running import SECRET


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("keys")
    write_certificates(directory, "test", ("a", "b", "c"), 1)
    return directory


def secured(kind: str, keys: Path, name: str) -> dict[str, Any]:
    return {"secret": SECRET} if kind == "secret" else {"certificates": quire.Certificates.of(keys / f"member-{name}")}


@pytest.mark.parametrize("kind", ["secret", "certificates"])
def test_secured_members_found_a_group_and_let_somebody_in(kind: str, keys: Path) -> None:
    async def main() -> None:
        where = places("tcp", "abc")
        first = {name: where[name] for name in "ab"}
        groups = [quire.join("test", me=n, members=first, order="total", **secured(kind, keys, n)) for n in "ab"]
        async with together(groups) as members:
            late = quire.join("test", me="c", at=where["c"], contact=[where["a"]], order="total", **secured(kind, keys, "c"))
            async with together([late]) as more:
                await more["c"].group.execute(b"sealed")
                for member in members.values():
                    await member.has(b"sealed")

    run("tcp", main())


@pytest.mark.parametrize(
    ("given", "why"),
    [({"secret": "another horse battery"}, "secret"), ({}, "secured by 'secret'"), (None, "TLS")],
)
def test_whoever_is_not_secured_as_the_others_stays_outside(given: dict[str, Any] | None, why: str, keys: Path) -> None:
    async def main() -> None:
        where = places("tcp", "ac")
        inside = quire.join("test", me="a", members={"a": where["a"]}, order="total", secret=SECRET)
        other = secured("certificates", keys, "c") if given is None else given
        async with together([inside]) as members:
            stranger = quire.join("test", me="c", at=where["c"], contact=[where["a"]], order="total", join_s=0.5, **other)
            with pytest.raises(quire.NoQuorum, match=rf"has admitted this member yet \(.*{why}"):
                await stranger.__aenter__()
            await members["a"].group.execute(b"undisturbed")
            assert members["a"].group.view == quire.View(2, ("a",))

    run("tcp", main())


def test_a_certificate_lets_in_only_whom_it_names(keys: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        where = places("tcp", "ac")
        inside = quire.join("test", me="a", members={"a": where["a"]}, order="total", **secured("tls", keys, "a"))
        async with together([inside]) as members:
            liar = quire.join("test", me="c", at=where["c"], contact=[where["a"]], order="total", **secured("tls", keys, "b"))
            entering = asyncio.ensure_future(liar.__aenter__())
            while not entering.done() and "the certificate presented by 'c' names another" not in caplog.text:
                await asyncio.sleep(0.01)
            assert not entering.done(), "it was let in under a name that its certificate does not have"
            entering.cancel()
            await asyncio.gather(entering, return_exceptions=True)
            assert members["a"].group.view == quire.View(2, ("a",))

    run("tcp", main())


def test_members_of_a_fixed_group_and_of_one_with_names_do_not_mix(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        where = places("tcp", "ab")
        named = quire.join("test", me="a", members=where, order="total", join_s=1)
        fixed = quire.join("test", me=1, members=list(where.values()), protocol="two-phase", join_s=1)
        told = await asyncio.gather(named.__aenter__(), fixed.__aenter__(), return_exceptions=True)
        assert isinstance(told[0], quire.NoQuorum)
        assert isinstance(told[1], quire.QuireError)
        assert "have names and those of the other have numbers" in caplog.text + str(told[1])

    run("tcp", main())


def test_nonsense_from_strangers_is_refused_and_disturbs_nobody() -> None:
    async def main() -> None:
        where = places("tcp", "a")
        async with together([quire.join("test", me="a", members=where, order="total")]) as members:
            host, _, port = where["a"].rpartition(":")
            introduction = Introduction(
                group="test", name="b c", life=1, incarnation=1, address="127.0.0.1:1", facts="", addresses={}
            )
            nonsense = (
                control_frame(INTRODUCTION, msgspec.msgpack.encode(introduction)),
                control_frame(INTRODUCTION, b"nonsense"),
                control_frame(77, b"too early"),
            )
            for words in nonsense:
                reader, writer = await asyncio.open_connection(host, int(port))
                handshake = Handshake(
                    initiator=True, me=NAMED, members=0, peer=NAMED, trust=Trust.OPEN, nonce=bytes(NONCE_BYTES)
                )
                writer.write(handshake.start())
                handshake.receive(await reader.readexactly(handshake.wanted))
                writer.write(words)
                frames = Reader(1 << 16)
                frames.feed(await reader.read())
                kinds = [frame.kind for frame in frames.frames()]
                assert kinds == [INTRODUCTION, REFUSED]
                writer.close()
            await members["a"].group.execute(b"undisturbed")
            assert members["a"].group.view == quire.View(2, ("a",))

    run("tcp", main())


def test_a_name_belongs_to_one_process_at_a_time() -> None:
    async def main() -> None:
        where = places("tcp", "abx")
        founders = {name: where[name] for name in "ab"}
        async with together(quire.join("test", me=n, members=founders, order="total") for n in "ab") as members:
            other = quire.join("test", me="b", at=where["x"], contact=[where["b"]], order="total")
            with pytest.raises(quire.BadInput, match="another process is already running as 'b'"):
                await other.__aenter__()
            await members["b"].group.execute(b"undisturbed")
            await members["a"].has(b"undisturbed")

    run("tcp", main())


def test_keys_are_made_for_names(tmp_path: Path) -> None:
    runner = CliRunner()
    made = runner.invoke(app, ["keys", "test", "--names", "a,b", "--out", str(tmp_path / "keys")])
    assert made.exit_code == 0, made.output
    assert (tmp_path / "keys" / "member-b" / "certificate.pem").exists()
    again = runner.invoke(app, ["keys", "test", "--names", "a,b", "--out", str(tmp_path / "keys"), "--force"])
    assert again.exit_code == 0, again.output
    with pytest.raises(quire.BadInput, match="cannot name a folder"):
        runner.invoke(app, ["keys", "test", "--names", "a,../b", "--out", str(tmp_path / "other")], catch_exceptions=False)
