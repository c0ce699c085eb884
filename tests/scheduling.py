"""Which tests run, and which of them one process of the run takes together."""

from collections.abc import Iterable
from typing import Any
from zlib import crc32

import pytest
from xdist.scheduler import LoadGroupScheduling

# Their databases take long to fill, and last as long as all that use them.
BY_STORE = ("tests/integration/statements/", "tests/integration/benchmarks/")
# They use a server, a browser or environments that take seconds to start or to make.
BY_START = {
    "RabbitMQ": ("rabbitmq", "broker/test_exchanges", "scheduler/test_lost_messages"),
    "Chromium": tuple(f"dashboard/test_{name}" for name in ("in_browser", "small_app_page")),
    "a second Chromium": (
        *(f"dashboard/test_{name}" for name in ("form", "other_sites")),
        "web/test_refreshes",
    ),
    "environments": ("tests/packages/",),
    "other schedulers": ("interop/test_django_beat", "interop/test_apscheduler"),
}
# Where each store answers in its own way. Elsewhere a test proves the same on either.
ON_BOTH = (
    *("tests/integration/broker/", "tests/integration/statements/", "tests/integration/store/"),
    "tests/migration/",
)
STORES = ("sqlite", "postgresql")
# `make test-slow` runs these on the store that `make test` leaves out.
KERNEL = "tests/integration/scheduler/"
# What kills, freezes or restarts processes, a RabbitMQ, a browser; rare ground; seconds for each
# case: environments, simulated worlds, inputs of attackers, the consoles of all pages.
SLOW = (
    *("tests/acceptance/", "tests/packages/", "tests/worlds/", "tests/fuzz/", "test_storm"),
    *("rabbitmq", "broker/test_exchanges", "broker/test_whose_error", "benchmarks/test_benchmarks"),
    *(f"hostile/test_{name}" for name in ("corpus", "cut_sources", "downloads")),
    *("data/test_importing", "data/test_production", "data/test_query", "steps/test_new_data"),
    *("docs/test_examples", "statements/test_event_indexes"),
    *(f"dashboard/test_{name}" for name in ("form", "in_browser")),
    *(f"interop/test_{name}" for name in ("apscheduler", "django_beat", "move_back", "redbeat")),
    "tasks/test_hostile_chats",
    *(f"web/test_{name}" for name in ("behind_nginx", "django")),
    *("test_no_worker_loses_its_lease_to", "test_a_generator_finds_no_fault"),
    *("test_a_generated_client", "test_broken_rows"),
    *("behaves_like_debian_at_its_changes", "test_the_instants_of_random_rules_are_the_same"),
    *("test_no_change_of_any_zone_is_overlooked", "test_the_stretches_of_every_zone"),
)
# One case of each kind, which `make test` keeps.
KEPT = (
    "test_up_runs_the_demo_within_two_ticks",
    "test_two_daemons_at_once_send_each",
    "test_a_daemon_killed_between_sending_and_marking_sends_twice_and_runs_once",
    *("test_worker_contract.py::test_a_killed", "test_the_step_alone_whose_process_was_killed"),
    "test_it_is_recorded_sent_and_run_once_under_its_documented_id",
    "test_a_database_that_is_restarted_costs_no_lease_and_no_outcome",
    "test_what_is_due_while_the_disk_is_full_runs_once_there_is_room",
    "test_a_followed_task_runs_once_and_ends_on_record",
    "test_whatever_a_task_raises_itself_fails_it_and_is_no_loss_of_its_worker",
    "test_what_rabbitmq_confirmed_and_dropped_is_sent_again",
    *("test_the_keyboard_alone_writes_an_action", "test_an_action_is_made_run_and_cancelled"),
    "test_the_database_refuses_what_a_column_does_not_hold",
    "test_no_promise_is_broken_in_some_worlds",
    "test_no_input_breaks_a_promise[documents]",
    "test_a_benchmark_measures_something[sqlite-bench_due]",
    "test_no_small_file_exceeds_the_limits[0]",
    "test_a_list_that_is_cut_anywhere_is_not_imported",
    *("test_rows[", "test_parquet_keeps_its_types"),
    *("page_shows[README.md]", "test_an_output_that_differs"),
    *("test_entries_become_actions", "test_what_the_pages_load_is_found"),
    "behaves_like_debian_at_its_changes[2027]",
)


def is_rare(item: pytest.Item) -> bool:
    """Return whether a test is of SLOW, and none that `make test` keeps."""
    return _has_any(item.nodeid, SLOW) and not _has_any(item.nodeid, KEPT)


def is_of_another_day(item: pytest.Item, day: str) -> bool:
    """Return whether no tier runs a test this day: beside the kernel, each has one store a day."""
    return not item.nodeid.startswith(KERNEL) and is_on_the_other_store(item, day)


def is_on_the_other_store(item: pytest.Item, day: str) -> bool:
    """Return whether a test proves the same on either store, and the other one is of this day."""
    if not isinstance(item, pytest.Function) or item.nodeid.startswith(ON_BOTH):
        return False
    parameters = item.callspec.params if hasattr(item, "callspec") else {}
    its = parameters.get("store" if "store" in parameters else "settings")
    if its not in STORES or _names_its_store(item):
        return False
    return its != chosen_store(item.name.replace(its, ""), day)


def chosen_store(name: str, day: str) -> str:
    """Return the store on which a test runs this day."""
    return STORES[crc32(f"{day} {name}".encode()) % len(STORES)]


def _names_its_store(item: pytest.Function) -> bool:
    """Return whether the test itself says on which store it runs."""
    named = [str(mark.args[0]) for mark in item.iter_markers("parametrize")]
    return any("store" in one or "settings" in one for one in named)


class TogetherWhereItSaves(LoadGroupScheduling):  # type: ignore[misc]
    """Gives out one test at a time, but together those of BY_STORE and of BY_START.

    These are the largest and go first; the others follow in the order of their folders, so that
    what is long (`acceptance`) comes before what is short (`unit`). By place, not by the mark
    `xdist_group`: its name is lost under the newest pytest.
    """

    def _split_scope(self, nodeid: str) -> str:
        for folder in BY_STORE:
            if nodeid.startswith(folder):
                is_on_sqlite = "sqlite" in nodeid.partition("[")[2]
                return folder + ("sqlite" if is_on_sqlite else "postgresql")
        return next((its for its, parts in BY_START.items() if _has_any(nodeid, parts)), nodeid)


def _has_any(nodeid: str, parts: Iterable[str]) -> bool:
    return any(part in nodeid for part in parts)


def make_scheduler(config: Any, log: Any) -> TogetherWhereItSaves:
    """Return the scheduler of a run in several processes."""
    return TogetherWhereItSaves(config, log)
