"""Every violated guarantee is told on Spark as it is told in one process."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from quire.model.orders import Guarantee
from quire.pipeline import audit
from quire.pipeline.auditing.auditor import audit_here
from tests.audit.violated import ONE_EACH

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.parametrize("guarantee", Guarantee)
def test_every_violated_guarantee_is_told_on_spark(spark: SparkSession, guarantee: Guarantee, tmp_path: Path) -> None:
    run = ONE_EACH[guarantee].write(tmp_path / "run")

    assert audit(spark, run, segments=2).checks == audit_here(run).checks
