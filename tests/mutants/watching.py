"""Wrong rules of what a process shows of itself, of who may look, and of the verdict that keeps up."""

from __future__ import annotations

from tests.mutants.mutation import Mutation

HTTP = "tests/http/test_server.py"
BOUNDS = "tests/watch/test_bounds.py"
FOLLOWED = "tests/watch/test_followed.py"
RECENT = "tests/watch/test_recent.py"
SERVICES = "tests/watch/test_following_services.py"

MUTATIONS: list[Mutation] = [
    Mutation(
        name="any name in Host will do",
        module="http/guard.py",
        right="if self._local and not _names_loopback(host):",
        wrong="if self._local and not host:",
        tests=(f"{HTTP}::test_what_other_sites_send_is_refused",),
    ),
    Mutation(
        name="a token is enough that begins like the right one",
        module="http/guard.py",
        right="if not compare_digest(given.encode(), self._token.encode()):",
        wrong="if not given.startswith(self._token):",
        tests=(f"{HTTP}::test_without_the_token_nothing_is_answered",),
    ),
    Mutation(
        name="connections are not counted",
        module="http/server.py",
        right="if len(self._connections) >= CONNECTIONS_MAX:",
        wrong="if len(self._connections) < 0:",
        tests=(f"{HTTP}::test_a_thousand_connections_are_refused_and_later_ones_are_served",),
    ),
    Mutation(
        name="a tail never forgets",
        module="trace/tail.py",
        right="while self._bytes > self._kept_bytes and len(self._chunks) > 1:",
        wrong="while self._bytes > 1000 * self._kept_bytes and len(self._chunks) > 1:",
        tests=(f"{BOUNDS}::test_a_tail_forgets_what_has_no_room_and_says_so",),
    ),
    Mutation(
        name="what is deferred does not hold back the logical time",
        module="trace/log.py",
        right="return min(lamport, self._records[LAMPORT] - 1) if self._records else lamport",
        wrong="return lamport",
        tests=(f"{BOUNDS}::test_what_is_not_settled_yet_holds_back_the_logical_time",),
    ),
    Mutation(
        name="a process that was not known is followed on",
        module="watch/followed.py",
        right="return known is None or self._lives_once or _resumes(heard)",
        wrong="return known is not None and (self._lives_once or _resumes(heard))",
        tests=(f"{FOLLOWED}::test_judging_begins_anew_with_a_process_that_was_not_known_or_not_waited_for",),
    ),
    Mutation(
        name="a member that resumes is followed on",
        module="watch/followed.py",
        right="return known is None or self._lives_once or _resumes(heard)",
        wrong="return known is None or self._lives_once",
        tests=(f"{FOLLOWED}::test_a_member_that_resumes_from_its_journal_may_deliver_again",),
    ),
    Mutation(
        name="what may still commit is blamed on its readers",
        module="pipeline/auditing/followed_transactions.py",
        right='event.words[OP] == "w" and event.words[TXN] not in ended}',
        wrong='event.words[OP] == "w" and not event.words[TXN]}',
        tests=(f"{SERVICES}::test_what_may_still_commit_is_no_violation_until_it_aborts",),
    ),
    Mutation(
        name="a window never forgets",
        module="pipeline/auditing/followed_window.py",
        right="if size <= self._room:",
        wrong="if size <= 1000 + self._room:",
        tests=(f"{SERVICES}::test_only_the_last_events_are_kept",),
    ),
    Mutation(
        name="of each object only the last version is kept",
        module="pipeline/auditing/followed_transactions.py",
        right="frontier.update(all_of[-2:])",
        wrong="frontier.update(all_of[-1:])",
        tests=(f"{SERVICES}::test_what_was_forgotten_raises_no_alarm_and_is_never_missed_in_silence",),
    ),
    Mutation(
        name="the order that forgotten transactions gave others is forgotten",
        module="pipeline/auditing/followed_transactions.py",
        right="near |= bit.get(each) or next_kept.get(each, 0)",
        wrong="near |= bit.get(each, 0)",
        tests=(f"{SERVICES}::test_what_was_forgotten_raises_no_alarm_and_is_never_missed_in_silence",),
    ),
    Mutation(
        name="who read a last version and is forgotten does not precede the next writer",
        module="pipeline/auditing/followed_transactions.py",
        right="after.setdefault(reader, set()).add(",
        wrong="after.setdefault(reader, set()).discard(",
        tests=(f"{SERVICES}::test_what_was_forgotten_raises_no_alarm_and_is_never_missed_in_silence",),
    ),
    Mutation(
        name="who reads a forgotten version does not precede later ones",
        module="pipeline/auditing/followed_transactions.py",
        right="old = first <= event.seq <= last and",
        wrong="old = first < 0 and",
        tests=(f"{SERVICES}::test_what_was_forgotten_raises_no_alarm_and_is_never_missed_in_silence",),
    ),
    Mutation(
        name="calls that are on their way are forgotten like others",
        module="pipeline/auditing/followed_calls.py",
        right="min([before, *under_way])",
        wrong="before",
        tests=(f"{SERVICES}::test_a_call_that_was_overtaken_long_ago_is_found",),
    ),
    Mutation(
        name="a member that stays excluded is waited for with the verdict",
        module="watch/left_behind.py",
        right="if now > then + WAIT_NS]",
        wrong="if now > then + 1000 * WAIT_NS]",
        tests=("tests/watch/test_left_behind.py",),
    ),
    Mutation(
        name="nobody is told that a forgotten version was read",
        module="pipeline/auditing/followed_transactions.py",
        right="if event.lamport > self._forgot_at:",
        wrong="if event.lamport < 0:",
        tests=(f"{SERVICES}::test_a_transaction_that_reads_what_was_overwritten_long_ago_is_found",),
    ),
    Mutation(
        name="a message of which nothing is known was sent when an earlier one was",
        module="watch/recent.py",
        right="return time_ns if seq < end else None",
        wrong="return time_ns",
        tests=(f"{RECENT}::test_messages_whose_sending_was_not_heard_of_are_not_measured_from_an_earlier_one",),
    ),
    Mutation(
        name="a delivery that is heard of before the sending is never measured",
        module="watch/recent.py",
        right="return not sent or seq >= sent[-1][1]",
        wrong="return False",
        tests=(f"{RECENT}::test_deliveries_that_are_heard_of_before_their_sending_are_measured_when_that_is",),
    ),
    Mutation(
        name="packets that are not drawn take the places of events that are",
        module="watch/recent.py",
        right="drawn = np.flatnonzero(records[:, KIND] != PACKET)",
        wrong="drawn = np.arange(len(records))",
        tests=(f"{RECENT}::test_the_last_events_that_are_drawn_have_no_gap",),
    ),
    Mutation(
        name="of a quiet process more of the past is drawn than of a busy one",
        module="watch/diagram.py",
        right="if mark.lamport >= since]",
        wrong="if mark.lamport >= 0]",
        tests=(f"{RECENT}::test_what_is_drawn_of_others_begins_where_that_of_the_busiest_does",),
    ),
]
