"""The driver of an import: decides how to proceed, and runs the tasks of each stage."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

import msgspec

from quire.files.errors import writing
from quire.files.replacing import Staging, scratch_for
from quire.model.errors import BadInput
from quire.pipeline.codec import encode
from quire.pipeline.fingerprints import new_secret
from quire.pipeline.importing.arranging import ArrangeTask, Skew
from quire.pipeline.importing.building import TIME_END, NumberTask, Stamped, StampTask
from quire.pipeline.importing.choosing import Choice, choose
from quire.pipeline.importing.chunks import Chunk, cut_files
from quire.pipeline.importing.clocks import ResolveTask
from quire.pipeline.importing.defects import FATAL, Defect, DefectKind, Defects, Unusable, gather
from quire.pipeline.importing.executions import Runs, find_runs
from quire.pipeline.importing.formats import registry
from quire.pipeline.importing.gathering import GatherTask, Member, Source
from quire.pipeline.importing.inputs import Input, plain_files, unpacked_files
from quire.pipeline.importing.joining import CollectTask, JoinTask
from quire.pipeline.importing.lanes import LANES_FEW
from quire.pipeline.importing.mapping import NOWHERE
from quire.pipeline.importing.parsing import Counts, CountTask, Parsed, ParseTask
from quire.pipeline.importing.request import ImportRequest
from quire.pipeline.importing.results import INDEX, WHAT, Execution, Imported, Listed, check_out, imported_parts
from quire.pipeline.importing.scratch import Scratch
from quire.pipeline.importing.tasks import IMPORT
from quire.pipeline.importing.writing import WriteTask, Written
from quire.pipeline.tasks import Runner, run_here, run_on
from quire.trace.executions import write_executions
from quire.trace.schema import BY_TIMES, LOCAL_ORDER, Outcome, RunInfo

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SET_APART = "lines.jsonl"

_FEW_EVENTS = 1 << 20
_EVENTS_IN_CHUNK = 1 << 16
"""Approximate."""


def import_logs(
    spark: SparkSession, files: Sequence[Path], out: Path, request: ImportRequest | None = None, *, force: bool = False,
    set_apart: Path | None = None,
) -> Imported:  # fmt: skip
    """Convert logs into a run directory; or, if they hold several executions, into a directory of run directories, unless there
    are so many that they share one run. With `set_apart`, lines that cannot be read are written to that new directory, and the
    others are imported.

    Raises Unusable (a BadInput that holds all defects) if the logs contradict themselves, and BadInput if they cannot be read;
    then nothing is written.
    """
    wanted = request or ImportRequest()
    return import_with(run_on(spark, IMPORT), files, out, wanted, force=force, set_apart=set_apart)


def import_with(
    run: Runner, files: Sequence[Path], out: Path, request: ImportRequest, *, force: bool = False,
    set_apart: Path | None = None,
) -> Imported:  # fmt: skip
    """Like `import_logs`, with any task runner."""
    if set_apart is not None:
        request = msgspec.structs.replace(request, lenient=True)
        if set_apart.exists():
            raise BadInput(f"{set_apart} exists already; choose another name")
    check_out(out, force=force)
    plain = plain_files(files, request.skip_lines)
    if plain is not None:
        choose(plain, request)  # Raises errors before anything is written.
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
    """Write the lines that could not be read to one file, each with its file, line and reason."""
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
        self.timed: set[int] = set()
        """The runs in which events of a host that do not follow each other are in the order of their times."""
        self.crowded = False
        """Whether they are in some run because there would be too many lanes."""
        self.chunks: list[Chunk] = []
        self.buckets = 1
        """How many buckets the names of a run are cut into."""

    def perform(self, out: Path, made: Path) -> Imported:
        """Create the run or runs in `made`; reports refer to them as being in `out`."""
        in_one_piece = self.choice.format.in_one_piece(self.choice.settings)
        self.chunks = cut_files(self.files, 1 << 62 if in_one_piece else self.request.chunk_bytes)
        parsed = self._parse(self.chunks)
        self._check_mapping(parsed)
        runs = find_runs(
            parsed, self.scratch, delimited=self.choice.format.delimited, separate_max=self.request.separate_max
        )  # fmt: skip
        if not runs.hosts:
            raise BadInput(f"{self.source.files[0]} holds no events that {self.choice.name} finds")
        clocked = any(result.clocked for result in parsed)
        events = sum(part.rows for result in parsed for part in result.slices)
        self.buckets = min(self.request.tasks_max, 1 + events // len(runs.hosts) // self.request.bucket_events)
        rows = self._gather(runs, clocked)
        caused = not clocked and any(result.caused for result in parsed)
        stride = self._causes(runs, rows, clocked, caused)
        named = [0 if hosts == (NOWHERE,) else len(hosts) for hosts in runs.hosts]
        if caused:
            self._arrange(runs, rows)
        elif self.request.lanes:
            raise BadInput(f"--lanes is for events that say what they follow, and those of {self.source.files[0]} do not")
        messages = self._number(runs, rows, clocked)
        stamped = [] if stride else self._stamp(runs, rows, clocked)
        done = self._write(runs, made, clocked, stride)
        executions = tuple(
            Execution(
                directory=str(out / runs.name(number)), label=label, hosts=hosts, named=named[number], events=rows[number],
                rows=written.rows, messages=messages[number], deliveries=written.deliveries, links=written.links,
                together=len(runs.together),
            )
            for number, (label, hosts, written) in enumerate(zip(runs.labels, runs.hosts, done, strict=True))
        )  # fmt: skip
        found = gather(self.defects)
        for number, execution in enumerate(executions):
            described = self._describe(self._run_id(runs, number), execution, found, timed=number in self.timed)
            (made / runs.name(number) / "run.json").write_bytes(described)
        if runs.together:
            write_executions(made, runs.together, stamped[0].events, stamped[0].begins)
        if len(executions) > 1:
            index = [Listed(runs.name(number), label) for number, label in enumerate(runs.labels)]
            (made / INDEX).write_bytes(msgspec.json.format(msgspec.json.encode(index)) + b"\n")
        counts = {str(kind): count for kind, count in sorted(found.counts.items())}
        return Imported(
            format=self.choice.name, executions=executions, defects=tuple(found.listed), defect_counts=counts,
            set_apart=sum(result.apart for result in parsed), notes=self._notes(parsed, executions), skews=tuple(self.skews),
        )  # fmt: skip

    def _parse(self, chunks: Sequence[Chunk]) -> list[Parsed]:
        """Parse every chunk, starting where the previous one ended."""
        lines = [1 + self.request.skip_lines] * len(chunks)
        inside = [False] * len(chunks)
        if len(chunks) > len(self.files):
            counts: list[Counts] = self._near(len(chunks) * _EVENTS_IN_CHUNK)([CountTask(chunk) for chunk in chunks])
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
        """Check that every mapped column exists in at least one event, and report values that cannot be parsed."""
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
        """Warn about events that are in the order of their times, and about hosts that never communicate: most often, the
        columns that would show it were not found."""
        if self.crowded:
            advice = "; with every trace as an execution (--map execution=COLUMN) it may take few"
            takes_columns = "columns" in registry.find(self.choice.name).options
            return (
                f"events of a host that do not follow each other are in the order of their times, as if one of them had led to "
                f"the next: to keep them apart takes more than {LANES_FEW} lanes{advice if takes_columns else ''}",
            )
        if not any(len(done.hosts) > 1 for done in executions) or any(done.messages for done in executions):
            return ()
        hosts = max(len(done.hosts) for done in executions)
        unused = sorted({name for result in parsed for name in result.unused})
        columns = f"; these columns were not used: {', '.join(unused)}" if unused else ""
        return (f"there are {hosts} hosts, but no message, clock or cause links one with another{columns}",)

    def _gather(self, runs: Runs, clocked: bool) -> list[int]:
        secret = new_secret()
        tasks = [
            GatherTask(
                self.scratch, self.source, run, runs.hosts[run], chosen, clocked, bool(runs.together), self.buckets, secret
            )
            for run, its in enumerate(runs.members) for chosen in self._split(its)
        ]  # fmt: skip
        rows = [0] * len(runs.hosts)
        for task, result in zip(tasks, self.run(tasks), strict=True):
            rows[task.run] += result.rows
            self.defects.append(result.defects)
        self._stop_if_unusable()
        return rows

    def _causes(self, runs: Runs, rows: Sequence[int], clocked: bool, caused: bool) -> int:
        """Resolve the causes of events. Returns the stride of logical times that come from clocks; 0 if they do not."""
        if clocked:
            found = self.run([
                ResolveTask(self.scratch, self.source, run, runs.hosts[run], chosen)
                for run, its in enumerate(runs.members) for chosen in self._split(its)
            ])  # fmt: skip
            self.defects += [result.defects for result in found]
            self._stop_if_unusable()
            stride = 1 + max(result.causes_max for result in found)
            small = (max(result.sum_max for result in found) + 1) * stride < TIME_END
            return stride if small and not runs.together else 0
        joins = [
            JoinTask(self.scratch, self.source.files, self.source.unit, run, runs.hosts[run], runs.active(run), bucket, caused)
            for run in range(len(runs.hosts)) for bucket in range(self.buckets)
        ]  # fmt: skip
        run_tasks = self._near(sum(rows))
        self.defects += [result.defects for result in run_tasks(joins)]
        self._stop_if_unusable()
        run_tasks([
            CollectTask(self.scratch, run, tuple(member.process for member in chosen), self.buckets)
            for run, its in enumerate(runs.members) for chosen in self._split(its)
        ])  # fmt: skip
        return 0

    def _arrange(self, runs: Runs, rows: list[int]) -> None:
        """Find a local order for events that only name their causes; lanes of events become hosts, if need be."""
        tasks = [
            ArrangeTask(
                self.scratch, self.source, run, hosts, runs.active(run), hosts == (NOWHERE,) or self.request.lanes
            )
            for run, hosts in enumerate(runs.hosts)
        ]  # fmt: skip
        for run, (task, done) in enumerate(zip(tasks, self._near(sum(rows))(tasks), strict=True)):
            self.defects.append(done.defects)
            self.skews += done.skews
            rows[run] -= done.dropped
            if done.timed:
                self.timed.add(run)
            self.crowded = self.crowded or done.crowded
            if tuple(done.hosts) != task.hosts:
                runs.hosts[run] = tuple(done.hosts)
                runs.members[run] = [Member(process, host, ()) for process, host in enumerate(runs.hosts[run])]

    def _number(self, runs: Runs, rows: Sequence[int], clocked: bool) -> list[int]:
        tasks = [
            NumberTask(self.scratch, run, runs.active(run), tuple(member.process for member in chosen), clocked)
            for run, its in enumerate(runs.members) for chosen in self._split(its)
        ]  # fmt: skip
        messages = [0] * len(runs.hosts)
        for task, result in zip(tasks, self._near(sum(rows))(tasks), strict=True):
            messages[task.run] += result.messages
        return messages

    def _stamp(self, runs: Runs, rows: Sequence[int], clocked: bool) -> list[Stamped]:
        return self._near(sum(rows))([
            StampTask(self.scratch, self.source, run, hosts, runs.active(run), clocked, len(runs.together))
            for run, hosts in enumerate(runs.hosts)
        ])  # fmt: skip

    def _write(self, runs: Runs, made: Path, clocked: bool, stride: int) -> list[Written]:
        """Write all traces; returns the counts for each."""
        tasks = []
        for run, (hosts, members) in enumerate(zip(runs.hosts, runs.members, strict=True)):
            trace = made / runs.name(run) / "trace"
            trace.mkdir(parents=True)
            tasks += [
                WriteTask(
                    self.scratch, self.source, run, self._run_id(runs, run), hosts,
                    tuple(member.process for member in chosen), clocked, stride, str(trace),
                )
                for chosen in self._split(members)
            ]  # fmt: skip
        done = [Written(0, 0, 0) for _ in runs.hosts]
        for task, result in zip(tasks, self.run(tasks), strict=True):
            done[task.run].add(result)
        return done

    def _run_id(self, runs: Runs, run: int) -> str:
        name = PurePath(self.files[0].name).name
        return f"{name}#{run + 1}" if len(runs.hosts) > 1 else name

    def _describe(self, run_id: str, done: Execution, found: Defects, *, timed: bool) -> bytes:
        settings: dict[str, object] = {
            "format": self.choice.name,
            "files": [PurePath(file.name).name for file in self.files],
            "execution": done.label,
            "hosts": list(done.hosts),
            "defects": {str(kind): count for kind, count in sorted(found.counts.items())},
        }
        if done.together:
            settings["executions"] = done.together
        if timed:
            settings[LOCAL_ORDER] = BY_TIMES
        info = RunInfo(
            run=run_id, source="import", protocol="", options={}, members=len(done.hosts), groups={}, promises=(),
            settings=settings,
            outcome=Outcome(complete=not found.counts, messages=done.messages, deliveries=done.deliveries),
        )  # fmt: skip
        return msgspec.json.format(msgspec.json.encode(info)) + b"\n"

    def _near(self, events: int) -> Runner:
        """The runner for cheap tasks: in this process if there are few events, because starting a job would take longer."""
        return run_here(IMPORT) if events <= _FEW_EVENTS else self.run

    def _split(self, members: Sequence[Member]) -> list[tuple[Member, ...]]:
        tasks = min(self.request.tasks_max, len(members))
        return [tuple(members[task::tasks]) for task in range(tasks)]

    def _stop_if_unusable(self) -> None:
        found = gather(self.defects)
        if any(kind in FATAL for kind in found.counts):
            raise Unusable(found)
