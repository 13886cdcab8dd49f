"""A class data sharing archive for Spark's Java: with it, the Java process of a session takes about half as long to start.

Half the cost of a small audit is Java reading and verifying classes from jars, the same ones every time. Java can store them in
a file in their in-memory form. The archive belongs to an installation and is made once, by `python -m quire.cli.warming`. Java
checks whether the file fits the jars and itself, and does without it if it does not.
"""

from __future__ import annotations

import sys
from importlib.metadata import version
from pathlib import Path

_QUIET = "-Xshare:auto -Xlog:disable -Xlog:all=off"
"""Without these, Java prints a message on the terminal if the archive does not fit."""


def archive_for(java: Path) -> Path:
    """The path of the archive for this Java home, whether or not it exists: in the environment that Spark is installed in."""
    # The Java home of the packaged Java is created anew each time under another name, but always with the same Java.
    named = "packaged" if java.name.startswith("quire-java-") else str(java.resolve()).strip("/").replace("/", "-")
    return Path(sys.prefix) / "share" / "quire" / f"spark-{version('pyspark')}-{named}.jsa"


def use_archive(java: Path) -> str:
    """The Java options that make it use the archive; empty if there is none."""
    archive = archive_for(java)
    return f"-XX:SharedArchiveFile={archive} {_QUIET}" if archive.exists() else ""


def make_archive(archive: Path) -> str:
    """The Java options that make it write the archive when it exits."""
    return f"-XX:ArchiveClassesAtExit={archive} {_QUIET}"
