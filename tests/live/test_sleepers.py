"""Processes that are stopped for longer than the timeout, and wake up."""

from __future__ import annotations

import asyncio
import signal
import sys

import msgspec
import pytest

from quire.live.network.connection import Connection
from quire.live.runs.fleet import free_addresses
from quire.live.services.sequencers import connect, serve
from quire.live.services.session import Membership
from quire.live.settings import Misfit
from quire.protocols.sequencing.errors import Evicted
from tests.kit.patience import PATIENCE_S

SLEEPER = """
import asyncio, sys
import quire

async def main():
    async with quire.connect(sys.argv[1], timeout_s=float(sys.argv[2])) as client:
        await client.join_group("room")
        print("joined", flush=True)
        async for delivery in client:
            pass

try:
    asyncio.run(main())
except quire.QuireError as error:
    print(type(error).__name__, error)
"""


@pytest.mark.parametrize("timeout_s", [1.0, 60.0])
def test_a_client_that_slept_for_too_long_is_told_that_it_was_evicted(timeout_s: float) -> None:
    """Whatever its own timeout, it does not take the time in which it did not run for silence of the service."""

    async def main() -> None:
        [address] = free_addresses(1)
        async with serve([address], timeout_s=2), connect(address, timeout_s=60) as awake:
            await awake.create_group("room")
            await awake.join_group("room")
            sleeper = await asyncio.create_subprocess_exec(
                sys.executable, "-c", SLEEPER, address, str(timeout_s), stdout=asyncio.subprocess.PIPE
            )
            try:
                assert sleeper.stdout is not None
                assert await sleeper.stdout.readline() == b"joined\n"
                sleeper.send_signal(signal.SIGSTOP)
                async with asyncio.timeout(PATIENCE_S):
                    async for delivery in awake:
                        if isinstance(delivery, Membership) and delivery.change == "leave":
                            break
                sleeper.send_signal(signal.SIGCONT)
                said = await asyncio.wait_for(sleeper.stdout.read(), PATIENCE_S)
                assert said.startswith(b"Evicted "), said
                assert await sleeper.wait() == 0
            finally:
                if sleeper.returncode is None:
                    sleeper.kill()
                    await sleeper.wait()

    asyncio.run(main())


def test_a_client_that_was_parted_in_the_middle_of_the_welcome_was_not_evicted() -> None:
    """The service need not know whom it has not welcomed yet; whom it knew, and knows no more, it has dismissed."""

    async def main() -> None:
        client = connect("127.0.0.1:7400")
        mesh = client._visit.host._mesh
        connection, peer = Connection(mesh, client.settings, 0), mesh.peers[0]
        answer = msgspec.structs.replace(mesh.introduction_to(0), incarnation=7, knows=None, dismissed="it was silent")
        peer.incarnation = 7
        mesh.introduced(connection, answer)
        assert not client._visit.host.ended
        peer.incoming.take(1)
        with pytest.raises(Misfit):
            mesh.introduced(connection, answer)
        assert isinstance(client._visit.failure, Evicted)
        assert "it was silent" in str(client._visit.failure)

    asyncio.run(main())
