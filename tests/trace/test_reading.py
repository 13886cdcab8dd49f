"""One reader of traces: whoever reads one refuses the same things in the same words, and opens each file once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from quire.model.errors import BadInput
from quire.pipeline.auditing.auditor import audit_with
from quire.pipeline.auditing.registry import audit_job
from quire.pipeline.causality.events import DescribeTask, Event, describe
from quire.pipeline.causality.tasks import CAUSALITY
from quire.pipeline.exporting import EXPORT, export_with
from quire.pipeline.layout import lay_out
from quire.pipeline.source import Progress, QuireDataSource, Span
from quire.pipeline.tasks import run_here
from quire.report.run_report import report_run
from quire.report.scan import scan
from quire.trace.schema import SCHEMA
from quire.trace.store import open_run
from tests.audit.traces import plain, write

GOOD = plain("s0>012 d0:0 d1:0 s1>012 d0:1", "s0>012 d0:0 d1:0 d0:1", "d0:0 d1:0 d0:1")


def strange(run: Path) -> str:
    """A kind of event that a later version may know."""
    path = run / "trace" / "p00001.parquet"
    table = pq.read_table(path).cast(SCHEMA)
    kinds = ["dream", *table["kind"].to_pylist()[1:]]
    pq.write_table(table.set_column(3, SCHEMA.field("kind"), pa.array(kinds, SCHEMA.field("kind").type)), path)
    return "p00001.parquet has events of the unknown kind 'dream'"


def foreign(run: Path) -> str:
    """Rows of another run among those of this one."""
    path = run / "trace" / "p00001.parquet"
    table = pq.read_table(path).cast(SCHEMA)
    names = ["other", *table["run"].to_pylist()[1:]]
    pq.write_table(table.set_column(0, SCHEMA.field("run"), pa.array(names, SCHEMA.field("run").type)), path)
    return "p00001.parquet holds events of run 'other', but run.json describes run 'test'"


def describe_all(run: Path) -> object:
    layout = lay_out(open_run(run))
    return describe(DescribeTask(layout.world, layout.groups, (Event(1, 0),)))


def load(run: Path) -> object:
    source = QuireDataSource({"path": str(run)})
    batches: Any = source.reader(source.schema()).read(Span(1, Progress(), Progress(4, -1)))
    return list(batches)


READERS: dict[str, Callable[[Path], object]] = {
    "audit": lambda run: audit_with(run_here(audit_job()), run),
    "causality": describe_all,
    "export": lambda run: export_with(run_here(CAUSALITY), run_here(EXPORT), run, run.with_name("log")),
    "report": lambda run: report_run(run, None),
    "scan": lambda run: scan(lay_out(open_run(run))),
    "source": load,
}


@pytest.mark.parametrize("damage", [strange, foreign], ids=lambda damage: damage.__name__)
@pytest.mark.parametrize("reader", READERS)
def test_every_reader_refuses_the_same_rows_in_the_same_words(
    tmp_path: Path, reader: str, damage: Callable[[Path], str]
) -> None:
    run = write(tmp_path / "run", GOOD)
    READERS[reader](run)  # As it was, it can be read.
    (tmp_path / "log").unlink(missing_ok=True)
    said = damage(run)

    with pytest.raises(BadInput, match=said) as refused:
        READERS[reader](run)

    assert "\n" not in str(refused.value)


def test_the_footer_of_a_file_is_read_once_however_often_a_run_is_opened_and_laid_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = write(tmp_path / "run", GOOD)
    opened: Counter[str] = Counter()

    def count(original: Callable[..., Any]) -> Callable[..., Any]:
        def counting(path: Path | str, *rest: Any, **named: Any) -> Any:
            opened[Path(path).name] += 1
            return original(path, *rest, **named)

        return counting

    monkeypatch.setattr(pq, "ParquetFile", count(pq.ParquetFile))
    monkeypatch.setattr(pq, "read_metadata", count(pq.read_metadata))

    for _ in range(3):
        assert lay_out(open_run(run)).rows == 12

    assert opened == {f"p0000{process}.parquet": 1 for process in range(3)}


def test_a_file_that_was_replaced_is_read_again(tmp_path: Path) -> None:
    run = write(tmp_path / "run", GOOD)
    before = open_run(run)
    path = run / "trace" / "p00002.parquet"
    pq.write_table(pq.read_table(path).slice(0, 2), path)

    after = open_run(run)

    assert [file.row_groups[0].rows for file in before.files] == [5, 4, 3]
    assert [file.row_groups[0].rows for file in after.files] == [5, 4, 2]


def test_traces_that_other_libraries_wrote_with_plain_words_are_read(tmp_path: Path) -> None:
    run = write(tmp_path / "run", plain("s0>01 d0:0", "d0:0"))
    before = audit_with(run_here(audit_job()), run).checks
    for path in (run / "trace").glob("*.parquet"):
        table = pq.read_table(path)
        for at, field in enumerate(table.schema):
            if isinstance(field.type, pa.DictionaryType):
                table = table.set_column(at, field.name, table[field.name].cast(pa.large_string()))
            elif field.type == pa.int32():
                table = table.set_column(at, field.name, table[field.name].cast(pa.int64()))
        table = table.set_column(table.schema.get_field_index("dests"), "dests", table["dests"].cast(pa.list_(pa.int64())))
        pq.write_table(table, path)

    assert audit_with(run_here(audit_job()), run).checks == before
