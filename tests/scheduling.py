"""Which tests one process of the run takes together."""

from typing import Any

from xdist.scheduler import LoadGroupScheduling

# Their databases take long to fill, and last as long as their module.
TOGETHER = ("tests/integration/statements/", "tests/integration/benchmarks/")


class ByModuleWhereItSaves(LoadGroupScheduling):  # type: ignore[misc]
    """Gives out one test at a time, but whole modules of what stands in TOGETHER.

    By place, not by the mark `xdist_group`: its name is lost under the newest pytest.
    """

    def _split_scope(self, nodeid: str) -> str:
        module = nodeid.partition("::")[0]
        return module if nodeid.startswith(TOGETHER) else nodeid


def make_scheduler(config: Any, log: Any) -> ByModuleWhereItSaves:
    """Return the scheduler of a run in several processes."""
    return ByModuleWhereItSaves(config, log)
