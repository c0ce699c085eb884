"""`/metrics`: each figure of the page; what ended is counted once, and outlives its rows."""

import re
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import sqlalchemy as sa
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families

import services.metrics
from data.store.tables import deliveries
from models.roles import Role
from models.store import ticks as stored
from models.tables import missed_spans, notices, operation_logs, operations, ticks
from runtime.clock import monotonic
from scheduler.loop import Daemon
from scheduler.tick import TickReport
from services.metrics import LONGEST, OTHER, SETTLED_AFTER, quick_samples, slow_samples, window
from services.runs import run
from tests.factories import STEPS, update_operation
from tests.integration.web.conftest import APP, Web, begin
from tests.integration.web.test_overview import missed
from tests.ticks import SECOND
from tests.transactions import act, clock_of, execute, fetched
from web.counters import Counters
from web.metrics import registry_of

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "metrics.md"
ROW = re.compile(r"^\| `(minutebook_\w+)` \| (\w+) \| (.*?) ?\| (.+?) \|$", re.M)
SETTLED = SETTLED_AFTER + timedelta(minutes=1)


def ended(web: Web, state: str = "success", took_s: float = 2.0) -> None:
    """Run the action `nightly`, and end its operation long enough ago to be counted."""
    id = run(web.shop, "nightly").id
    at = clock_of(web.engine) - SETTLED
    began = at - timedelta(seconds=took_s)
    ends = {"started_at": began.isoformat(), "finished_at": at.isoformat()}
    begin(web, id, began)
    steps = [{"name": "maintenance", "state": "success", **ends}]
    update_operation(web.engine, id, state=state, recorded_at=began, finished_at=at, steps=steps)
    one = {"operation_id": id, "step": "send_email", "recipient": "ann", "address": "a@b.c"}
    sent = {"message_id": "m", "state": "sent", "updated_at": at}
    execute(web.engine, sa.insert(deliveries).values(one | sent))


@dataclass
class Counting:
    """The counters of a web process that began some seconds ago."""

    web: Web
    age_s: float = 300.0

    def __post_init__(self) -> None:
        self.registry = CollectorRegistry()
        self.counters = Counters(self.registry, monotonic() - self.age_s)

    def catch_up(self) -> None:
        self.counters.catch_up(self.web.opened)

    def counted(self, name: str) -> dict[tuple[str, ...], float]:
        """Catch up; return the series of a metric that are not 0, by their labels."""
        self.catch_up()
        samples = (one for family in self.registry.collect() for one in family.samples)
        return {
            tuple(one.labels.values()): one.value
            for one in samples
            if one.name == f"minutebook_{name}" and one.value
        }


@pytest.fixture
def web(unserved: Web) -> Web:
    """What is counted is read without a server."""
    return unserved


@pytest.fixture
def counting(web: Web) -> Counting:
    return Counting(web)


def test_the_page_lists_each_metric_with_its_type_labels_and_text(site: Web) -> None:
    response = site.client(Role.VIEWER).get("/metrics")
    ended(site)
    Daemon(site.engine, site.opened.settings, STEPS).tick_once()
    settled = clock_of(site.engine) - SETTLED
    execute(site.engine, sa.update(ticks).values(finished_at=settled))
    registry, _ = registry_of(site.opened, monotonic() - 300)

    text = generate_latest(registry).decode()

    families = {one.name: one for one in text_string_to_metric_families(text)}
    for name, kind, labels, text in ROW.findall(PAGE.read_text(encoding="utf-8")):
        family = families.pop(name.removesuffix("_total"))
        assert (kind, text) == (family.type, family.documentation)
        given = {label for one in family.samples for label in one.labels} - {"le"}
        assert not given or given == set(re.findall(r"`(\w+)`", labels)), name
    assert {name.split("_")[0] for name in families} == {"process"}
    assert response.headers["content-type"].startswith("text/plain; version=")


def test_what_ended_is_counted_once_and_outlives_its_rows(web: Web, counting: Counting) -> None:
    ended(web)
    ended(web, "failed", took_s=400)
    counting.catch_up()
    counting.catch_up()
    for table in (operation_logs, deliveries, notices, operations):
        execute(web.engine, sa.delete(table))

    ends = {(APP, "success"): 1, (APP, "failed"): 1}
    assert counting.counted("operations_ended_total") == ends
    assert counting.counted("deliveries_total") == {(APP, "sent"): 2}
    assert counting.counted("operation_duration_seconds_sum") == {("quick",): 402}
    took = counting.counted("operation_duration_seconds_bucket")
    assert (took[("quick", "5.0")], took[("quick", "900.0")]) == (1, 2)
    assert counting.counted("step_duration_seconds_count") == {("maintenance",): 2}


def test_a_mail_counts_when_it_is_sent_or_fails(web: Web, counting: Counting) -> None:
    ended(web)
    counting.catch_up()
    # A retry of the operation, which does not send again.
    at = clock_of(web.engine) - SETTLED
    execute(web.engine, sa.update(operations).values(finished_at=at))
    counting.catch_up()

    assert counting.counted("deliveries_total") == {(APP, "sent"): 1}


def test_two_scrapes_at_once_count_an_end_once(web: Web, counting: Counting) -> None:
    ended(web)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: counting.catch_up(), range(8)))

    assert counting.counted("operations_ended_total") == {(APP, "success"): 1}


