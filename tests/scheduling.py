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
    "RabbitMQ": (
        *("rabbitmq", "broker/test_exchanges", "packages/test_move_from_django"),
        "scheduler/test_lost_messages",
    ),
    "Chromium": (
        *(f"dashboard/test_{name}" for name in ("in_browser", "pictures", "small_app_page")),
        "web/test_django",
    ),
    "environments": ("tests/packages/",),
    "other schedulers": ("interop/test_django_beat", "interop/test_apscheduler"),
}
# What each store decides in its own way. The other tests of processes prove the same on either:
# each runs on one store, which its name chooses, so that both are used equally.
ON_BOTH = {
    "test_clock", "test_daemons", "test_database", "test_edits", "test_full",
    "test_killed_workers", "test_production", "test_releases",
}  # fmt: skip
# Of the tests in one process, those of what a step or a door does with its sources, mail,
# clients and time, and of what the doctor asks around it. The tests of claims, refreshes,
# publishing and lists put the same questions to both stores.
ON_EITHER = {
    "cli/test_doctor", "web/test_followers",
    "data/steps/test_refresh_sources", "data/steps/test_send_email",
    "data/steps/test_send_execsum", "tasks/test_secret_hooks", "tasks/test_subjects",
    "tasks/test_time_box", "web/dashboard/test_sign_in", "web/test_job_definitions",
    "web/test_limits", "web/test_warnings",
}  # fmt: skip
STORES = ("sqlite", "postgresql")


def is_on_the_other_store(item: pytest.Item) -> bool:
    """Return whether a test proves the same on either store, and this is the one to leave out."""
    if not isinstance(item, pytest.Function):
        return False
    is_of_processes = "tests/acceptance/" in item.nodeid
    fixture = "store" if is_of_processes else "settings"
    parameters = item.callspec.params if hasattr(item, "callspec") else {}
    place = item.path.with_suffix("").as_posix()
    is_on_either = (
        item.path.stem not in ON_BOTH
        if is_of_processes
        else place.endswith(tuple(f"tests/integration/{name}" for name in ON_EITHER))
    )
    if parameters.get(fixture) not in STORES or not is_on_either or _names_its_store(item):
        return False
    return parameters[fixture] != _chosen_store(item.name, str(parameters[fixture]))


def _chosen_store(name: str, its: str) -> str:
    """Return the same store for a test of either name."""
    return STORES[crc32(name.replace(its, "").encode()) % len(STORES)]


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
