"""Which tests one process of the run takes together."""

from typing import Any

from xdist.scheduler import LoadGroupScheduling

# Their databases take long to fill, and last as long as all that use them.
TOGETHER = ("tests/integration/statements/", "tests/integration/benchmarks/")


class TogetherWhereItSaves(LoadGroupScheduling):  # type: ignore[misc]
    """Gives out one test at a time, but what stands in a folder of TOGETHER by its store.

    These are the largest and go first; the others follow in the order of their folders, so that
    what is long (`acceptance`) comes before what is short (`unit`). By place, not by the mark
    `xdist_group`: its name is lost under the newest pytest.
    """

    def _split_scope(self, nodeid: str) -> str:
        folder = next((one for one in TOGETHER if nodeid.startswith(one)), None)
        if folder is None:
            return nodeid
        return folder + ("sqlite" if "sqlite" in nodeid.partition("[")[2] else "postgresql")


def make_scheduler(config: Any, log: Any) -> TogetherWhereItSaves:
    """Return the scheduler of a run in several processes."""
    return TogetherWhereItSaves(config, log)
