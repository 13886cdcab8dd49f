"""What all tests share: one Spark session, because starting one takes longer than most tests."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


# A shell lets what it runs in the background ignore Ctrl-C, and so would all processes that tests start and interrupt.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """A local session with the settings of the command line, started when the first test asks for it."""
    from quire.pipeline.session import session

    with session("local[2]") as started:
        yield started
