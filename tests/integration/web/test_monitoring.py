"""`deploy/monitoring/`: the alerts, the dashboard and the configuration, in a real Prometheus."""

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from models.roles import Role
from runtime.clock import wait_for
from tests.integration.web.conftest import Web
from tests.integration.web.test_metrics import PAGE, ROW
from tests.servers import free_port

ROOT = Path(__file__).parents[3]
MONITORING = ROOT / "deploy" / "monitoring"
HOW_TO = ROOT / "docs" / "how-to" / "watch-with-prometheus.md"
RULES = yaml.safe_load((MONITORING / "alerts.yml").read_text(encoding="utf-8"))["groups"][0][
    "rules"
]
DASHBOARD = json.loads((MONITORING / "dashboard.json").read_text(encoding="utf-8"))
needs_prometheus = pytest.mark.skipif(
    shutil.which("prometheus") is None or shutil.which("promtool") is None,
    reason="no prometheus and promtool on the PATH: install Debian's package prometheus",
)


def series() -> set[str]:
    """Return the names of all series on the page of metrics, which is what a server answers."""
    found = set()
    for name, kind, _labels, _text in ROW.findall(PAGE.read_text(encoding="utf-8")):
        parts = ("_bucket", "_sum", "_count") if kind == "histogram" else ("",)
        found |= {f"{name}{part}" for part in parts}
    return found


def expressions() -> list[str]:
    """Return every expression of the alerts and of the dashboard."""
    panels: list[dict[str, Any]] = DASHBOARD["panels"]
    shown = [target["expr"] for panel in panels for target in panel.get("targets", ())]
    return [rule["expr"] for rule in RULES] + shown


def test_alerts_and_dashboard_name_only_series_that_exist() -> None:
    named = {name for one in expressions() for name in re.findall(r"minutebook_\w+", one)}

    assert named - series() == set()
    assert len(named) > 30


def test_the_page_says_what_to_do_for_each_alert_and_no_other() -> None:
    """The link of each alert leads to its section."""
    page = HOW_TO.read_text(encoding="utf-8")
    sections = dict(re.findall(r"^### (Minutebook\w+)\n\n\*(\w+)\.\*", page, re.M))

    assert sections == {rule["alert"]: rule["labels"]["severity"] for rule in RULES}
    links = {rule["annotations"]["runbook_url"] for rule in RULES}
    assert links == {f"docs/how-to/{HOW_TO.name}#{name.lower()}" for name in sections}


@needs_prometheus
@pytest.mark.parametrize("what", [("check", "alerts.yml"), ("test", "alerts_test.yml")])
def test_promtool_finds_no_fault_in_the_rules(what: tuple[str, str]) -> None:
    command = ["promtool", what[0], "rules", str(MONITORING / what[1])]
    checked = subprocess.run(command, capture_output=True, text=True, check=False)

    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_each_alert_has_a_series_that_lets_it_fire() -> None:
    tests = yaml.safe_load((MONITORING / "alerts_test.yml").read_text(encoding="utf-8"))["tests"]

    assert {one["name"] for one in tests} == {rule["alert"] for rule in RULES} | {"all is well"}


@pytest.fixture
def prometheus(site: Web, tmp_path: Path) -> Iterator[httpx.Client]:
    """Start Prometheus with the configuration of the folder; yield a client of it."""
    web, port = site, free_port()
    text = (MONITORING / "prometheus.yml").read_text(encoding="utf-8")
    text = text.replace("127.0.0.1:8265", web.url.removeprefix("http://")).replace("15s", "1s")
    (tmp_path / "prometheus.yml").write_text(text)
    (tmp_path / "minutebook.token").write_text(web.token(Role.VIEWER) + "\n")
    shutil.copy(MONITORING / "alerts.yml", tmp_path)
    command = (
        *("prometheus", f"--config.file={tmp_path}/prometheus.yml"),
        *(f"--storage.tsdb.path={tmp_path}/data", f"--web.listen-address=127.0.0.1:{port}"),
    )
    with (tmp_path / "log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
        try:
            with httpx.Client(base_url=f"http://127.0.0.1:{port}/api/v1", timeout=10) as client:
                yield client
        finally:
            process.terminate()
            process.wait(30)


def asked(client: httpx.Client, expression: str) -> list[dict[str, Any]]:
    """Return the answer to an expression; nothing while Prometheus starts."""
    try:
        response = client.get("/query", params={"query": expression})
    except httpx.TransportError:
        return []
    answer: dict[str, Any] = response.json() if response.is_success else {}
    if answer.get("status") != "success":
        assert response.status_code == 503, response.text
        return []
    result: list[dict[str, Any]] = answer["data"]["result"]
    return result


@needs_prometheus
def test_a_real_prometheus_scrapes_it_and_evaluates_each_expression(
    prometheus: httpx.Client,
) -> None:
    def is_scraped() -> bool:
        return any(one["value"][1] == "1" for one in asked(prometheus, "minutebook_database_up"))

    assert wait_for(is_scraped, 60)

    for expression in expressions():
        filled = expression.replace("$job", "minutebook").replace("$__rate_interval", "1m")
        asked(prometheus, filled)
    # No daemon ticks here: the rules are evaluated, and this one waits for its two minutes.
    pending = 'ALERTS{alertname="MinutebookNotTicking"}'
    assert wait_for(lambda: asked(prometheus, pending) != [], 60)
    (one,) = asked(prometheus, pending)
    assert one["metric"]["alertstate"] == "pending"
