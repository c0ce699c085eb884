"""The attacks of hostile editors, and of the servers and files that they name: `make attack`.

The table in docs/dev/attacks.md is made from this list; `--table` prints it.
"""

import re
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
HEADING = ("| number | attack | what holds | test |", "|---|---|---|---|")


@dataclass(frozen=True, slots=True)
class Attack:
    """One attack: what is tried, what holds, and the tests that make it."""

    number: str
    tried: str
    holds: str
    tests: tuple[str, ...]


ATTACKS = [
    Attack(
        "A1", "a document names another app's file, connection, reader or secret",
        "it is refused when saved",
        ("test_a_new_small_app_reaches_its_own_folder_alone",),
    ),
    Attack(
        "A2", "the trust was taken back after the save, or the row was written by SQL",
        "the operation fails before it reads",
        ("test_a_source_beyond_a_restricted_app_is_not_read",),
    ),
    Attack(
        "A3", "a link inside the app's folder leads out of it", "it is not followed",
        ("test_a_source_beyond_a_restricted_app_is_not_read",),
    ),
    Attack(
        "A4", "a user-defined step of a restricted app", "it is refused, and does not run",
        ("test_a_step_of_users_does_not_run_for_a_restricted_app",),
    ),
    Attack(
        "A5", "a Celery task or queue that the app was not given, or a task of Minutebook's own",
        "it is refused, and not sent",
        ("test_a_task_that_its_small_app_may_no_longer_send_is_not_sent",
         "test_our_own_tasks_are_never_allowed"),
    ),
    Attack(
        "A6", "a secret is put into a header for another server",
        "it is sent to its own hosts only",
        ("test_a_bound_secret_goes_to_its_hosts_alone",),
    ),
    Attack(
        "A7", "a hook of a restricted app calls a secret URL, such as the installation's own, a "
        "private address or a chat, or mails without end", "nothing is sent",
        ("test_mail_of_a_hook_stays_below_the_ceiling",
         "test_a_webhook_behind_a_secret_is_not_called_for_a_restricted_app",
         "test_a_webhook_goes_to_no_private_address_for_a_restricted_app",
         "test_the_installation_s_own_receiver_is_not_lent_to_a_hook"),
    ),
    Attack(
        "A8", "a webhook of one app is replayed in another's name, or at another receiver",
        "its signature does not match", ("test_the_page_verifies_what_we_sign",),
    ),
    Attack(
        "A9", "the id of another app's action or operation, given with `--app`",
        "it is unknown, and nothing changes", ("test_another_small_app_is_unknown",),
    ),
    Attack(
        "A10", "`maintenance` of an app", "it prunes nothing of the installation",
        ("test_a_small_app_prunes_nothing_of_the_installation",),
    ),
    Attack(
        "A11", "an editor's token asks over HTTP for another app, for trust, for the installation",
        "the other app does not exist for it, and trust is not its to give",
        ("test_a_token_of_another_small_app_learns_nothing",
         "test_each_role_may_do_what_the_table_says",
         "test_an_editor_cannot_trust_or_make_small_apps"),
    ),
    Attack(
        "A12", "a command of a restricted app, or one that is not allowed, by another path, "
        "variable or folder",
        "it is refused, and does not run",
        ("test_a_program_has_to_be_allowed_at_save_and_at_run",
         "test_no_program_runs_for_a_restricted_small_app",
         "test_no_other_text_allows_a_program_or_a_variable"),
    ),
    Attack(
        "A13", "headers of a task's message that make the broker copy it into other queues",
        "they are refused", ("test_a_mistake_is_answered",),
    ),
    Attack(
        "A14", "a follower's token, or a worker at the socket, takes, renews or ends an operation "
        "of another app, task or kind", "it is refused, and nothing changes",
        ("test_an_operation_of_another_kind_is_not_touched",
         "test_a_task_that_its_small_app_may_not_send_is_not_touched",
         "test_a_task_beyond_the_token_or_the_setting_is_not_touched",
         "test_a_token_for_jobs_follows_nothing_and_one_for_tasks_gets_no_job"),
    ),
    Attack(
        "A15", "a worker's token reports a job that another worker holds, by what a viewer sees",
        "its lease has a random part that nothing shows",
        ("test_a_lease_cannot_be_guessed_from_what_a_viewer_sees",
         "test_no_list_log_or_state_shows_a_lease",
         "test_jobs_that_are_taken_together_have_leases_of_their_own"),
    ),
    Attack(
        "A16", "headers of a task that are larger than a frame of RabbitMQ, which then hangs up",
        "they are refused when saved, and never written",
        ("test_headers_together_are_bounded",
         "test_headers_that_one_frame_cannot_hold_fail_their_task_and_no_other"),
    ),
    Attack(
        "A17", "a task is sent to a key that Celery's library keeps in Redis, or Minutebook",
        "it is refused when saved", ("test_a_name_that_kombu_keeps_is_refused",),
    ),
    Attack(
        "A18", "a task is sent to another program's key in Redis",
        "its operation fails; the key stays, and all other tasks are sent",
        ("test_a_key_that_is_no_queue_fails_the_task_sent_there_and_no_other",),
    ),
    Attack(
        "B1", "241 hostile files: bombs in CSV, JSON, Parquet, gzip and zstd, endless cells, "
        "thousands of columns", "no child exceeds its memory or time; the worker goes on",
        ("test_no_small_file_exceeds_the_limits",
         "test_what_the_audit_found_ends_by_a_limit_that_is_named"),
    ),
    Attack(
        "B2", "`Content-Encoding: gzip, gzip, gzip`", "it is refused unread",
        ("test_a_packed_response_is_refused_unread",),
    ),
    Attack(
        "B3", "a document of escapes, comments or unknown names without end",
        "it is refused in linear time",
        ("test_a_hostile_text_is_refused_in_linear_time",
         "test_values_without_end_are_refused_in_seconds"),
    ),
    Attack(
        "B4", "a template that multiplies text, loops without end or reaches into Python",
        "it is refused when saved, by a child process with limits",
        ("test_what_templates_cannot_do_is_refused_at_once",
         "test_an_odd_template_is_a_problem_and_no_traceback",
         "test_a_template_that_makes_half_a_character_is_refused"),
    ),
    Attack(
        "B5", "a mail server that answers without end, a byte at a time, or never",
        "it has the time and the size of one answer",
        ("test_an_answer_without_end_is_cut_off",
         "test_an_answer_that_trickles_has_the_time_of_one_answer"),
    ),
    Attack(
        "B6", "broken messages in a queue, and those of other tasks",
        "they are rejected and logged once; no worker ends",
        ("test_no_broken_message_ends_a_worker",
         "test_a_task_that_we_do_not_know_is_rejected_and_logged_once"),
    ),
    Attack(
        "B7", "`celery control shutdown` of an application that shares the broker",
        "it reaches no worker",
        ("test_no_control_command_of_an_application_reaches_our_workers",),
    ),
    Attack(
        "B8", "a follower sends an impossible process id, or a worker with the name of one of ours",
        "it is refused, or has no effect",
        ("test_a_worker_with_an_impossible_pid_is_refused",
         "test_a_worker_does_not_take_the_name_of_one_of_ours"),
    ),
    Attack(
        "B9", "a row of another scheduler's database that no library could have written",
        "the row is reported, and the others are imported",
        ("test_a_row_that_only_sqlite_takes_does_not_end_the_import",),
    ),
    Attack(
        "B10", "fifty viewers download a snapshot of millions of rows, and read nothing",
        "few are served at a time, by child processes; the memory of the web process stays",
        ("test_viewers_who_read_nothing_cost_no_memory",
         "test_a_download_ends_with_its_viewer"),
    ),
    Attack(
        "B11", "a source that is cut at any byte: a file, a packed file, an answer of a server",
        "it fails, and nothing of it is imported",
        ("test_a_list_that_is_cut_anywhere_is_not_imported",
         "test_a_parquet_file_that_is_cut_anywhere_is_not_imported",
         "test_lines_are_imported_only_up_to_an_end",
         "test_a_packed_file_that_is_cut_anywhere_is_not_imported",
         "test_an_answer_that_ends_early_is_not_read"),
    ),
    Attack(
        "B12", "an editor sends previews and imports, more than the server has threads",
        "workers have threads of their own, and keep their leases; pages wait",
        ("test_no_worker_loses_its_lease_to_the_requests_of_an_editor",),
    ),
    Attack(
        "B15", "a program that shares Redis sets a key with the name of a queue of Minutebook's",
        "the workers try every three seconds, log a line a minute, and go on once the key is gone",
        ("test_a_key_in_the_place_of_a_queue_costs_a_line_a_minute_and_ends_with_the_key",),
    ),
    Attack(
        "B14", "an editor adds actions, or refreshes data, without end",
        "an app has so many actions and so much disk; a refresh beyond it leaves nothing",
        ("test_an_app_has_as_many_actions_as_the_ceiling_says",
         "test_a_refresh_whose_snapshot_has_no_room_fails_and_leaves_nothing",
         "test_a_download_that_has_no_room_is_removed"),
    ),
    Attack(
        "C1", "an encoded word in a name or subject that holds headers, recipients or a body",
        "the mail has its own headers alone, or is not sent",
        ("test_a_name_or_a_subject_adds_nothing",
         "test_what_the_library_lets_through_is_refused"),
    ),
    Attack(
        "C2", "a web server with control characters for the terminal in its reason or headers",
        "its text is not passed on",
        ("test_the_reason_of_a_web_server_is_not_passed_on",
         "test_an_answer_that_is_no_http_has_an_error_of_ours"),
    ),
    Attack(
        "C3", "escapes, bidirectional marks and line breaks in errors, messages and log lines",
        "they are escaped where they are stored, logged and printed",
        ("test_every_column_for_errors_escapes_what_it_takes",
         "test_a_log_line_is_one_line",
         "test_a_test_mail_that_nobody_took_is_a_failure_whose_answer_hides_nothing"),
    ),
    Attack(
        "C4", "a source or a redirect to an address of the inside",
        "it is refused before the connection",
        ("test_neither_a_source_nor_a_redirect_reaches_an_address_of_the_inside",),
    ),
    Attack(
        "C10", "a receiver, chat or monitor that answers without end, too slowly or by a redirect",
        "little is read, nothing follows, and the deadline ends it",
        ("test_a_body_without_end_is_not_read", "test_headers_without_end_are_refused",
         "test_a_body_and_a_secret_go_to_no_other_server",
         "test_a_ping_of_the_daemon_is_redirected_nowhere",
         "test_a_ping_of_the_daemon_reads_no_body",
         "test_what_carries_a_secret_is_redirected_nowhere",
         "test_an_answer_without_end_is_read_in_part",
         "test_headers_without_end_are_no_delivery",
         "test_the_child_of_an_answer_that_drips_is_killed_at_the_deadline",
         "test_a_redirect_is_no_delivery_and_is_not_followed",
         "test_a_private_address_needs_the_setting",
         "test_no_other_module_holds_an_http_client"),
    ),
    Attack(
        "C15", "a source, a receiver or a connection whose host is a name of the inside",
        "no error says to which address the name leads",
        ("test_no_request_says_to_which_address_a_name_leads",
         "test_no_connection_says_to_which_address_its_host_leads",
         "test_addresses_alone_are_hidden"),
    ),
    Attack(
        "C16", "the tag of a base image is moved to another image",
        "one command pins every image by its digest, and what was pinned stays",
        ("test_the_command_of_the_page_pins_each_image_by_its_digest",),
    ),
    Attack(
        "C11", "an error or a name of an app that mentions all of a chat, or hides a link",
        "the chat shows it as text",
        ("test_what_a_text_holds_mentions_nobody_and_hides_no_link",),
    ),
    Attack(
        "C5", "FIFOs, devices, hard links, a file swapped between check and read",
        "it is refused, or the checked file is read",
        ("test_all_else_is_refused_at_once",
         "test_what_is_swapped_in_meanwhile_is_never_read"),
    ),
    Attack(
        "C6", "a secret URL that is broken in every way", "no error shows a part of it",
        ("test_a_secret_url_never_shows",),
    ),
    Attack(
        "C7", "a page of another origin sends a change with a visitor's cookie", "it is refused",
        (
            "test_a_change_comes_from_a_page_of_ours",
            "test_a_page_of_another_origin_changes_nothing_in_chromium",
        ),
    ),
    Attack(
        "C12", "a link of another site that asks for a change", "no GET changes anything",
        ("test_no_get_changes_anything",),
    ),
    Attack(
        "C13", "a cookie that was changed, has ended, or whose token was revoked; a used link",
        "it opens nothing",
        ("test_a_cookie_that_was_changed_opens_nothing", "test_a_cookie_ends_with_its_token",
         "test_a_browser_is_signed_in_for_twelve_hours",
         "test_the_text_of_a_used_link_signs_no_cookie"),
    ),
    Attack(
        "C14", "hundreds of requests of one token that wait for a job",
        "the token has 50; those of others wait", ("test_a_token_holds_fifty_requests_open",),
    ),
    Attack(
        "C8", "a request that names another host", "no redirect leads there",
        ("test_a_path_with_a_slash_too_many_is_not_found",
         "test_no_redirect_leads_to_another_server"),
    ),
    Attack(
        "C9", "requests without a token that are aborted in their body",
        "no traceback fills the log", ("test_no_aborted_request_logs_a_traceback",),
    ),
]  # fmt: skip


