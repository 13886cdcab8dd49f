"""What all tests share: one Spark session, because starting one takes longer than most tests."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """A local session with the settings of the command line, started when the first test asks for it."""
    from quire.pipeline.session import session

    with session("local[2]") as started:
        yield started
