"""Who may be in a group: addresses, secrets, certificates; and what happens when members were told different things."""

from __future__ import annotations

import asyncio
import logging
import pickle
import time
import traceback
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import quire
from quire.live import Certificates, Group, MemberUnreachable
from quire.live.network.authority import Authority, Pair
from quire.live.network.transports import tcp
from quire.live.network_options import Network
from quire.live.settings import read_address, read_settings
from quire.model.errors import BadInput, QuireError
from quire.wire.frames import FrameError
from tests.live.running import LOOPS, SECRET, chatting, crash, events, folders, made_of, run, trusted

__all__ = ["folders"]

Addresses = Callable[[int], list[str]]


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("kind", ["open", "secret", "tls"])
def test_a_group_works_however_it_is_secured(addresses: Addresses, folders: Path, kind: str, loop: str) -> None:
    where = addresses(3)

    async def main() -> None:
        async with chatting([made_of(where, me, **trusted(kind, folders, me)) for me in range(3)]) as chat:
            large = bytes(range(256)) * 3000
            future = chat.groups[2].submit(large)
            assert (await future).payload == large
            await chat.goes_on()
            assert all(any(message.payload == large for message in log) for log in chat.logs)

    run(main(), loop)


async def enter(group: Group) -> str:
    """The sentence with which a member fails to start; it must not take as long as the timeout."""
    try:
        async with group:
            return "it started"
    except QuireError as error:
        return f"{type(error).__name__}: {error}"


def sentences(
    where: list[str], one: dict[str, Any], other: dict[str, Any], kind: str = "open", folders: Path = Path()
) -> list[str]:
    """What each of two members says that were told different things, quickly."""
    found: list[str] = []

    async def main() -> None:
        groups = [
            Group(made_of(where, me, **({"timeout_s": 20} | trusted(kind, folders, me) | chosen)))
            for me, chosen in enumerate((one, other))
        ]
        found.extend(await asyncio.gather(*map(enter, groups)))

    started = time.monotonic()
    run(main())
    assert time.monotonic() - started < 5, "they must not wait for the timeout"
    return found


@pytest.mark.parametrize("kind", ["open", "secret", "tls"])
@pytest.mark.parametrize(
    ("one", "other", "what"),
    [
        ({"protocol": "matrix"}, {}, "protocol 'matrix' and member 1 has 'two-phase'"),
        (
            {"protocol": "matrix", "options": {"encoding": "changes"}},
            {"protocol": "matrix"},
            "option 'encoding' 'changes' and member 1 has 'dense'",
        ),
    ],
)
def test_members_that_run_different_things_both_say_so_at_once(
    addresses: Addresses, folders: Path, kind: str, one: dict[str, Any], other: dict[str, Any], what: str
) -> None:
    zero, first = sentences(addresses(2), one, other, kind, folders)
    assert zero.startswith("BadInput: member 1 (127.0.0.1:")
    assert first.startswith("BadInput: member 0 (127.0.0.1:")
    assert what in first
    assert zero.endswith("give all members the same")


@pytest.mark.parametrize("kind", ["open", "secret"])
def test_members_of_different_groups_both_say_so_at_once(addresses: Addresses, folders: Path, kind: str) -> None:
    zero, first = sentences(addresses(2), {"group": "mine"}, {"group": "yours"}, kind, folders)
    assert "member 1 has group 'yours' and member 0 has 'mine'" in zero
    assert "member 0 has group 'mine' and member 1 has 'yours'" in first


def test_members_with_different_lists_of_members_both_say_so_at_once(addresses: Addresses) -> None:
    where = addresses(3)

    async def main() -> None:
        one = Group(made_of(where, 0, timeout_s=20))
        other = Group(made_of([where[0], where[1]], 1, timeout_s=20))
        for sentence in await asyncio.gather(enter(one), enter(other)):
            assert sentence.startswith("BadInput")
            assert "has members ('127.0.0.1:" in sentence

    run(main(), seconds=5)


def test_members_that_are_secured_differently_both_say_so_at_once(addresses: Addresses) -> None:
    zero, first = sentences(addresses(2), {}, {"secret": SECRET})
    assert "the peer is secured by 'secret', this member by 'open'" in zero
    assert "the peer is secured by 'open', this member by 'secret'" in first


def test_a_member_with_another_secret_says_so_at_once_and_the_other_at_the_end(addresses: Addresses) -> None:
    """On this machine, whatever is at a member's address is that member; but anybody may connect to it."""
    where = addresses(2)

    async def main() -> None:
        zero = Group(made_of(where, 0, secret=SECRET, timeout_s=1))
        first = Group(made_of(where, 1, secret=SECRET + "!", timeout_s=20))
        here, there = await asyncio.gather(enter(zero), enter(first))
        assert there.startswith("BadInput: member 0")
        assert "the peer does not know this group's secret" in there
        assert here.startswith("MemberUnreachable: member 1")
        assert "the peer says that it has another secret; give all members the same" in here

    run(main(), seconds=5)


