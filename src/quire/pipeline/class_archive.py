"""An archive of the classes that Spark loads: with it, the Java of a session takes about half as long to start.

Half of what a small audit costs is Java that reads and checks classes out of jars, the same ones every time. Java can keep them
as they are in memory, in a file. It belongs to an installation and is made once, by `python -m quire.cli.warming`. Java looks
whether the file fits the jars and itself, and does without it where it does not.
"""

from __future__ import annotations

import sys
from importlib.metadata import version
from pathlib import Path

_QUIET = "-Xshare:auto -Xlog:disable -Xlog:all=off"
"""Where the file does not fit, Java would say so on the terminal."""


def archive_for(java: Path) -> Path:
    """Where the archive for this Java home is, if there is one: in the environment that Spark is installed in."""
    # A Java home that is made anew each time, for the packaged Java, has another name each time, but the same Java in it.
    named = "packaged" if java.name.startswith("quire-java-") else str(java.resolve()).strip("/").replace("/", "-")
    return Path(sys.prefix) / "share" / "quire" / f"spark-{version('pyspark')}-{named}.jsa"


def use_archive(java: Path) -> str:
    """What Java is told so that it uses the archive; empty if there is none."""
    archive = archive_for(java)
    return f"-XX:SharedArchiveFile={archive} {_QUIET}" if archive.exists() else ""


def make_archive(archive: Path) -> str:
    """What Java is told so that it writes the archive at its end."""
    return f"-XX:ArchiveClassesAtExit={archive} {_QUIET}"
