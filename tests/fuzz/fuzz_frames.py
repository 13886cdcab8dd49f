"""The coverage-guided fuzzer: `python tests/fuzz/fuzz_frames.py -runs=1000000`, and whatever else libFuzzer understands.

Needs `atheris`. Starts from the seeds of the target, unless a corpus directory is given. An input that breaks something
is written to a file, whose name as the only argument runs it again.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

import atheris  # type: ignore[import-not-found, import-untyped, unused-ignore]

# Under Python 3.11 the fuzzer's instrumentation of a generator that waits at `yield` loses its variables, and that of a loop
# in a loop can end the process. What has those runs as it is; what is done with its results guides the search.
AS_IT_IS = (
    "quire.wire.frames",
    "quire.protocols.objects.exchange",
    "quire.protocols.objects.links",
    "quire.protocols.objects.queue",
    "quire.protocols.sequencing.delivery",
    "quire.protocols.sequencing.outbox",
    "quire.protocols.transactions.processor",
)
with atheris.instrument_imports(include=["quire.live", "quire.wire", "quire.model", "quire.protocols"], exclude=list(AS_IT_IS)):
    from tests.fuzz import target


def main() -> None:
    arguments = sys.argv
    with tempfile.TemporaryDirectory() as corpus:
        if all(argument.startswith("-") for argument in arguments[1:]):
            for number, seed in enumerate(target.seeds()):
                (Path(corpus) / f"seed-{number}").write_bytes(seed)
            arguments = [*arguments, corpus]
        atheris.Setup(arguments, target.fuzz)
        atheris.Fuzz()


if __name__ == "__main__":
    main()