def test_a_restarted_member_is_refused_and_both_sides_say_why(addresses: Addresses, caplog: pytest.LogCaptureFixture) -> None:
    where = addresses(2)

    async def main() -> None:
        groups = [Group(made_of(where, me, timeout_s=2)) for me in range(2)]
        await asyncio.gather(*(group.__aenter__() for group in groups))
        await crash(groups[1])
        again = await enter(Group(made_of(where, 1, timeout_s=20)))
        assert "member 1 is a different process than before; a restarted member cannot rejoin" in again
        with pytest.raises(MemberUnreachable, match="it was restarted"):
            await groups[0].runs().__anext__()
        await groups[0]._mesh.stop()

    run(main())
    assert len(events(caplog, "refused")) == 2


WRONG_CERTIFICATES = {
    # What is wrong, what the other says of it, and what its own member is told, if it learns more than that it is not let in.
    "expired": ("its certificate has expired", "it has expired by the peer's clock"),
    "not valid yet": ("its certificate is not valid yet", "it is not valid yet by the peer's clock"),
    "of another authority": (
        "its certificate was issued by another authority",
        "it was not issued by the peer's authority",
    ),
}


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("whose", [0, 1])
@pytest.mark.parametrize("wrong", WRONG_CERTIFICATES)
def test_whoever_has_or_meets_a_wrong_certificate_says_why(
    addresses: Addresses, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wrong: str, whose: int, loop: str
) -> None:
    """Member 1 connects and member 0 accepts. That of member `whose` is wrong, which by its own clock it is not."""
    monkeypatch.setattr(tcp, "check_in_date", lambda _: None)
    where, folders = addresses(2), [tmp_path / name for name in ("0", "1")]
    authority = Authority("test", 10, datetime.now(UTC) - timedelta(days=2))
    other = Authority("test", 10)
    write_folder(folders[1 - whose], authority, authority.certify(1 - whose))
    match wrong:
        case "expired":
            write_folder(folders[whose], authority, authority.certify(whose, days=1))
        case "not valid yet":
            write_folder(folders[whose], authority, authority.certify(whose, now=datetime.now(UTC) + timedelta(days=2)))
        case _:
            write_folder(folders[whose], other, other.certify(whose))
    told: list[str] = []

    async def main() -> None:
        groups = [Group(made_of(where, me, certificates=Certificates.of(folders[me]), timeout_s=2)) for me in range(2)]
        told.extend(await asyncio.gather(*map(enter, groups)))

    run(main(), loop)
    of_other, of_own = WRONG_CERTIFICATES[wrong]
    assert all(sentence.startswith("MemberUnreachable") for sentence in told)
    if whose == 0 or wrong == "of another authority":
        assert f"the peer does not accept this member's certificate: {of_own}" in told[0]
        assert f"cannot connect to it ({of_other}" in told[1]
    else:
        assert f"was refused: {of_other}" in told[0]
        assert "it may not have accepted this member's certificate" in told[1]


@pytest.mark.parametrize("loop", LOOPS)
def test_members_do_not_come_together_where_one_has_the_certificate_of_another(
    addresses: Addresses, tmp_path: Path, loop: str
) -> None:
    where = addresses(2)
    folders = [tmp_path / name for name in ("0", "1")]
    authority = Authority("test", 10)
    for folder in folders:
        write_folder(folder, authority, authority.certify(0))
    told: list[str] = []

    async def main() -> None:
        groups = [Group(made_of(where, me, certificates=Certificates.of(folders[me]), timeout_s=5)) for me in range(2)]
        told.extend(await asyncio.gather(*map(enter, groups)))

    run(main(), loop)
    assert told[0].startswith("BadInput: member 1")
    assert "the certificate presented by member 1 of group 'test' names another" in told[0]
    assert "it refused: the certificate presented by member 1" in told[1]


@pytest.mark.parametrize(
    ("made_days_ago", "own_days", "sentence"),
    [
        (3, 1, r"this member's certificate in .*certificate\.pem expired on 20\d\d-\d\d-\d\d at \d\d:\d\d UTC; make new"),
        (-3, 1, r"this member's certificate in .*certificate\.pem is not valid before 20.* UTC; is this host's clock right\?"),
        (9, 20, r"the group's authority in .*authority\.pem expired on 20"),
    ],
)
def test_a_certificate_of_its_own_that_is_not_valid_now_is_said_before_a_member_joins(
    tmp_path: Path, made_days_ago: int, own_days: int, sentence: str
) -> None:
    authority = Authority("board", 8, datetime.now(UTC) - timedelta(days=made_days_ago))
    write_folder(tmp_path / "0", authority, authority.certify(0, days=own_days))
    papers, where = Certificates.of(tmp_path / "0"), ["127.0.0.1:7000", "127.0.0.1:7001"]
    with pytest.raises(BadInput, match=sentence):
        quire.join("board", me=0, members=where, order="total", certificates=papers)
    with pytest.raises(BadInput, match=sentence):
        quire.connect(where, me=0, service="board", certificates=papers)


