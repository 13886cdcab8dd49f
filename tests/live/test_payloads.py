"""What is not bytes, or too much, is refused at the call that gives it, and nothing of it is sent."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quire.live import Group
from quire.live.outbox import Outbox
from quire.live.runs.fleet import free_addresses
from quire.live.services.sequencers import connect, serve
from quire.live.services.session import GroupMessage
from quire.model.errors import BadInput, TooLarge
from quire.model.payloads import PAYLOAD_BYTES_MAX, Messages, as_bytes, as_messages
from tests.live.running import made_of, run

Addresses = Callable[[int], list[str]]

NOT_BYTES = ["text", None, 5, [b"listed"], object()]


@pytest.mark.parametrize("wrong", NOT_BYTES, ids=lambda wrong: type(wrong).__name__)
def test_what_is_not_bytes_is_refused_by_its_type(wrong: object) -> None:
    with pytest.raises(BadInput, match=f"a message must be bytes, not {type(wrong).__name__}"):
        as_bytes(wrong)
    with pytest.raises(BadInput, match=f"a message must be bytes, not {type(wrong).__name__}"):
        as_messages([b"good", wrong])


def test_messages_are_a_sequence_of_bytes_and_not_bytes_or_nothing() -> None:
    with pytest.raises(BadInput, match="must be bytes, not int"):
        as_messages(b"letters")
    with pytest.raises(BadInput, match="must be bytes, not str"):
        as_messages("letters")
    with pytest.raises(BadInput, match="a sequence of bytes, not NoneType"):
        as_messages(None)  # type: ignore[arg-type]
    assert as_messages(iter((b"a", b"bc"))) == Messages([b"a", b"bc"], [1, 2], 3)


def test_a_limit_is_named_and_counts_each_message_alone() -> None:
    with pytest.raises(TooLarge, match="a message may have at most 10 bytes, not 11") as raised:
        as_messages([b"1234567890", b"12345678901"], 10)
    assert (raised.value.limit, raised.value.size) == (10, 11)
    assert as_messages([b"1234567890"] * 3, 10) == Messages([b"1234567890"] * 3, [10] * 3, 30)


def test_a_group_refuses_what_is_not_bytes_and_copies_what_can_change(addresses: Addresses) -> None:
    async def main() -> None:
        async with Group(made_of(addresses(1), 0)) as group:
            for wrong in NOT_BYTES:
                payload: Any = wrong
                with pytest.raises(BadInput, match="must be bytes"):
                    await group.multicast(payload)
                with pytest.raises(BadInput, match="must be bytes"):
                    await group.multicast_many([b"good", payload])
                with pytest.raises(BadInput, match="must be bytes"):
                    group.submit(payload)
                with pytest.raises(BadInput, match="must be bytes"):
                    await group.execute(payload)
            with pytest.raises(TooLarge, match=f"at most {group.settings.run_bytes_max} bytes"):
                await group.multicast(bytes(group.settings.run_bytes_max + 1))
            changing = bytearray(b"array")
            await group.multicast(changing)
            await group.multicast(memoryview(changing))
            changing[:] = b"xxxxx"
            deliveries = aiter(group)
            assert [(await anext(deliveries)).payload for _ in range(2)] == [b"array", b"array"]
            await group.multicast(bytes(group.settings.run_bytes_max))
            assert len((await anext(deliveries)).payload) == group.settings.run_bytes_max

    run(main())


@pytest.mark.parametrize("bodies", ["relay", "direct"])
def test_a_client_refuses_what_is_not_bytes_or_too_large_and_copies_what_can_change(bodies: str) -> None:
    async def main() -> None:
        [address] = free_addresses(1)
        options = {"bodies": bodies}
        async with serve([address], options=options), connect(address, options=options) as client:
            await client.create_group("room")
            await client.join_group("room")
            for wrong in NOT_BYTES:
                payload: Any = wrong
                with pytest.raises(BadInput, match="must be bytes"):
                    await client.multicast("room", payload)
                with pytest.raises(BadInput, match="must be bytes"):
                    await client.multicast_many("room", [b"good", payload])
            with pytest.raises(TooLarge, match=f"at most {PAYLOAD_BYTES_MAX} bytes, not {PAYLOAD_BYTES_MAX + 1}"):
                await client.multicast("room", bytes(PAYLOAD_BYTES_MAX + 1))
            changing = bytearray(b"array")
            assert await client.multicast("room", changing) == 0, "nothing that was refused has a number"
            await client.multicast("room", memoryview(changing))
            changing[:] = b"xxxxx"
            await client.multicast("room", bytes(PAYLOAD_BYTES_MAX))
            await client.flushed()
            await client.leave_group("room")
            deliveries = [delivery async for delivery in _until_left(client)]
            assert [len(each) for each in deliveries] == [5, 5, PAYLOAD_BYTES_MAX]
            assert deliveries[:2] == [b"array", b"array"]

    run(main())


async def _until_left(client: Any) -> Any:
    async for delivery in client:
        if isinstance(delivery, GroupMessage):
            yield delivery.payload
        elif delivery.change == "leave":
            return


@given(st.lists(st.tuples(st.sampled_from("ab"), st.lists(st.integers(0, 6), max_size=8)), max_size=8), st.data())
def test_runs_are_cut_by_messages_and_bytes_and_hold_everything_in_order(
    batches: list[tuple[str, list[int]]], data: st.DataObject
) -> None:
    outbox: Outbox[str] = Outbox(3, 10)
    sent: list[tuple[str | None, bytes]] = []
    for to, sizes in batches:
        payloads = [bytes([len(sent) + number]) * size for number, size in enumerate(sizes)]
        assert outbox.accept(as_messages(payloads), to) == len(sent)
        sent += [(to, payload) for payload in payloads]
    taken: list[tuple[str | None, bytes]] = []
    while len(outbox):
        expected = outbox.next_run()
        run = outbox.take_run()
        assert run.lengths == [*map(len, run.payloads)]
        assert expected == (len(run.payloads), run.bytes) == (len(run.payloads), sum(run.lengths))
        assert len(run.payloads) <= 3
        assert run.bytes <= 10
        if data.draw(st.booleans()):
            outbox.put_back(run)
            assert outbox.next_run() == expected
            run = outbox.take_run()
        taken += [(run.to, payload) for payload in run.payloads]
    assert taken == sent
    assert not outbox.is_full()
