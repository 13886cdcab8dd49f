"""How much may be under way."""

from __future__ import annotations

from quire.views.packets import Data
from tests.views.stage import Stage


def test_what_is_under_way_has_a_bound_in_bytes() -> None:
    stage = Stage(3, protocol="fifo", outstanding_bytes=1000, run_bytes=300)
    stage.found()
    stage.submit("m0", [bytes(100)] * 50)
    under_way = [to for _, to in stage.under_way(Data) if to == "m1"]
    assert len(under_way) == 4
    stage.settling.rounds(20)
    assert all(len(stage.log(name)) == 50 for name in ("m0", "m1", "m2"))