def test_a_scrape_that_fails_leaves_what_ended_to_the_next(web: Web, counting: Counting) -> None:
    ended(web)
    execute(web.engine, sa.text("ALTER TABLE notices RENAME TO gone"))
    with pytest.raises(sa.exc.SQLAlchemyError):
        counting.catch_up()
    execute(web.engine, sa.text("ALTER TABLE gone RENAME TO notices"))

    assert counting.counted("operations_ended_total") == {(APP, "success"): 1}


def test_what_ended_before_this_process_began_is_not_counted(web: Web) -> None:
    ended(web)

    assert Counting(web, age_s=0).counted("operations_ended_total") == {}


def test_missed_occurrences_count_with_and_without_operations(web: Web, counting: Counting) -> None:
    ended(web)
    row = fetched(web.engine, sa.select(operations)).mappings().one()
    missed(web, row["finished_at"])
    whose = {"action_uid": row["action_uid"], "revision": row["revision"], "reason": "too late"}
    instants = dict.fromkeys(("first_at", "last_at", "recorded_at"), row["finished_at"])
    execute(web.engine, sa.insert(missed_spans).values(count=4, **whose, **instants))

    assert counting.counted("occurrences_missed_total") == {(APP,): 5}


NOW = datetime(2027, 1, 4, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("counted_to", "expected"),
    [
        pytest.param(NOW - 45 * SECOND, (NOW - 45 * SECOND, NOW - SETTLED_AFTER), id="on_from_it"),
        pytest.param(NOW - 5 * SECOND, (NOW - 5 * SECOND, NOW - 5 * SECOND), id="nothing_yet"),
        pytest.param(
            NOW - timedelta(days=30),
            (NOW - SETTLED_AFTER - LONGEST, NOW - SETTLED_AFTER),
            id="not_the_whole_month",
        ),
        pytest.param(
            NOW + timedelta(days=400),
            (NOW - SETTLED_AFTER, NOW - SETTLED_AFTER),
            id="the_clock_was_set_back",
        ),
    ],
)
def test_each_reading_goes_on_where_the_last_one_ended(
    counted_to: datetime, expected: tuple[datetime, datetime]
) -> None:
    assert window(counted_to, NOW) == expected


def test_what_alerts_watch_begins_at_zero(site: Web) -> None:
    text = site.client(Role.VIEWER).get("/metrics").text

    assert f'minutebook_occurrences_missed_total{{app="{APP}"}} 0.0' in text
    assert f'minutebook_operations_ended_total{{app="{APP}",state="failed"}} 0.0' in text
    assert f'minutebook_notices_total{{app="{APP}",state="failed"}} 0.0' in text
    assert "minutebook_broker_errors_total 0.0" in text


def test_ticks_are_counted_by_what_they_report(web: Web, counting: Counting) -> None:
    daemon = Daemon(web.engine, web.opened.settings, STEPS)
    report = TickReport(NOW, sent=3, broker_error="away", lag_s=0.02, publish_s=0.3)
    for one in (daemon.tick_once(), report):
        act(web.engine, stored.report, "d", one.now, 5.0, one.figures())
    settled = clock_of(web.engine) - SETTLED
    execute(web.engine, sa.update(ticks).values(finished_at=settled))

    assert counting.counted("tick_duration_seconds_count") == {(): 3}
    assert counting.counted("tick_work_total")[("sent",)] >= 3
    assert counting.counted("broker_errors_total") == {(): 1}
    assert counting.counted("tick_lag_seconds_sum") == {(): 0.02}
    assert counting.counted("publish_duration_seconds_sum")[()] >= 0.3


def test_the_last_tick_is_shown_at_once(web: Web) -> None:
    Daemon(web.engine, web.opened.settings, STEPS).tick_once()

    found = quick_samples(web.opened).values
    assert found["daemon_up"] == {(): 1}
    assert found["last_tick_age_seconds"][()] < 60


def test_small_apps_beyond_the_most_share_a_series(
    web: Web, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(services.metrics, "MOST_APPS", 1)

    apps = {labels[0] for labels in slow_samples(web.opened).values["actions"]}
    assert apps == {OTHER}


def test_answers_are_timed_by_route_and_never_by_path(site: Web) -> None:
    client = site.client(Role.VIEWER)
    client.get("/api/actions/nightly", params={"app": APP})
    client.get("/no/such/path")
    client.request("BREW", "/healthz")
    text = client.get("/metrics").text

    routes = set(re.findall(r"http_request_duration_seconds_count\{(.+)\} \d", text))
    assert 'method="GET",route="/api/actions/{action}",status="2xx"' in routes
    assert 'method="GET",route="(none)",status="4xx"' in routes
    assert not any("no/such" in one or "BREW" in one for one in routes)


def test_a_database_that_is_away_shows_so(site: Web) -> None:
    """A scrape whose statements time out: the token was still checked."""
    client = site.client(Role.VIEWER)
    execute(site.engine, sa.text("ALTER TABLE ticks RENAME TO gone"))
    text = client.get("/metrics").text

    assert "minutebook_database_up 0.0" in text
    assert "minutebook_operations{" not in text
