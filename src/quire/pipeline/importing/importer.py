"""An import from beginning to end: what the driver decides, and which tasks do the rest."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from quire.model.errors import BadInput
from quire.pipeline.importing.building import NumberTask, Stamped, StampTask
from quire.pipeline.importing.chunks import Chunk, cut_files
from quire.pipeline.importing.clocks import ResolveTask
from quire.pipeline.importing.defects import FATAL, Defect, Defects, Unusable, gather
from quire.pipeline.importing.gathering import GatherTask, Member, Source
from quire.pipeline.importing.keys import CollectTask, JoinTask
from quire.pipeline.importing.parsing import Counts, CountTask, Options, Parsed, ParseTask
from quire.pipeline.importing.tasks import IMPORT
from quire.pipeline.importing.wishes import Wanted, choose_options
from quire.pipeline.importing.workshop import Workshop
from quire.pipeline.importing.writing import WriteTask, Written
from quire.pipeline.tasks import Runner, run_on
from quire.trace.schema import Outcome, RunInfo

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HOSTS_MAX = 10_000
INDEX = "executions.json"
_TIME_END = 1 << 62


class Execution(msgspec.Struct, frozen=True, kw_only=True):
    """What became of one execution."""

    directory: str
    label: str
    hosts: tuple[str, ...]
    events: int
    rows: int
    messages: int
    deliveries: int


class Imported(msgspec.Struct, frozen=True, kw_only=True):
    format: str
    executions: tuple[Execution, ...]
    defects: tuple[Defect, ...]
    defect_counts: dict[str, int]


def import_logs(
    spark: SparkSession, files: Sequence[Path], out: Path, wanted: Wanted | None = None, *, force: bool = False
) -> Imported:
    """Make a run directory of logs; or, where they hold several executions, a directory of run directories.

    Raises Unusable (a BadInput that has all defects) where the logs contradict themselves, and BadInput for what cannot be
    read; then nothing is written.
    """
    return import_with(run_on(spark, IMPORT), files, out, wanted or Wanted(), force=force)


def import_with(run: Runner, files: Sequence[Path], out: Path, wanted: Wanted, *, force: bool = False) -> Imported:
    """The same with any way to run tasks."""
    check_out(out, force=force)
    options = choose_options(files, wanted)
    out.absolute().parent.mkdir(parents=True, exist_ok=True)
    root = Path(tempfile.mkdtemp(prefix=f".{out.name}.", dir=out.absolute().parent))
    try:
        workshop = Workshop(str(root))
        workshop.prepare()
        done = _Import(run, workshop, files, wanted, options).perform(out)
        root.chmod(0o755)
        made = root / "out" / "made"
        if out.exists():
            shutil.rmtree(out)
        os.replace(made, out)
    finally:
        shutil.rmtree(root, ignore_errors=True)
    return done


def check_out(out: Path, *, force: bool) -> None:
    """Refuse a directory that exists, unless it is to be replaced and is a run, or runs (or empty)."""
    if not out.exists():
        return
    if not force:
        raise BadInput(f"{out} exists already; choose another name, or --force to replace it")
    known = any((out / name).is_file() for name in ("run.json", INDEX)) if out.is_dir() else False
    if not known and not (out.is_dir() and not any(out.iterdir())):
        raise BadInput(f"{out} is not a run directory, so it will not be replaced")


class _Import:
    def __init__(self, run: Runner, workshop: Workshop, files: Sequence[Path], wanted: Wanted, options: Options) -> None:
        self.run, self.workshop, self.files, self.wanted, self.options = run, workshop, files, wanted, options
        self.source = Source(tuple(str(file) for file in files), options.unit)
        self.defects: list[Defects] = []

    def perform(self, out: Path) -> Imported:
        chunks = cut_files(self.files, 1 << 62 if self.options.documents else self.wanted.chunk_bytes)
        parsed = self._parse(chunks)
        labels, hosts, members = self._people(parsed)
        clocked = any(result.clocked for result in parsed)
        rows = self._gather(hosts, members, clocked)
        stride = self._causes(hosts, members, clocked)
        messages = self._number(members, clocked)
        if not stride:
            self._stamp(hosts, members, clocked)
        made = Path(self.workshop.root) / "out" / "made"
        executions = []
        for execution, (label, its_hosts) in enumerate(zip(labels, hosts, strict=True)):
            name = f"{execution + 1:04d}" if len(labels) > 1 else ""
            run_id = f"{self.files[0].name}{'#' + str(execution + 1) if name else ''}"
            written = self._write(made / name, run_id, execution, its_hosts, members[execution], clocked, stride)
            done = Execution(
                directory=str(out / name), label=label, hosts=its_hosts, events=rows[execution], rows=written.rows,
                messages=messages[execution], deliveries=written.deliveries,
            )  # fmt: skip
            (made / name / "run.json").write_bytes(self._describe(run_id, done))
            executions.append(done)
        if len(executions) > 1:
            index = [{"directory": Path(done.directory).name, "label": done.label} for done in executions]
            (made / INDEX).write_bytes(msgspec.json.format(msgspec.json.encode(index)) + b"\n")
        found = gather(self.defects)
        counts = {str(kind): count for kind, count in sorted(found.counts.items())}
        return Imported(
            format=self.options.format, executions=tuple(executions), defects=tuple(found.told), defect_counts=counts
        )

    def _parse(self, chunks: Sequence[Chunk]) -> list[Parsed]:
        """Every chunk, from where the one before it ended."""
        lines = [1] * len(chunks)
        inside = [False] * len(chunks)
        if len(chunks) > len(self.files):
            counts: list[Counts] = self.run([CountTask(chunk) for chunk in chunks])
            for index in range(1, len(chunks)):
                if chunks[index].file == chunks[index - 1].file:
                    lines[index] = lines[index - 1] + counts[index - 1].lines
                    inside[index] = inside[index - 1] ^ (counts[index - 1].quotes % 2 == 1)
        tasks = [
            ParseTask(
                chunk, self.source.files[chunk.file], self.options, self.workshop.path("records", index), lines[index],
                inside[index] and self.options.format == "csv",
            )
            for index, chunk in enumerate(chunks)
        ]  # fmt: skip
        results: list[Parsed] = self.run(tasks)
        while True:
            again = []
            for index in range(1, len(chunks)):
                resume = results[index - 1].resume
                if chunks[index].file == chunks[index - 1].file and results[index].first < resume:
                    again.append(index)
                    tasks[index].first = resume
            if not again:
                return results
            for index, result in zip(again, self.run([tasks[index] for index in again]), strict=True):
                results[index] = result

    def _people(self, parsed: Sequence[Parsed]) -> tuple[list[str], list[tuple[str, ...]], list[list[Member]]]:
        """The executions that have events, the hosts of each in the order in which they appear, and where their records are."""
        labels, spread = self._executions(parsed)
        hosts: list[dict[str, list[tuple[str, int]]]] = [{} for _ in labels]
        for index, (result, numbers) in enumerate(zip(parsed, spread, strict=True)):
            for part in sorted(result.slices, key=lambda part: part.first_line):
                parts = hosts[numbers[part.execution]].setdefault(part.host, [])
                parts.append((self.workshop.path("records", index), part.batch))
        for result, numbers in zip(parsed, spread, strict=True):
            for execution, host in result.dests:
                hosts[numbers[execution]].setdefault(host, [])
        kept = [number for number, its in enumerate(hosts) if its]
        if not kept:
            raise BadInput(f"{self.source.files[0]} holds no events that {self.options.format} finds")
        most = max(len(its) for its in hosts)
        if most > HOSTS_MAX:
            raise BadInput(
                f"there are {most:,} hosts, and at most {HOSTS_MAX:,} can be followed; is the host what you think it is?"
            )
        members = [
            [Member(process, host, tuple(parts)) for process, (host, parts) in enumerate(hosts[number].items()) if parts]
            for number in kept
        ]
        return [labels[number] for number in kept], [tuple(hosts[number]) for number in kept], members

    def _executions(self, parsed: Sequence[Parsed]) -> tuple[list[str], list[list[int]]]:
        """The labels of all executions, and for each chunk which of them its own are."""
        labels: list[str] = []
        spread: list[list[int]] = []
        if self.options.format == "shiviz":
            labels = [""]
            for result in parsed:
                spread.append([len(labels) - 1, *range(len(labels), len(labels) + len(result.executions) - 1)])
                labels += result.executions[1:]
            return labels, spread
        for result in parsed:
            labels += [label for label in result.executions if label not in labels]
            spread.append([labels.index(label) for label in result.executions])
        return labels or [""], spread

    def _gather(self, hosts: Sequence[tuple[str, ...]], members: Sequence[Sequence[Member]], clocked: bool) -> list[int]:
        tasks = [
            GatherTask(self.workshop, self.source, execution, hosts[execution], share, clocked, self.wanted.shares)
            for execution, its in enumerate(members)
            for share in self._shares(its)
        ]
        rows = [0] * len(hosts)
        for task, result in zip(tasks, self.run(tasks), strict=True):
            rows[task.execution] += result.rows
            self.defects.append(result.defects)
        self._stop_if_unusable()
        return rows

    def _causes(self, hosts: Sequence[tuple[str, ...]], members: Sequence[Sequence[Member]], clocked: bool) -> int:
        """Find who caused what. Returns the stride of logical times that come from clocks, 0 where they do not."""
        if clocked:
            found = self.run([
                ResolveTask(self.workshop, self.source, execution, hosts[execution], share)
                for execution, its in enumerate(members) for share in self._shares(its)
            ])  # fmt: skip
            self.defects += [result.defects for result in found]
            self._stop_if_unusable()
            stride = 1 + max(result.causes_max for result in found)
            return stride if (max(result.sum_max for result in found) + 1) * stride < _TIME_END else 0
        joins = [
            JoinTask(
                self.workshop, self.source.files, self.source.unit, execution, hosts[execution],
                tuple(member.process for member in its), bucket,
            )
            for execution, its in enumerate(members)
            for bucket in range(self.wanted.shares)
        ]  # fmt: skip
        self.defects += [result.defects for result in self.run(joins)]
        self._stop_if_unusable()
        self.run([
            CollectTask(self.workshop, execution, tuple(member.process for member in share), self.wanted.shares)
            for execution, its in enumerate(members) for share in self._shares(its)
        ])  # fmt: skip
        return 0

    def _number(self, members: Sequence[Sequence[Member]], clocked: bool) -> list[int]:
        tasks = [
            NumberTask(
                self.workshop, execution, tuple(member.process for member in its),
                tuple(member.process for member in share), clocked,
            )
            for execution, its in enumerate(members) for share in self._shares(its)
        ]  # fmt: skip
        messages = [0] * len(members)
        for task, result in zip(tasks, self.run(tasks), strict=True):
            messages[task.execution] += result.messages
        return messages

    def _stamp(self, hosts: Sequence[tuple[str, ...]], members: Sequence[Sequence[Member]], clocked: bool) -> list[Stamped]:
        return self.run([
            StampTask(
                self.workshop, self.source, execution, hosts[execution], tuple(member.process for member in its), clocked
            )
            for execution, its in enumerate(members)
        ])  # fmt: skip

    def _write(
        self, directory: Path, run_id: str, execution: int, hosts: tuple[str, ...], members: Sequence[Member],
        clocked: bool, stride: int,
    ) -> Written:  # fmt: skip
        (directory / "trace").mkdir(parents=True)
        tasks = [
            WriteTask(
                self.workshop, self.source, execution, run_id, hosts, tuple(member.process for member in share),
                clocked, stride, str(directory / "trace"),
            )
            for share in self._shares(members)
        ]  # fmt: skip
        results: list[Written] = self.run(tasks)
        return Written(sum(result.rows for result in results), sum(result.deliveries for result in results))

    def _describe(self, run_id: str, done: Execution) -> bytes:
        counts = gather(self.defects).counts
        settings: Mapping[str, object] = {
            "format": self.options.format,
            "files": [file.name for file in self.files],
            "execution": done.label,
            "hosts": list(done.hosts),
            "defects": {str(kind): count for kind, count in sorted(counts.items())},
        }
        info = RunInfo(
            run=run_id, source="import", protocol="", options={}, members=len(done.hosts), groups={}, promises=(),
            settings=dict(settings),
            outcome=Outcome(complete=not counts, messages=done.messages, deliveries=done.deliveries),
        )  # fmt: skip
        return msgspec.json.format(msgspec.json.encode(info)) + b"\n"

    def _shares(self, members: Sequence[Member]) -> list[tuple[Member, ...]]:
        shares = min(self.wanted.shares, len(members))
        return [tuple(members[share::shares]) for share in range(shares)]

    def _stop_if_unusable(self) -> None:
        found = gather(self.defects)
        if any(kind in FATAL for kind in found.counts):
            raise Unusable(found)
