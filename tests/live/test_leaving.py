"""Leaving the sequencing service, in whatever way, leaves no word of complaint."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.kit.patience import PATIENCE_S
from tests.live.leavers import WAYS


def test_no_way_of_leaving_is_complained_of() -> None:
    done = subprocess.run(
        [sys.executable, "-X", "dev", "-W", "error", "-m", "tests.live.leavers"],
        capture_output=True, text=True, timeout=PATIENCE_S, check=False, cwd=Path(__file__).parents[2],
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.split() == [way.__name__ for way in WAYS]
