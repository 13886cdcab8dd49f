"""Traces: the parts that processes leave, and the run that is made of them."""

from __future__ import annotations

from tests.mutants.mutation import Mutation

COLLECTING = "tests/live/test_trace.py"
PARTS = "tests/trace/test_parts.py"
LAST_KNOWN = f"{COLLECTING}::test_what_a_crashed_process_is_known_to_have_sent_is_delivered_to_its_last_message_and_no_further"

MUTATIONS = [
    Mutation(
        name="what a client sent and did not record is missing in the numbers of its groups",
        module="trace/parts/survey.py",
        right="self._find_unrecorded() if Guarantee.MEMBERSHIPS in self.identity.promises else {}",
        wrong="{}",
        tests=("tests/trace/test_unrecorded.py::test_numbers_are_right_where_a_sender_did_not_record_what_others_delivered",),
    ),
    Mutation(
        name="the last message that a crashed process is known to have sent is left out",
        module="trace/parts/survey.py",
        right="[covered] <= ends[run[covered]]",
        wrong="[covered] < ends[run[covered]]",
        tests=(LAST_KNOWN,),
    ),
    Mutation(
        name="whatever is after a message that a crashed process has sent was sent",
        module="trace/parts/survey.py",
        right="            known[of_origin] = covered\n",
        wrong="            known[of_origin] = run >= 0\n",
        tests=(LAST_KNOWN,),
    ),
    Mutation(
        name="a run is whole although a part of it ends early",
        module="live/runs/collecting.py",
        right="complete=everything and not survey.ended_early,",
        wrong="complete=everything,",
        tests=(f"{COLLECTING}::test_a_process_that_is_still_running_leaves_a_run_that_is_not_whole",),
    ),
    Mutation(
        name="a piece that was delivered out of the middle of a run was sent with the next",
        module="live/runs/collecting.py",
        right='np.searchsorted(firsts, of_origin[:, FIRST], side="right") - 1]',
        wrong="np.minimum(np.searchsorted(firsts, of_origin[:, FIRST]), len(firsts) - 1)]",
        tests=(f"{COLLECTING}::test_every_piece_of_a_run_counts_from_when_it_was_sent",),
    ),
    Mutation(
        name="parts of other runs are taken for parts of this one",
        module="trace/parts/runs.py",
        right="return part.description.identity.run, part.process, part.description.incarnation",
        wrong="return part.description.identity.run, part.process, 0",
        tests=(f"{COLLECTING}::test_of_the_runs_in_a_directory_the_latest_is_collected",),
    ),
    Mutation(
        name="a frame is used although its checksum is another",
        module="trace/parts/frames.py",
        right="if len(body) < length or _checksum(kind, body) != checksum:",
        wrong="if len(body) < length:",
        tests=(f"{PARTS}::test_records_of_which_a_byte_was_changed_are_not_used",),
    ),
    Mutation(
        name="what is read on from a place counts its rows from the beginning",
        module="trace/parts/reader.py",
        right="        pos = since.rows\n",
        wrong="        pos = 0\n",
        tests=(f"{PARTS}::test_rows_that_are_read_on_from_a_place_are_numbered_on",),
    ),
]
