"""How long a test waits for what comes at once: a deadline is only for what hangs, and a machine may have much else to do."""

from __future__ import annotations

PATIENCE_S = 600.0
