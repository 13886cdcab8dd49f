"""An import from beginning to end: what the driver decides, and which tasks do the rest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from quire.files.replacing import Staging, check_replaceable, scratch_for
from quire.model.errors import BadInput
from quire.pipeline.codec import encode
from quire.pipeline.importing.building import NumberTask, Stamped, StampTask
from quire.pipeline.importing.choosing import Choice, choose
from quire.pipeline.importing.chunks import Chunk, cut_files
from quire.pipeline.importing.clocks import ResolveTask
from quire.pipeline.importing.defects import FATAL, Defect, Defects, Unusable, gather
from quire.pipeline.importing.gathering import GatherTask, Member, Source
from quire.pipeline.importing.keys import CollectTask, JoinTask
from quire.pipeline.importing.parsing import Counts, CountTask, Parsed, ParseTask
from quire.pipeline.importing.request import ImportRequest
from quire.pipeline.importing.scratch import Scratch
from quire.pipeline.importing.tasks import IMPORT
from quire.pipeline.importing.writing import WriteTask, Written
from quire.pipeline.tasks import Runner, run_on
from quire.trace.schema import Outcome, RunInfo
from quire.trace.store import run_parts

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HOSTS_MAX = 10_000
INDEX = "executions.json"
_WHAT = "a run directory"
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


class Listed(msgspec.Struct, frozen=True):
    """An execution in the index of several."""

    directory: str
    label: str


class Imported(msgspec.Struct, frozen=True, kw_only=True):
    format: str
    executions: tuple[Execution, ...]
    defects: tuple[Defect, ...]
    defect_counts: dict[str, int]


def import_logs(
    spark: SparkSession, files: Sequence[Path], out: Path, request: ImportRequest | None = None, *, force: bool = False
) -> Imported:
    """Make a run directory of logs; or, where they hold several executions, a directory of run directories.

    Raises Unusable (a BadInput that has all defects) where the logs contradict themselves, and BadInput for what cannot be
    read; then nothing is written.
    """
    return import_with(run_on(spark, IMPORT), files, out, request or ImportRequest(), force=force)


def import_with(run: Runner, files: Sequence[Path], out: Path, request: ImportRequest, *, force: bool = False) -> Imported:
    """The same with any way to run tasks."""
    check_out(out, force=force)
    choice = choose(files, request)
    with Staging(out, imported_parts, _WHAT, force=force) as staging:
        with scratch_for(out) as work:
            scratch = Scratch(str(work.path))
            scratch.prepare()
            done = _Import(run, scratch, files, request, choice).perform(out, staging.path)
        staging.publish()
    return done


def check_out(out: Path, *, force: bool) -> None:
    """Refuse a directory that exists, unless it is to be replaced and is a run, or runs (or empty)."""
    check_replaceable(out, imported_parts, _WHAT, force=force)


def imported_parts(directory: Path) -> list[str]:
    """The files of which the run in this directory consists, or the runs; raises BadInput where there is none."""
    index = directory / INDEX
    if not index.is_file():
        return run_parts(directory)
    try:
        listed = msgspec.json.decode(index.read_bytes(), type=list[Listed])
    except (OSError, msgspec.DecodeError) as error:
        raise BadInput(f"{index} does not list executions: {error}") from error
    names = [each.directory for each in listed if Path(each.directory).name == each.directory]
    runs = [name for name in names if (directory / name / "run.json").is_file()]
    if not runs:
        raise BadInput(f"{index} lists no existing run")
    return [INDEX, *(f"{name}/{part}" for name in runs for part in run_parts(directory / name))]


class _Import:
    def __init__(self, run: Runner, scratch: Scratch, files: Sequence[Path], request: ImportRequest, choice: Choice) -> None:
        self.run, self.scratch, self.files, self.request, self.choice = run, scratch, files, request, choice
        self.source = Source(tuple(str(file) for file in files), choice.format.unit)
        self.defects: list[Defects] = []

    def perform(self, out: Path, made: Path) -> Imported:
        """Make the run or the runs in `made`; they are told of as being in `out`."""
        in_one_piece = self.choice.format.in_one_piece(self.choice.settings)
        chunks = cut_files(self.files, 1 << 62 if in_one_piece else self.request.chunk_bytes)
        parsed = self._parse(chunks)
        labels, hosts, members = self._hosts_of(parsed)
        clocked = any(result.clocked for result in parsed)
        rows = self._gather(hosts, members, clocked)
        stride = self._causes(hosts, members, clocked)
        messages = self._number(members, clocked)
        if not stride:
            self._stamp(hosts, members, clocked)
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
            index = [Listed(Path(done.directory).name, done.label) for done in executions]
            (made / INDEX).write_bytes(msgspec.json.format(msgspec.json.encode(index)) + b"\n")
        found = gather(self.defects)
        counts = {str(kind): count for kind, count in sorted(found.counts.items())}
        return Imported(
            format=self.choice.name, executions=tuple(executions), defects=tuple(found.listed), defect_counts=counts
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
        settings = encode(self.choice.settings)
        tasks = [
            ParseTask(
                chunk, self.source.files[chunk.file], self.choice.name, settings, self.scratch.path("records", index),
                lines[index], inside[index],
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

    def _hosts_of(self, parsed: Sequence[Parsed]) -> tuple[list[str], list[tuple[str, ...]], list[list[Member]]]:
        """The executions that have events, the hosts of each in the order in which they appear, and where their records are."""
        labels, spread = self._executions(parsed)
        hosts: list[dict[str, list[tuple[str, int]]]] = [{} for _ in labels]
        for index, (result, numbers) in enumerate(zip(parsed, spread, strict=True)):
            for part in sorted(result.slices, key=lambda part: part.first_line):
                parts = hosts[numbers[part.execution]].setdefault(part.host, [])
                parts.append((self.scratch.path("records", index), part.batch))
        for result, numbers in zip(parsed, spread, strict=True):
            for execution, host in result.dests:
                hosts[numbers[execution]].setdefault(host, [])
        kept = [number for number, its in enumerate(hosts) if its]
        if not kept:
            raise BadInput(f"{self.source.files[0]} holds no events that {self.choice.name} finds")
        most = max(len(its) for its in hosts)
        if most > HOSTS_MAX:
            raise BadInput(f"there are {most:,} hosts; the limit is {HOSTS_MAX:,}. Is the host read from the right field?")
        members = [
            [Member(process, host, tuple(parts)) for process, (host, parts) in enumerate(hosts[number].items()) if parts]
            for number in kept
        ]
        return [labels[number] for number in kept], [tuple(hosts[number]) for number in kept], members

    def _executions(self, parsed: Sequence[Parsed]) -> tuple[list[str], list[list[int]]]:
        """The labels of all executions, and for each chunk which of them its own are."""
        labels: list[str] = []
        spread: list[list[int]] = []
        if self.choice.format.delimited:
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
            GatherTask(self.scratch, self.source, execution, hosts[execution], chosen, clocked, self.request.tasks_max)
            for execution, its in enumerate(members)
            for chosen in self._split(its)
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
                ResolveTask(self.scratch, self.source, execution, hosts[execution], chosen)
                for execution, its in enumerate(members) for chosen in self._split(its)
            ])  # fmt: skip
            self.defects += [result.defects for result in found]
            self._stop_if_unusable()
            stride = 1 + max(result.causes_max for result in found)
            return stride if (max(result.sum_max for result in found) + 1) * stride < _TIME_END else 0
        joins = [
            JoinTask(
                self.scratch, self.source.files, self.source.unit, execution, hosts[execution],
                tuple(member.process for member in its), bucket,
            )
            for execution, its in enumerate(members)
            for bucket in range(self.request.tasks_max)
        ]  # fmt: skip
        self.defects += [result.defects for result in self.run(joins)]
        self._stop_if_unusable()
        self.run([
            CollectTask(self.scratch, execution, tuple(member.process for member in chosen), self.request.tasks_max)
            for execution, its in enumerate(members) for chosen in self._split(its)
        ])  # fmt: skip
        return 0

    def _number(self, members: Sequence[Sequence[Member]], clocked: bool) -> list[int]:
        tasks = [
            NumberTask(
                self.scratch, execution, tuple(member.process for member in its),
                tuple(member.process for member in chosen), clocked,
            )
            for execution, its in enumerate(members) for chosen in self._split(its)
        ]  # fmt: skip
        messages = [0] * len(members)
        for task, result in zip(tasks, self.run(tasks), strict=True):
            messages[task.execution] += result.messages
        return messages

    def _stamp(self, hosts: Sequence[tuple[str, ...]], members: Sequence[Sequence[Member]], clocked: bool) -> list[Stamped]:
        return self.run([
            StampTask(
                self.scratch, self.source, execution, hosts[execution], tuple(member.process for member in its), clocked
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
                self.scratch, self.source, execution, run_id, hosts, tuple(member.process for member in chosen),
                clocked, stride, str(directory / "trace"),
            )
            for chosen in self._split(members)
        ]  # fmt: skip
        results: list[Written] = self.run(tasks)
        return Written(sum(result.rows for result in results), sum(result.deliveries for result in results))

    def _describe(self, run_id: str, done: Execution) -> bytes:
        counts = gather(self.defects).counts
        settings: Mapping[str, object] = {
            "format": self.choice.name,
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

    def _split(self, members: Sequence[Member]) -> list[tuple[Member, ...]]:
        tasks = min(self.request.tasks_max, len(members))
        return [tuple(members[task::tasks]) for task in range(tasks)]

    def _stop_if_unusable(self) -> None:
        found = gather(self.defects)
        if any(kind in FATAL for kind in found.counts):
            raise Unusable(found)
