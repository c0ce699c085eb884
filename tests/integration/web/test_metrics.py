"""`/metrics`: each figure of the page, true over restarts, pruning and several daemons."""

import re
import shutil
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import sqlalchemy as sa
from prometheus_client.parser import text_string_to_metric_families

from models.roles import Role
from models.sql import read_clock
from models.store import facts, totals
from models.tables import deliveries, installation, notices, operation_logs, operations
from runtime.database import reading
from scheduler.counting import count_ended, tick_totals
from scheduler.loop import Daemon
from scheduler.tick import TickReport
from tests.factories import STEPS, update_operation
from tests.integration.web.conftest import APP, Web
from views.metrics import OTHER, Samples, quick_samples, slow_samples
from views.runs import run

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "metrics.md"
ROW = re.compile(r"^\| `(minutebook_\w+)` \| (\w+) \| (.*?) ?\| (.+?) \|$", re.M)
SETTLED = timedelta(seconds=totals.SETTLED_AFTER_S + 60)


def ended(web: Web, state: str = "success", took_s: float = 2.0) -> None:
    """Run the action `nightly`, and end its operation long enough ago to be counted."""
    shop = web.opened.for_request(APP, is_bound=True, bearer="tests")
    id = run(shop, "nightly").id
    with reading(web.engine) as connection:
        at = read_clock(connection) - SETTLED
    began = at - timedelta(seconds=took_s)
    ends = {"started_at": began.isoformat(), "finished_at": at.isoformat()}
    update_operation(web.engine, id, state="running", worker="w", heartbeat_at=at)
    update_operation(
        web.engine,
        id,
        state=state,
        recorded_at=began,
        started_at=began,
        first_started_at=began,
        finished_at=at,
        steps=[{"name": "maintenance", "state": "success", **ends}],
    )
    with web.engine.begin() as connection:
        one = {"operation_id": id, "step": "send_email", "recipient": "ann", "address": "a@b.c"}
        sent = {"message_id": "m", "state": "sent", "updated_at": at}
        connection.execute(sa.insert(deliveries).values(one | sent))


def begin_counting(web: Web) -> None:
    """Count from an hour ago, as if the installation stood so long."""
    count_ended(web.engine)
    with web.engine.begin() as connection:
        place = totals.Place.of(facts.fact(connection, totals.COUNTED_TO), read_clock(connection))
        hour = timedelta(hours=1)
        back = totals.Place(place.at - hour, place.id, place.others_at - hour)
        its = sa.update(installation).where(installation.c.key == totals.COUNTED_TO)
        connection.execute(its.values(value=back.text()))


def shown(web: Web) -> Samples:
    return quick_samples(web.opened)


def counted(found: Samples, name: str) -> dict[tuple[str, ...], float]:
    return {labels: value for labels, value in found.values[name].items() if value}


def test_the_page_lists_each_metric_with_its_type_labels_and_text(web: Web) -> None:
    begin_counting(web)
    ended(web)
    Daemon(web.engine, web.opened.settings, STEPS).tick_once()
    response = web.client(Role.VIEWER).get("/metrics")

    families = {one.name: one for one in text_string_to_metric_families(response.text)}
    for name, kind, labels, text in ROW.findall(PAGE.read_text(encoding="utf-8")):
        family = families.pop(name.removesuffix("_total"))
        assert (kind, text) == (family.type, family.documentation)
        given = {label for one in family.samples for label in one.labels} - {"le"}
        assert not given or given == set(re.findall(r"`(\w+)`", labels)), name
    assert {name.split("_")[0] for name in families} == {"process"}
    assert response.headers["content-type"].startswith("text/plain; version=")


@pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool of Prometheus is not here")
def test_promtool_finds_no_fault_in_the_exposition(web: Web) -> None:
    begin_counting(web)
    ended(web)
    Daemon(web.engine, web.opened.settings, STEPS).tick_once()
    text = web.client(Role.VIEWER).get("/metrics").content

    checked = subprocess.run(
        ["promtool", "check", "metrics"],
        input=text,
        capture_output=True,
        check=False,
    )
    assert (checked.returncode, checked.stdout + checked.stderr) == (0, b"")


def test_what_ended_is_counted_once_by_two_daemons_and_outlives_its_rows(web: Web) -> None:
    begin_counting(web)
    ended(web)
    ended(web, "failed", took_s=400)
    with reading(web.engine) as connection:
        seen_by_both = totals.next_page(connection)
    with web.engine.begin() as connection:
        assert totals.store_page(connection, seen_by_both)
    with web.engine.begin() as connection:
        assert not totals.store_page(connection, seen_by_both)
        for table in (operation_logs, deliveries, notices, operations):
            connection.execute(sa.delete(table))
    count_ended(web.engine)

    found = shown(web)
    ends = {(APP, "success"): 1, (APP, "failed"): 1}
    assert counted(found, "operations_ended_total") == ends
    assert counted(found, "deliveries_total") == {(APP, "sent"): 2}
    took = found.histograms["operation_duration_seconds"][("quick",)]
    assert took.counts == {5.0: 1, 900.0: 1}
    assert took.sum_s == 402
    assert set(found.histograms["step_duration_seconds"]) == {("maintenance",)}


