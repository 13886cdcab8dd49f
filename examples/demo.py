"""What `make demo` shows: a live group of three processes, its trace, and the proof on Spark that its order held."""

from __future__ import annotations

import sys

from quire.cli.main import main

sys.argv = ["quire", "run", "--protocol", "single-phase", "--members", "3", "--messages", "100000", *sys.argv[1:]]
main()
