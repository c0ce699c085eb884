"""stop_sync_osm_atlas: a page that polls how fresh the data are, through every kind of run."""

import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from tests.acceptance.five_systems.table import Table
from tests.acceptance.installation import Installation
from tests.acceptance.processes import Process, until
from tests.acceptance.web_door import client, start_web
from tests.polling_page import ACTIVE_S, IDLE_S, PollingPage
from tests.web_source import Page, WebSource, web_source

LEASE_S = 4.0
SETTINGS = {"SCHED_FETCH_ALLOW_PRIVATE": "true", "SCHED_WORKER_LEASE_S": str(LEASE_S)}
ROWS = 400_000
# Slower than any test.
HELD = 60.0


class Pipeline:
    """The pipeline of a small app with two permalinks, its processes, and a page that polls."""

    def __init__(self, installation: Installation, source: WebSource) -> None:
        self.installation, self.source = installation, source
        installation.processes.environment = {**installation.processes.environment, **SETTINGS}
        for name in ("atlas", "osm"):
            self.serve(name, "first")
        domains = {one: {"source": {"url": f"{source.url}/{one}.csv"}} for one in ("atlas", "osm")}
        installation.cli("app", "add", self.file("app", {"name": "stops", "domains": domains}))
        hours = {"every": "PT24H"}
        update = {"name": "update", "operations": {"refresh": True, "publish": {"data": True}}}
        policy = {"expected": "PT150S"}
        document = self.file("update", {**update, "when": hours, "policy": policy})
        [added] = installation.cli("action", "add", document, "--app", "stops")
        self.uid = UUID(added["uid"])
        installation.tick()

    def file(self, name: str, document: dict[str, Any]) -> str:
        path = self.installation.file(f"{name}.json")
        path.write_text(json.dumps(document))
        return str(path)

    def serve(self, name: str, version: str, rows: int = 3, **how: Any) -> None:
        """Serve a permalink in a version, which its ETag names."""
        text = "id\n" + "".join(f"{number}\n" for number in range(rows))
        self.source.pages[f"/{name}.csv"] = Page(text.encode(), headers={"ETag": f'"{version}"'}, **how)

    def begin(self, name: str = "update") -> UUID:
        """Run the pipeline by hand."""
        ran = self.installation.cli("action", "run", name, "--app", "stops")
        return UUID(ran["id"])


@pytest.mark.parametrize("store", ["postgresql"])
def test_a_page_that_polls(installation: Installation, table: Table) -> None:
    with web_source() as source:
        pipeline = Pipeline(installation, source)
        _, address = start_web(installation)
        with client(installation, address, role="viewer") as (api,):
            page = PollingPage(api, "stops")
            worker = installation.worker("heavy")
            import pprint
            pprint.pprint(page.poll())
            pipeline.serve("osm", "first", 10, trickle_s=0.2)
            id = pipeline.begin()
            seen = []
            def poll():
                new = page.overlay() + (page.shown["run_type"], page.shown["eta_s"], page.shown["message"], page.shown["elapsed_s"])
                if new != seen[-1:]:
                    seen.append(new)
                return installation.row(id)["finished_at"] is not None
            until(poll, "ends")
            pprint.pprint(seen)
            pprint.pprint(page.poll())
            pipeline.serve("osm", "second", ROWS)
            id = pipeline.begin(); seen.clear()
            until(poll, "ends")
            pprint.pprint(seen)
            pprint.pprint(page.poll())