def test_pages_count_each_operation_once(web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(totals, "PAGE", 2)
    begin_counting(web)
    for _ in range(5):
        ended(web)
    count_ended(web.engine)
    count_ended(web.engine)

    assert counted(shown(web), "operations_ended_total") == {(APP, "success"): 5}


def test_what_ended_a_moment_ago_waits_until_no_transaction_can_hide_another(web: Web) -> None:
    begin_counting(web)
    ended(web)
    with web.engine.begin() as connection:
        connection.execute(sa.update(operations).values(finished_at=read_clock(connection)))
    count_ended(web.engine)

    assert counted(shown(web), "operations_ended_total") == {}


def test_a_clock_that_was_set_back_stops_no_counting(web: Web) -> None:
    begin_counting(web)
    with web.engine.begin() as connection:
        ahead = read_clock(connection) + timedelta(days=400)
        place = totals.Place(ahead, totals.FIRST_ID, ahead)
        its = sa.update(installation).where(installation.c.key == totals.COUNTED_TO)
        connection.execute(its.values(value=place.text()))
    count_ended(web.engine)
    begin_counting(web)
    ended(web)
    count_ended(web.engine)

    assert counted(shown(web), "operations_ended_total") == {(APP, "success"): 1}


def test_what_alerts_watch_begins_at_zero(web: Web) -> None:
    found = shown(web).values

    assert found["occurrences_missed_total"][(APP,)] == 0
    assert found["operations_ended_total"][(APP, "failed")] == 0
    assert found["notices_total"][(APP, "failed")] == 0
    assert found["broker_errors_total"] == {(): 0}


def test_a_tick_adds_its_figures_in_the_transaction_of_its_report(web: Web) -> None:
    daemon = Daemon(web.engine, web.opened.settings, STEPS)
    daemon.tick_once()
    daemon.tick_once()

    found = shown(web)
    assert sum(found.histograms["tick_duration_seconds"][()].counts.values()) == 2
    assert found.values["daemon_up"] == {(): 1}
    assert found.values["last_tick_age_seconds"][()] < 60
    assert found.values["tick_work_total"][("decided",)] >= 1


def test_a_tick_counts_what_it_sent_and_that_the_broker_was_away() -> None:
    with_error = TickReport(datetime(2027, 1, 4, tzinfo=UTC), sent=3, broker_error="away")
    found = tick_totals(with_error, lag_s=0.02).amounts

    counted = {(key.name, key.label, key.part): by for key, by in found.items()}
    assert counted[("tick_work", "sent", "")] == 3
    assert counted[("broker_errors", "", "")] == 1
    assert counted[("tick_lag", "", "0.025")] == 1


def test_small_apps_beyond_the_most_share_a_series(web: Web) -> None:
    settings = web.opened.settings
    few = settings.web.model_copy(update={"metrics_apps": 1})
    web.opened.__dict__["settings"] = settings.model_copy(update={"web": few})

    apps = {labels[0] for labels in slow_samples(web.opened).values["actions"]}
    assert apps == {OTHER}


@pytest.mark.parametrize(
    ("role", "app", "status"),
    [
        pytest.param(None, None, 401, id="without_a_token"),
        pytest.param(Role.ADMIN, APP, 403, id="of_one_small_app"),
        pytest.param(Role.WORKER, None, 403, id="of_a_worker"),
        pytest.param(Role.VIEWER, None, 200, id="of_a_viewer"),
    ],
)
def test_the_figures_are_for_readers_of_the_installation(
    web: Web, role: Role | None, app: str | None, status: int
) -> None:
    assert web.client(role, app).get("/metrics").status_code == status


def test_answers_are_timed_by_route_and_never_by_path(web_on_sqlite: Web) -> None:
    web = web_on_sqlite
    client = web.client(Role.VIEWER)
    client.get("/api/actions/nightly", params={"app": APP})
    client.get("/no/such/path")
    client.request("BREW", "/healthz")
    text = client.get("/metrics").text

    routes = set(re.findall(r"http_request_duration_seconds_count\{(.+)\} \d", text))
    assert 'method="GET",route="/api/actions/{action}",status="2xx"' in routes
    assert 'method="GET",route="(none)",status="4xx"' in routes
    assert not any("no/such" in one or "BREW" in one for one in routes)


def test_a_database_that_is_away_shows_so(web_on_sqlite: Web) -> None:
    """A scrape whose statements time out: the token was still checked."""
    client = web_on_sqlite.client(Role.VIEWER)
    with web_on_sqlite.engine.begin() as connection:
        connection.execute(sa.text("ALTER TABLE totals RENAME TO gone"))
    text = client.get("/metrics").text

    assert "minutebook_database_up 0.0" in text
    assert "minutebook_operations{" not in text


def test_a_request_that_fails_unexpectedly_is_counted(
    web_on_sqlite: Web, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = web_on_sqlite.client()
    monkeypatch.setattr("views.status.look", lambda *_: 1 / 0)

    assert client.get("/api/status").status_code == 500
    counted = re.findall(r"duration_seconds_count\{(.+)\} 1\.0", client.get("/metrics").text)
    assert 'method="GET",route="/api/status",status="5xx"' in counted
