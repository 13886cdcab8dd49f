"""`make chaos`: rounds of random faults, of all services in turn or of one, until the time is over or one breaks a promise."""

from __future__ import annotations

import argparse
import random
import tempfile
import time
from collections import Counter
from pathlib import Path

from quire.live.runs.hosts import hosts
from quire.model.errors import BadInput
from quire.model.faults import render_faults
from tests.faults.chaos import groups, hierarchies, objects, remembered_sequencers, sequencers, stores
from tests.faults.chaos.rounds import Judge, Outcome, Round, Scenario

SCENARIOS = {
    "groups": Scenario(groups.make_round, groups.play),
    "hierarchies": Scenario(groups.make_round, hierarchies.play),
    "sequencers": Scenario(sequencers.make_round, sequencers.play),
    "remembered": Scenario(remembered_sequencers.make_round, sequencers.play),
    "stores": Scenario(stores.make_round, stores.play),
    "objects": Scenario(objects.make_round, objects.play),
}


def can_be_apart() -> bool:
    try:
        with hosts(1):
            return True
    except BadInput as error:
        print(f"without partitions: {error}")
        return False


def play(service: str, round: Round, seconds: float, judge: Judge) -> Outcome:
    """What came of it; where that is not what was promised, how it is played again."""
    options = "".join(f", {name} {value}" for name, value in round.options.items())
    print(f"{service}, seed {round.seed}, {round.members} processes{options}: {render_faults(round.faults)}", flush=True)
    with tempfile.TemporaryDirectory(prefix="quire-chaos-") as home:
        try:
            return SCENARIOS[service].play(round, Path(home), judge)
        except BaseException:
            happened = Path(home, "happened.txt")
            print(happened.read_text() if happened.exists() else "")
            print(f"play it again: make chaos CHAOS='--service {service} --seed {round.seed} --rounds 1 --seconds {seconds:g}'")
            raise


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--service", choices=[*SCENARIOS], help="of which; all in turn if not given")
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--seconds", type=float, default=15.0, help="for how long faults happen in a round")
    parser.add_argument("--seed", type=int, default=None, help="of the first round; the others count on")
    parser.add_argument("--rounds", type=int, default=None, help="how many, however long they take")
    given = parser.parse_args()
    first = random.SystemRandom().randrange(1_000_000_000) if given.seed is None else given.seed
    services, apart = [given.service] if given.service else [*SCENARIOS], can_be_apart()
    counted: Counter[str] = Counter()
    acknowledged, began, done = 0, time.monotonic(), 0

    from quire.pipeline.auditing.auditor import audit
    from quire.pipeline.session import session

    with session("local[2]") as spark:
        while done != given.rounds if given.rounds else time.monotonic() - began < given.minutes * 60:
            service = services[done % len(services)]
            round = SCENARIOS[service].make_round(first + done, given.seconds, apart)
            outcome = play(service, round, given.seconds, lambda run: audit(spark, run))
            done += 1
            acknowledged += outcome.acknowledged
            counted.update(type(fault).__name__.lower() for fault in round.faults)
            print(
                f"  {outcome.acknowledged} acknowledged, 0 lost, 0 twice, {outcome.what}, {outcome.seconds:.0f} s", flush=True
            )
    minutes = (time.monotonic() - began) / 60
    kinds = ", ".join(f"{count} {kind}s" for kind, count in sorted(counted.items()))
    print(f"{done} rounds from seed {first} in {minutes:.1f} minutes: {counted.total()} faults ({kinds})")
    print(f"{acknowledged} acknowledged, 0 lost, 0 twice; every order that was promised holds")


if __name__ == "__main__":
    main()
