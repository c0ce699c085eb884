"""What each test took when it ran last: seconds by node id, in `.pytest_cache/durations.json`.

`make test` and `make test-slow` add to one table.
"""

import json
from collections import defaultdict

import pytest


class Durations:
    """Adds up setup, call and teardown of each test, where the reports of all processes arrive."""

    def __init__(self, config: pytest.Config) -> None:
        self._file = config.rootpath / ".pytest_cache" / "durations.json"
        self._seconds: dict[str, float] = defaultdict(float)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Count a phase of a test."""
        self._seconds[report.nodeid] += report.duration

    def pytest_sessionfinish(self) -> None:
        """Write the table, the slowest test first; of a run without tests none."""
        if not self._seconds:
            return
        before = json.loads(self._file.read_text()) if self._file.exists() else {}
        slowest = sorted({**before, **self._seconds}.items(), key=lambda one: -one[1])
        self._file.parent.mkdir(exist_ok=True)
        self._file.write_text(json.dumps({id: round(took, 3) for id, took in slowest}, indent=0))
