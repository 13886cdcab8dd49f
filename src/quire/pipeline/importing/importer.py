"""An import from beginning to end: what the driver decides, and which tasks do the rest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

import msgspec

from quire.files.errors import writing
from quire.files.replacing import Staging, scratch_for
from quire.model.errors import BadInput
from quire.pipeline.codec import encode
from quire.pipeline.importing.arranging import ArrangeTask, Skew
from quire.pipeline.importing.building import NumberTask, Stamped, StampTask
from quire.pipeline.importing.choosing import Choice, choose
from quire.pipeline.importing.chunks import Chunk, cut_files
from quire.pipeline.importing.clocks import ResolveTask
from quire.pipeline.importing.defects import FATAL, Defect, DefectKind, Defects, Unusable, gather
from quire.pipeline.importing.gathering import GatherTask, Member, Source
from quire.pipeline.importing.inputs import Input, plain_files, unpacked_files
from quire.pipeline.importing.keys import CollectTask, JoinTask
from quire.pipeline.importing.mapping import NOWHERE
from quire.pipeline.importing.parsing import Counts, CountTask, Parsed, ParseTask
from quire.pipeline.importing.request import ImportRequest
from quire.pipeline.importing.results import INDEX, WHAT, Execution, Imported, Listed, check_out, imported_parts
from quire.pipeline.importing.scratch import Scratch
from quire.pipeline.importing.tasks import IMPORT
from quire.pipeline.importing.writing import WriteTask, Written
from quire.pipeline.tasks import Runner, run_on
from quire.trace.schema import Outcome, RunInfo

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HOSTS_MAX = 10_000
EXECUTIONS_MAX = 1_000
"""Each is a run directory with files and tasks of its own."""
SET_APART = "lines.jsonl"
_TIME_END = 1 << 62


def import_logs(
    spark: SparkSession, files: Sequence[Path], out: Path, request: ImportRequest | None = None, *, force: bool = False,
    set_apart: Path | None = None,
) -> Imported:  # fmt: skip
    """Make a run directory of logs; or, where they hold several executions, a directory of run directories. With `set_apart`,
    lines that cannot be read are put in that new directory, and the others are imported.

    Raises Unusable (a BadInput that has all defects) where the logs contradict themselves, and BadInput for what cannot be
    read; then nothing is written.
    """
    wanted = request or ImportRequest()
    return import_with(run_on(spark, IMPORT), files, out, wanted, force=force, set_apart=set_apart)


def import_with(
    run: Runner, files: Sequence[Path], out: Path, request: ImportRequest, *, force: bool = False,
    set_apart: Path | None = None,
) -> Imported:  # fmt: skip
    """The same with any way to run tasks."""
    if set_apart is not None:
        request = msgspec.structs.replace(request, lenient=True)
        if set_apart.exists():
            raise BadInput(f"{set_apart} exists already; choose another name")
    check_out(out, force=force)
    plain = plain_files(files, request.skip_lines)
    if plain is not None:
        choose(plain, request)  # Before anything is written.
    with Staging(out, imported_parts, WHAT, force=force) as staging:
        with scratch_for(out) as work:
            plain = plain or unpacked_files(files, work.path / "plain", request.skip_lines)
            scratch = Scratch(str(work.path))
            scratch.prepare()
            done = _Import(run, scratch, plain, request, choose(plain, request)).perform(out, staging.path)
            if set_apart is not None and done.set_apart:
                _keep_apart(scratch, set_apart)
        staging.publish()
    return done


def _keep_apart(scratch: Scratch, directory: Path) -> None:
    """What could not be read, with file, line and reason, in one file."""
    with writing(directory):
        directory.mkdir(parents=True)
        with (directory / SET_APART).open("wb") as out:
            for path in sorted(Path(scratch.root, "records").glob("*.apart")):
                out.write(path.read_bytes())


class _Import:
    def __init__(self, run: Runner, scratch: Scratch, files: Sequence[Input], request: ImportRequest, choice: Choice) -> None:
        self.run, self.scratch, self.files, self.request, self.choice = run, scratch, files, request, choice
        self.source = Source(tuple(file.name for file in files), choice.format.unit(choice.settings))
        self.defects: list[Defects] = []
        self.skews: list[Skew] = []
        self.chunks: list[Chunk] = []

    def perform(self, out: Path, made: Path) -> Imported:
        """Make the run or the runs in `made`; they are told of as being in `out`."""
        in_one_piece = self.choice.format.in_one_piece(self.choice.settings)
        self.chunks = cut_files(self.files, 1 << 62 if in_one_piece else self.request.chunk_bytes)
        parsed = self._parse(self.chunks)
        self._check_mapping(parsed)
        labels, hosts, members = self._hosts_of(parsed)
        clocked = any(result.clocked for result in parsed)
        rows = self._gather(hosts, members, clocked)
        caused = not clocked and any(result.caused for result in parsed)
        stride = self._causes(hosts, members, clocked, caused)
        if caused:
            self._arrange(hosts, members, rows)
        messages = self._number(members, clocked)
        if not stride:
            self._stamp(hosts, members, clocked)
        executions = []
        for execution, (label, its_hosts) in enumerate(zip(labels, hosts, strict=True)):
            name = f"{execution + 1:04d}" if len(labels) > 1 else ""
            run_id = f"{PurePath(self.files[0].name).name}{'#' + str(execution + 1) if name else ''}"
            written = self._write(made / name, run_id, execution, its_hosts, members[execution], clocked, stride)
            done = Execution(
                directory=str(out / name), label=label, hosts=its_hosts, events=rows[execution], rows=written.rows,
                messages=messages[execution], deliveries=written.deliveries, links=written.links,
            )  # fmt: skip
            (made / name / "run.json").write_bytes(self._describe(run_id, done))
            executions.append(done)
        if len(executions) > 1:
            index = [Listed(Path(done.directory).name, done.label) for done in executions]
            (made / INDEX).write_bytes(msgspec.json.format(msgspec.json.encode(index)) + b"\n")
        found = gather(self.defects)
        counts = {str(kind): count for kind, count in sorted(found.counts.items())}
        return Imported(
            format=self.choice.name, executions=tuple(executions), defects=tuple(found.listed), defect_counts=counts,
            set_apart=sum(result.apart for result in parsed), notes=self._notes(parsed, executions), skews=tuple(self.skews),
        )  # fmt: skip

    def _parse(self, chunks: Sequence[Chunk]) -> list[Parsed]:
        """Every chunk, from where the one before it ended."""
        lines = [1 + self.request.skip_lines] * len(chunks)
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

    def _check_mapping(self, parsed: Sequence[Parsed]) -> None:
        """What was mapped must be there, at some event at least; and what cannot be understood is told."""
        used = {field for result in parsed for field in result.used}
        if missing := [field for field in self.request.columns if field not in used]:
            column = self.request.columns[missing[0]]
            raise BadInput(f"no event of {self.source.files[0]} has {column!r}, which --map says holds the {missing[0]}")
        for result, chunk in zip(parsed, self.chunks, strict=True):
            found = Defects([], {})
            for line, host, text in result.untimed_first:
                because = f"its time {text[:40]!r} is not understood"
                found.add(Defect(self.source.files[chunk.file], line, host, DefectKind.NO_TIME, because, self.source.unit))
            if result.untimed:
                found.counts[DefectKind.NO_TIME] = result.untimed
            self.defects.append(found)

    def _notes(self, parsed: Sequence[Parsed], executions: Sequence[Execution]) -> tuple[str, ...]:
        """Warn of hosts that have nothing to do with each other: most often, the columns that say so were not found."""
        if not any(len(done.hosts) > 1 for done in executions) or any(done.messages for done in executions):
            return ()
        hosts = max(len(done.hosts) for done in executions)
        unused = sorted({name for result in parsed for name in result.unused})
        columns = f"; these columns were not used: {', '.join(unused)}" if unused else ""
        return (f"there are {hosts} hosts, but no message, clock or cause links one with another{columns}",)

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
        found = len({label for result in parsed for label in result.executions})
        if found > EXECUTIONS_MAX:
            raise BadInput(
                f"there are {found:,} executions; the limit is {EXECUTIONS_MAX:,}. To import them as one, "
                "with the names of their events told apart, map the column to scope instead of execution"
            )
        if self.choice.format.delimited:
            labels = [""]
            for result in parsed:
                spread.append([len(labels) - 1, *range(len(labels), len(labels) + len(result.executions) - 1)])
                labels += result.executions[1:]
            return labels, spread
        numbers: dict[str, int] = {}
        spread += [[numbers.setdefault(label, len(numbers)) for label in result.executions] for result in parsed]
        return list(numbers) or [""], spread

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

    def _causes(
        self, hosts: Sequence[tuple[str, ...]], members: Sequence[Sequence[Member]], clocked: bool, caused: bool
    ) -> int:
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
                tuple(member.process for member in its), bucket, caused,
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

    def _arrange(self, hosts: list[tuple[str, ...]], members: list[list[Member]], rows: list[int]) -> None:
        """Find an order of the events that say only what they follow; lanes of them become hosts where none are named."""
        tasks = [
            ArrangeTask(
                self.scratch, self.source, execution, hosts[execution], tuple(member.process for member in its),
                hosts[execution] == (NOWHERE,),
            )
            for execution, its in enumerate(members)
        ]  # fmt: skip
        for execution, (task, done) in enumerate(zip(tasks, self.run(tasks), strict=True)):
            self.defects.append(done.defects)
            self.skews += done.skews
            rows[execution] -= done.dropped
            if task.lanes:
                hosts[execution] = tuple(f"lane-{number + 1}" for number in range(len(done.processes)))
                members[execution] = [Member(process, host, ()) for process, host in enumerate(hosts[execution])]

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
        return Written(*(sum(counts) for counts in zip(*map(msgspec.structs.astuple, results), strict=True)))

    def _describe(self, run_id: str, done: Execution) -> bytes:
        counts = gather(self.defects).counts
        settings: Mapping[str, object] = {
            "format": self.choice.name,
            "files": [PurePath(file.name).name for file in self.files],
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
