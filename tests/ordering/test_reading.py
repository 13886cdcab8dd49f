"""Files of events that are refused before Spark reads them, because it would fail, or say nothing that helps."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from quire.model.errors import BadInput
from quire.pipeline.ordering import reading

NO_SPARK = cast(Any, None)


def test_columns_of_parquet_that_differ_in_case_are_named(tmp_path: Path) -> None:
    pq.write_table(pa.table({"source": ["a"], "clock": [1], "Source": ["b"]}), tmp_path / "events.parquet")

    with pytest.raises(BadInput, match="the columns Source and source differ only in case; rename one of them"):
        reading.read_frame(NO_SPARK, tmp_path)


@pytest.mark.parametrize("before", range(0, 120, 7))
def test_a_line_that_is_too_long_for_spark_is_refused_wherever_it_begins(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, before: int
) -> None:
    monkeypatch.setattr(reading, "_LINE_MAX", 1 << 7)
    lines = [b"{}" * 20, b"{}" * 20, b"{}" * 20]
    (tmp_path / "short.json").write_bytes(b" " * (before % 20) + b"\n".join(lines) + b"\n")
    (tmp_path / "long.json").write_bytes(b"\n" * before + b"x" * (1 << 7) + b"\n")

    reading._refuse_long_lines(tmp_path / "short.json")
    with pytest.raises(BadInput, match="has a line of more than"):
        reading._refuse_long_lines(tmp_path / "long.json")
