"""An interruption that comes at the worst moment: when Java is being started, and nobody knows it yet."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from importlib import import_module
from typing import Any

import pytest

from quire.pipeline.jvm import Interruptible, Jvm


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_java_that_is_just_being_started_is_ended_like_any_other(
    monkeypatch: pytest.MonkeyPatch, number: signal.Signals
) -> None:
    from pyspark import SparkContext

    java_gateway: Any = import_module("pyspark.java_gateway")
    started: list[subprocess.Popen[Any]] = []

    class Slow(subprocess.Popen[Any]):
        def __init__(self, *arguments: Any, **options: Any) -> None:
            super().__init__(*arguments, **options)
            started.append(self)
            os.kill(os.getpid(), number)

    monkeypatch.setattr(SparkContext, "_gateway", None)
    monkeypatch.setattr(subprocess, "Popen", Slow)
    before = signal.getsignal(number)
    jvm = Jvm()
    reached: list[str] = []

    def start() -> None:
        java = [sys.executable, "-c", "import sys; sys.stdin.read()"]
        with Interruptible(jvm.end) as interruptible, jvm.adopting(interruptible):
            java_gateway.Popen(java, stdin=subprocess.PIPE)
            reached.append("what comes after it")

    with pytest.raises(KeyboardInterrupt):
        start()
    assert not reached
    (java,) = started
    assert java.returncode is not None
    java.communicate()
    assert signal.getsignal(number) == before
