"""One wrong rule: where it is planted, and what must notice it."""

from __future__ import annotations

from pathlib import Path

import msgspec

ROOT = Path(__file__).parents[2]
SOURCES = ROOT / "src"


class Moved(Exception):
    """The source is not what the mutation was made for."""


class Mutation(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    """What the wrong rule says, as words for a table."""
    module: str
    """Below `src/quire`."""
    right: str
    """The text that it replaces. It occurs once in the module, so that it cannot be planted anywhere else."""
    wrong: str
    tests: tuple[str, ...]
    """The smallest tests that must catch it, as pytest names them. When it is planted, each must fail by an assertion, or by
    an error of Quire's own."""
    swarms: tuple[str, ...] = ()
    """Random runs that must meet it too, which takes long: they are run where everything that takes long is asked for."""
    harmless: str = ""
    """Why it changes nothing, where that can be proved; then all of the tests must pass."""

    @property
    def path(self) -> Path:
        """The module, below the folder of the sources."""
        return Path("quire", self.module)

    def planted_in(self, source: str) -> str:
        """The module's source with the wrong rule; raises Moved where it no longer has the right one, exactly once."""
        found = source.count(self.right)
        if found != 1:
            raise Moved(f"{self.name!r}: its text occurs {found} times in {self.module}, not once:\n{self.right}")
        return source.replace(self.right, self.wrong)
