"""Live groups whose members change: who may come in, who founds, whose commands are whose, and what a journal begins with."""

from __future__ import annotations

from tests.mutants.mutation import Mutation

FOUNDING = "tests/live/dynamic/test_founding.py"
STATES = "tests/live/dynamic/test_states.py"
SECURITY = "tests/live/dynamic/test_security.py"
SHORT = "tests/views/test_short_journals.py"

MUTATIONS = [
    Mutation(
        name="a certificate lets in whoever shows it",
        module="live/dynamic/connection.py",
        right="if self._settings.certificate_name(theirs.name) not in names:",
        wrong="if not names:",
        tests=(f"{SECURITY}::test_a_certificate_lets_in_only_whom_it_names",),
    ),
    Mutation(
        name="founders without journals do not wait for all",
        module="live/dynamic/joining.py",
        right="found_together=journal is None,",
        wrong="found_together=False,",
        tests=(
            f"{FOUNDING}::test_without_journals_founders_wait_for_all_because_none_can_know_that_it_was_not_started_before",
        ),
    ),
    Mutation(
        name="anybody with other settings keeps founders from beginning",
        module="live/dynamic/joining.py",
        right="return certain and (not self.founds or name in self.addresses)",
        wrong="return certain",
        tests=(f"{FOUNDING}::test_a_stranger_with_other_settings_does_not_keep_founders_from_beginning",),
    ),
    Mutation(
        name="nobody says that a caller is gone",
        module="live/dynamic/replica.py",
        right="        if view.senior == self._node.settings.me:\n",
        wrong='        if view.senior == "":\n',
        tests=(f"{STATES}::test_who_holds_a_lock_and_is_gone_holds_it_no_more",),
    ),
    Mutation(
        name="a short journal forgets what was not executed yet",
        module="views/restarting.py",
        right="            found.submitted = list(record.operations)\n",
        wrong="            found.submitted = []\n",
        tests=(f"{SHORT}::test_operations_that_nobody_has_executed_yet_survive_in_a_short_journal",),
    ),
    Mutation(
        name="a short journal forgets what was held",
        module="views/restarting.py",
        right="            found.runs = list(record.runs)\n",
        wrong="            found.runs = []\n",
        tests=(f"{SHORT}::test_what_is_held_and_not_delivered_survives_in_a_short_journal",),
    ),
]
