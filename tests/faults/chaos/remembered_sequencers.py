"""Sequencers whose groups are rebuilt from what members remember, and sequencers with journals that are all killed at once.

Without backups, any number of sequencers may be lost, as long as a majority is left to agree, or each has its register in a
journal. In half of these rounds nothing happens to clients but that they stand still for a moment, and one is always in all
groups: then no group may be lost. In the others clients are killed and stopped too, and cut off; a group may then be lost,
whereupon they go on with another. With backups and journals all sequencers are killed at once: then all groups are lost, and
whatever was delivered before must still agree.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial

from quire.model.faults import Kill
from tests.faults.chaos.rounds import Maker, Round
from tests.faults.chaos.sequencers import CLIENTS, ask_sequencer, kill_client


def make_round(seed: int, seconds: float, apart: bool) -> Round:
    choose = random.Random(seed)
    backups, journal, spared = (*choose.choice(((0, False), (0, True), (0, True), (1, True))), choose.random() < 0.5)
    sequencers = range(choose.choice((3, 3, 5)))
    maker = Maker(choose, len(sequencers) + CLIENTS, seconds)
    clients, asked = maker.members[len(sequencers) :], list[Kill]()

    def kill_sequencers(at_ms: int) -> int:
        at_ms = maker.quiet_ms(at_ms, sequencers)
        most = backups or len(sequencers) // 2
        maker.kill(choose.sample(sequencers, choose.randint(1, most)), at_ms)
        return at_ms

    def kill_all_sequencers(at_ms: int) -> int:
        at_ms = maker.quiet_ms(at_ms, sequencers)
        maker.kill(sequencers, at_ms)
        return at_ms

    kinds: list[Callable[[int], int | None]] = [
        kill_sequencers,
        partial(ask_sequencer, maker, choose, sequencers, asked),
        maker.stop_shortly,
    ]
    kinds += [kill_all_sequencers] * 2 * journal
    kinds += (
        [lambda at_ms: maker.stop_for_long(at_ms, sequencers)]
        if spared
        else [partial(kill_client, maker, clients), maker.stop_for_long]
    )
    kinds += [maker.part, maker.cut] * (apart and not spared)
    options: dict[str, object] = {
        "backups": backups,
        "journal": journal,
        "order": choose.choice(("total", "hybrid", "causal-total")),
        "bodies": choose.choice(("relay", "direct")),
    }
    return Round(seed, len(maker.members), maker.make(kinds, pause_ms=3000), options, asked=tuple(asked))
