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
    "RabbitMQ": (*("rabbitmq", "broker/test_exchanges", "scheduler/test_lost_messages"),),
    "Chromium": (
        *(
            f"dashboard/test_{name}"
            for name in (
                "everyday_tasks",
                "in_browser",
                "pictures",
                "small_app_page",
            )
        ),
        "web/test_django",
    ),
    "a second Chromium": (
        *(f"dashboard/test_{name}" for name in ("form", "many_runs", "other_sites", "pauses")),
        "web/test_public_status",
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
# Rare ground, or seconds for each case: environments, simulated worlds, inputs of attackers, the
# consoles of all pages, pictures, other schedulers' tables, outages that few installations meet.
SLOW = (
    *("tests/packages/", "tests/worlds/", "tests/fuzz/", "benchmarks/test_benchmarks"),
    *(f"hostile/test_{name}" for name in ("corpus", "cut_sources", "downloads")),
    *("docs/test_examples", "docs/test_first_change"),
    *("dashboard/test_pictures", "test_every_page_is_sound", "test_no_page_loses_what_it_shows"),
    *("test_an_import_larger_than_its_memory", "behaves_like_debian_at_its_changes"),
    "test_the_instants_of_random_rules_are_the_same",
    *(f"interop/test_{name}" for name in ("apscheduler", "django_beat", "redbeat")),
    *(f"web/test_{name}" for name in ("behind_nginx", "django", "generated_client")),
    "test_a_generator_finds_no_fault",
    *(f"acceptance/test_{name}." for name in (
        "deployed_commands", "example_steps", "failover", "few_rights",
        "follow_confined", "follow_once", "follow_outage", "follow_phases", "followed_ends",
        "full", "killed_import", "killed_mail", "production", "quorum_queues", "read_only",
        "restore", "restore_instant", "rotation", "shared_broker", "standing", "systemd_notify",
        "walls", "went_back",
    )),
)  # fmt: skip
# One case of each kind, which `make test` keeps.
KEPT = (
    "test_beside_an_application_nothing_of_the_server_can_be_imported",
    "test_no_promise_is_broken_in_some_worlds[fixed]",
    "test_no_input_breaks_a_promise[documents]",
    "test_a_benchmark_measures_something[sqlite-bench_due]",
    *("test_the_corpus_has_hundreds_of_files", "test_no_small_file_exceeds_the_limits[0]"),
    "test_a_list_that_is_cut_anywhere_is_not_imported",
    *("page_shows[README.md]", "page_shows[docs/tutorial.md]", "test_an_output_that_differs"),
    *("test_each_kind_of_outcome", "test_entries_become_actions"),
    "test_what_the_pages_load_is_found",
    "test_what_is_due_while_the_disk_is_full_runs_once_there_is_room",
    "test_whatever_a_task_raises_itself_fails_it_and_is_no_loss_of_its_worker",
    "behaves_like_debian_at_its_changes[2027]",
    *("test_every_page_is_sound[1440]", "test_the_admin_lists_edits_and_deletes"),
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
