"""Journals: what is told from what, and what must be durable before what."""

from __future__ import annotations

from tests.mutants.mutation import Mutation

RECORDS = "tests/journal/test_records.py"
JOURNAL = "tests/journal/test_journal.py"
CRASHES = "tests/journal/test_crashes.py"
WRITER = "tests/journal/test_writer.py"

KILLED = f"{CRASHES}::test_what_a_process_reads_after_it_was_killed_is_not_lost_by_a_power_failure_later"
POWER = f"{CRASHES}::test_a_power_failure_at_any_step_loses_nothing_that_was_durable"

MUTATIONS = [
    Mutation(
        name="a number may be any, where a record is whole",
        module="journal/records.py",
        right="is not None and record.number == number:",
        wrong="is not None:",
        tests=(f"{RECORDS}::test_a_record_that_is_missing_is_damage_but_an_old_one_once_more_is_not",),
    ),
    Mutation(
        name="whatever is behind a bad record is cut off",
        module="journal/records.py",
        right='"damaged" if holds_record(data, offset, number) else "torn"',
        wrong='"torn"',
        tests=(f"{RECORDS}::test_every_damage_before_a_whole_record_is_found_where_it_is",),
    ),
    Mutation(
        name="an old record behind a torn one is damage",
        module="journal/records.py",
        right="if number <= _HEADER.unpack_from(data, offset)[2] < number + _MISSING_MAX and",
        wrong="if _HEADER.unpack_from(data, offset)[2] < number + _MISSING_MAX and",
        tests=(f"{RECORDS}::test_a_record_is_found_anywhere_in_a_long_tail",),
    ),
    Mutation(
        name="later segments do not show that an earlier one is damaged",
        module="journal/reading.py",
        right='if found.verdict == "damaged" or any(_holds_record(disk, name, number) for name in later):',
        wrong='if found.verdict == "damaged":',
        tests=(f"{JOURNAL}::test_whatever_is_missing_or_damaged_is_refused",),
    ),
    Mutation(
        name="what a checkpoint says again is taken for new",
        module="journal/reading.py",
        right="segment.records[segment.head or 0 :]",
        wrong="segment.records",
        tests=(POWER, f"{JOURNAL}::test_a_segment_without_its_snapshot_goes_on_from_the_one_before"),
    ),
    Mutation(
        name="a torn tail stays",
        module="journal/journal.py",
        right="disk.truncate(contents.torn.name, contents.torn.offset)",
        wrong="pass",
        tests=(f"{JOURNAL}::test_a_torn_tail_is_cut_off_and_said",),
    ),
    Mutation(
        name="what a killed process had not synced is read, and not synced either",
        module="journal/journal.py",
        right="            journal.sync()\n",
        wrong="",
        tests=(KILLED,),
    ),
    Mutation(
        name="files are deleted before the names of those that replace them are durable",
        module="journal/journal.py",
        right="            disk.sync_names()\n            _mend(disk, contents)\n",
        wrong="            _mend(disk, contents)\n",
        tests=(KILLED,),
    ),
    Mutation(
        name="a segment is begun before the one before it is durable",
        module="journal/journal.py",
        right="        self.sync()\n        point",
        wrong="        point",
        tests=(POWER,),
    ),
    Mutation(
        name="a segment is used before its name is durable",
        module="journal/journal.py",
        right="            self._file.sync()\n            self._disk.sync_names()\n",
        wrong="            self._file.sync()\n",
        tests=(POWER,),
    ),
    Mutation(
        name="a snapshot is renamed before it is durable",
        module="journal/journal.py",
        right="if unsynced >= _UNSYNCED_BYTES_MAX or not piece:",
        wrong="if unsynced >= _UNSYNCED_BYTES_MAX:",
        tests=(POWER,),
    ),
    Mutation(
        name="what a snapshot replaces is deleted before the snapshot's name is durable",
        module="journal/journal.py",
        right="            self._disk.rename(name + NEW, name)\n            self._disk.sync_names()\n",
        wrong="            self._disk.rename(name + NEW, name)\n",
        tests=(POWER,),
    ),
    Mutation(
        name="after a failure everything is tried again",
        module="journal/journal.py",
        right="if self._failure is not None:",
        wrong="if self._failure is not None and not self._failure:",
        tests=(f"{CRASHES}::test_after_a_write_or_a_sync_that_failed_nothing_more_is_written",),
    ),
    Mutation(
        name="records are said to be durable without a sync",
        module="journal/writer.py",
        right="            self._journal.sync()\n",
        wrong="            self._journal.synced = self._journal.last\n",
        tests=(f"{WRITER}::test_what_is_appended_while_the_disk_is_busy_is_one_write_and_one_sync",),
    ),
    Mutation(
        name="several processes may have a journal",
        module="journal/lock.py",
        right="fcntl.LOCK_EX | fcntl.LOCK_NB",
        wrong="fcntl.LOCK_SH | fcntl.LOCK_NB",
        tests=(f"{JOURNAL}::test_one_process_does_not_open_a_journal_twice",),
    ),
]