@pytest.mark.parametrize("tls", [0, 1])
@pytest.mark.parametrize("other", ["open", "secret"])
def test_a_member_with_tls_and_one_without_both_say_so(addresses: Addresses, folders: Path, tls: int, other: str) -> None:
    where, told = addresses(2), list[str]()

    async def main() -> None:
        kinds = ["tls" if me == tls else other for me in range(2)]
        groups = [Group(made_of(where, me, timeout_s=2, **trusted(kinds[me], folders, me))) for me in range(2)]
        told.extend(await asyncio.gather(*map(enter, groups)))

    run(main())
    if tls == 0:
        assert f"the peer is secured by '{other}', this member by 'tls'; use the same security at all members" in told[0]
        assert told[1].startswith("BadInput"), "what is at a member's address on this machine is that member"
        assert f"the peer is secured by 'tls', this member by '{other}'; use the same security at all members" in told[1]
    else:
        assert "the peer uses TLS" in told[0]
        assert "it does not speak the same TLS as this member; secure all members in the same way" in told[1]


def write_folder(folder: Path, authority: Authority, pair: Pair) -> None:
    folder.mkdir()
    (folder / "authority.pem").write_bytes(authority.pair.certificate)
    (folder / "certificate.pem").write_bytes(pair.certificate)
    (folder / "key.pem").write_bytes(pair.key)


def test_a_secret_is_in_no_text_that_anybody_sees(addresses: Addresses, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    where = addresses(2)
    secrets = [SECRET, "quite another secret"]
    texts: list[str] = []

    async def main() -> None:
        asyncio.get_running_loop().set_debug(True)
        groups = [Group(made_of(where, me, secret=secrets[me], timeout_s=3)) for me in range(2)]
        for group in groups:
            texts.extend([repr(group.settings), str(group.settings), repr(group), repr(group._mesh), group.metrics()])

        async def failing(group: Group) -> None:
            with pytest.raises(QuireError) as caught:
                async with group:
                    pass
            texts.append("".join(traceback.format_exception(caught.value)))
            texts.append(repr(caught.value))

        await asyncio.gather(*map(failing, groups))

    run(main())
    with pytest.raises(BadInput) as caught:
        read_settings("test", 0, where, protocol="matrix", network=Network(secret="short secret"))
    texts += [repr(caught.value), *(record.getMessage() for record in caplog.records), caplog.text]
    for text in texts:
        for secret in (*secrets, "short secret"):
            assert secret not in text
            assert secret.encode().hex() not in text
    assert events(caplog, "refused")


@pytest.mark.parametrize(
    ("members", "listen", "allowed"),
    [
        (["127.0.0.1:1", "127.0.0.1:2"], None, True),
        (["localhost:1", "[::1]:2"], None, True),
        (["127.0.0.1:1", "192.0.2.1:2"], None, False),
        (["127.0.0.1:1", "example.org:2"], None, False),
        (["127.0.0.1:1", "127.0.0.1:2"], "127.0.0.1:3", True),
        (["127.0.0.1:1", "127.0.0.1:2"], "0.0.0.0:1", False),
        (["127.0.0.1:1", "127.0.0.1:2"], "[::]:1", False),
    ],
)
def test_beyond_this_machine_a_group_must_be_secured_or_said_to_be_insecure(
    members: list[str], listen: str | None, allowed: bool
) -> None:
    def settings(**chosen: Any) -> None:
        read_settings("test", 0, members, protocol="matrix", network=Network(listen=listen, **chosen))

    settings(secret=SECRET)
    settings(insecure=True)
    if allowed:
        settings()
    else:
        with pytest.raises(BadInput, match="is not a loopback address: give a secret or certificates"):
            settings()


@pytest.mark.parametrize(
    "text", ["host", ":1", "host:", "host:0", "host:65536", "host:٣", "a b:1", f"{'x' * 64}.org:1", "h\n:1"]
)
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(BadInput, match="is not an address; write HOST:PORT"):
        read_address(text)


def test_a_member_listens_where_it_is_told(addresses: Addresses) -> None:
    where = addresses(3)

    async def main() -> None:
        listening = [where[2], where[1]]
        taken = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", read_address(where[0]).port)
        settings = [made_of(where[:2], me, listen=listening[me], timeout_s=1) for me in range(2)]
        assert [str(one.listen) for one in settings] == listening
        told = await asyncio.gather(*(enter(Group(one)) for one in settings))
        assert all("MemberUnreachable" in one for one in told), "nothing forwards to where member 0 listens"
        taken.close()
        await taken.wait_closed()

    run(main())


def test_the_wire_knows_no_pickle() -> None:
    from quire.protocols.fifo import Fifo
    from quire.wire.frames import PacketCodec

    with pytest.raises(FrameError):
        PacketCodec(Fifo.packets).decode(memoryview(pickle.dumps(["anything"])))