def table() -> list[str]:
    """Return the lines of the table of all attacks."""
    return [*HEADING, *(f"| {' | '.join(_cells(one))} |" for one in ATTACKS)]


def _cells(attack: Attack) -> tuple[str, ...]:
    tests = ", ".join(f"`{name}`" for name in attack.tests)
    return attack.number, attack.tried, attack.holds, tests


@dataclass
class Outcomes:
    """How each test ended, by its name: a plug-in of pytest."""

    seen: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note the outcome of a test, or of what it needs."""
        if report.when == "call" or report.outcome != "passed":
            self.seen[report.nodeid.partition("::")[2].partition("[")[0]].add(report.outcome)


def carried_out(
    attacks: Sequence[Attack], seen: Mapping[str, set[str]]
) -> Iterator[tuple[bool, str]]:
    """Yield of each attack whether it was held, and its line."""
    for one in attacks:
        outcomes = set().union(*(seen.get(name, {"not run"}) for name in one.tests))
        is_held = "passed" in outcomes and outcomes <= {"passed", "skipped"}
        how = "held" if is_held else f"BROKEN: {', '.join(sorted(outcomes))}"
        yield is_held, f"{one.number}  {one.tried}: {how}"


def places() -> dict[str, str]:
    """Return the node of each test, by its name."""
    return {
        name: f"{file}::{name}"
        for file in sorted(TESTS.rglob("test_*.py"))
        for name in re.findall(r"^def (test_\w+)", file.read_text(encoding="utf-8"), re.M)
    }


def main() -> int:
    """Run the tests of all attacks, and print a line for each; return 1 if one was not held."""
    outcomes, known = Outcomes(), places()
    nodes = sorted({known[name] for one in ATTACKS for name in one.tests})
    pytest.main(["-q", "--no-header", "-n", "2", "-m", "not storm", *nodes], plugins=[outcomes])
    told = list(carried_out(ATTACKS, outcomes.seen))
    for _, line in told:
        print(line)
    broken = sum(not is_held for is_held, _ in told)
    print(f"{len(told)} attacks, {broken} not held")
    return 1 if broken else 0


if __name__ == "__main__":
    if "--table" in sys.argv:
        print("\n".join(table()))
        sys.exit(0)
    sys.exit(main())
