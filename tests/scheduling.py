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
# Where each store answers in its own way. Elsewhere a test proves the same on either.
ON_BOTH = (
    *("tests/integration/broker/", "tests/integration/statements/", "tests/integration/store/"),
    "tests/migration/",
)
STORES = ("sqlite", "postgresql")


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
