"""Refreshes of a small app that stop in the middle until a test lets them go on."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Event, Thread
from typing import Any

import pytest

from data import snapshots
from data.settings import settings_in
from data.steps.publish import work as publishing
from services import changes
from services.apps import changes as app_changes
from services.apps import trust
from services.runs import run
from tasks.execute import run_attempt
from tasks.registry import Registry
from tests.integration.web.conftest import APP, Web

LONG_S = 30.0
DOMAINS = {name: {"source": {"file": f"{name}.csv"}} for name in ("orders", "shops")}
UPDATE = {
    "name": "update",
    "when": {"cron_rule": "0 3 * * *"},
    "operations": {"refresh": True, "publish": {"data": True}},
    "policy": {"expected": "PT2M"},
}


@dataclass
class Gate:
    """A place that a run reaches, and passes when it may."""

    reached: Event = field(default_factory=Event)
    may_pass: Event = field(default_factory=Event)

    def before(self, act: Callable[..., Any]) -> Callable[..., Any]:
        def gated(*given: Any, **named: Any) -> Any:
            self.reached.set()
            assert self.may_pass.wait(LONG_S)
            return act(*given, **named)

        return gated


@dataclass
class Refreshed:
    """A small app whose action refreshes two files and publishes them."""

    web: Web
    patch: pytest.MonkeyPatch

    def __post_init__(self) -> None:
        opened = self.web.opened
        settings_in(opened.settings).effective_data_root.mkdir(parents=True, exist_ok=True)
        trust.trust_app(opened, APP, trust.TrustChange(trusted=True))
        app_changes.apply(opened, [("", {"name": APP, "domains": DOMAINS})], dry_run=False)
        changes.add(self.web.shop, [UPDATE])
        for name in DOMAINS:
            self.write(name, 1)

    def write(self, name: str, rows: int) -> None:
        text = "id\n" + "".join(f"{number}\n" for number in range(rows))
        (settings_in(self.web.opened.settings).effective_data_root / f"{name}.csv").write_text(text)

    @contextmanager
    def running(self) -> Iterator[tuple[Gate, Gate]]:
        """Run the action in a thread; yield its gates before an import and the publish."""
        importing, moving = Gate(), Gate()
        settings = self.web.opened.settings
        with self.patch.context() as patch:
            patch.setattr(snapshots, "write", importing.before(snapshots.write))
            patch.setattr(publishing, "_publish", moving.before(publishing._publish))
            its = (run(self.web.shop, "update").id, 1)
            given = (self.web.engine, settings, Registry(), its, "tests")
            thread = Thread(target=run_attempt, args=given)
            thread.start()
            try:
                yield importing, moving
            finally:
                importing.may_pass.set()
                moving.may_pass.set()
                thread.join(LONG_S)
        assert not thread.is_alive()
