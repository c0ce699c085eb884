"""Several Celery applications on one installation: each has its broker, rules and findings."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
import sqlalchemy as sa

from broker.app import configure
from broker.celery_rules import rules_of
from models.errors import InvalidDocument
from models.store import presence
from models.store.actions.explain_facts import Status
from models.store.notices.alerting import NO_ALERTS
from models.trust import Trust
from runtime.config import Settings, load_settings
from runtime.database import reading
from scheduler.changes.change import Changed
from scheduler.explain.operation_text import waits
from scheduler.sweep import Sweeper
from scheduler.tick import TickReport, tick
from tests.celery_messages import celery_action, celery_messages
from tests.factories import STEPS, rows_of
from tests.servers import Broker
from views.doctor.celery import check_brokers, check_tasks

NOON = datetime(2027, 1, 4, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
CLEANUP = "celery.backend_cleanup"
NOWHERE = "redis://127.0.0.1:1/0"
SHOP = 7


@pytest.fixture
def shop(broker: Broker) -> str:
    """The URL of another database of the same Redis: the broker of the application `shop`."""
    with broker.client(SHOP) as client:
        client.flushdb()
    return broker.url.rpartition("/")[0] + f"/{SHOP}"


@pytest.fixture
def its(settings: Settings, shop: str) -> Iterator[Settings]:
    """Settings with a default application and `shop`."""
    yield using(settings, SCHED_CELERY_BROKERS_SHOP=shop)
    configure(settings)


def using(settings: Settings, **variables: str) -> Settings:
    """Configure applications by variables, as a deployment does."""
    given = {"SCHED_CELERY_TASKS": f"shop.*,{CLEANUP}", **variables}
    celery = load_settings(settings.home, given).celery
    made = settings.model_copy(update={"celery": celery})
    configure(made)
    return made


def cleaning(engine: sa.Engine, its: Settings, application: str | None = None) -> Changed:
    """Store an action, due at noon, that cleans up after an application."""
    named = {} if application is None else {"application": application}
    return celery_action(
        engine,
        name=f"clean {application}",
        since=NOON - MINUTE,
        step={"task": CLEANUP, **named},
        rules=rules_of(its),
    )


def run_tick(engine: sa.Engine) -> TickReport:
    return tick(engine, NOON, Sweeper(timedelta(seconds=45), NO_ALERTS), steps=STEPS)


def followed_by(engine: sa.Engine, application: str | None, task: str = CLEANUP) -> None:
    name = f"worker of {application}"
    seen = presence.Seen(name, "celery", 1, follows=[task], application=application)
    with engine.begin() as connection:
        presence.follower_seen(connection, seen)


def test_tasks_of_one_name_go_each_to_its_own_application(
    engine: sa.Engine, broker: Broker, its: Settings
) -> None:
    ours, theirs = cleaning(engine, its), cleaning(engine, its, "shop")

    report = run_tick(engine)

    (own,), (other,) = rows_of(engine, ours), rows_of(engine, theirs)
    (here,), (there,) = celery_messages(broker), celery_messages(broker, database=SHOP)
    assert report.sent == 2
    assert (here.headers["id"], there.headers["id"]) == (str(own["id"]), str(other["id"]))
    assert (own["queue"], other["queue"]) == ("celery", "celery@shop")
    assert (own["state"], other["state"]) == ("handed_over", "handed_over")


def test_a_broker_that_is_down_holds_up_the_tasks_of_its_application_only(
    engine: sa.Engine, broker: Broker, its: Settings
) -> None:
    its = using(its, SCHED_CELERY_BROKERS_CRM=NOWHERE, SCHED_CELERY_BROKERS_SHOP=_url(its, "shop"))
    waiting, sent = cleaning(engine, its, "crm"), cleaning(engine, its, "shop")

    report = run_tick(engine)

    assert (report.sent, report.broker_error) == (1, None)
    assert list(report.application_errors) == ["crm"]
    assert rows_of(engine, waiting)[0]["state"] == "pending"
    assert rows_of(engine, sent)[0]["state"] == "handed_over"
    found = {one.what: str(one.level) for one in check_brokers(its)}
    assert found == {"celery broker shop": "ok", "celery broker crm": "fault"}


def _url(its: Settings, name: str) -> str:
    return its.celery.brokers[name].broker_url.get_secret_value()


def test_a_worker_follows_the_tasks_of_the_application_that_it_names(
    engine: sa.Engine, broker: Broker, its: Settings
) -> None:
    followed_by(engine, "shop")
    ours, theirs = cleaning(engine, its), cleaning(engine, its, "shop")

    run_tick(engine)

    assert rows_of(engine, ours)[0]["state"] == "handed_over"
    assert rows_of(engine, theirs)[0]["state"] == "queued"


def test_a_worker_that_names_no_application_follows_those_of_each(
    engine: sa.Engine, broker: Broker, its: Settings
) -> None:
    followed_by(engine, None)
    theirs = cleaning(engine, its, "shop")

    run_tick(engine)

    (row,) = rows_of(engine, theirs)
    with reading(engine) as connection:
        listened = presence.listened_queues(connection, MINUTE)
    assert row["state"] == "queued"
    assert "no worker" not in waits(row, Status(None, listened), NOON, None)


def test_a_queue_without_workers_is_named_with_its_application(
    engine: sa.Engine, broker: Broker, its: Settings
) -> None:
    followed_by(engine, None)
    theirs = cleaning(engine, its, "shop")
    run_tick(engine)

    told = waits(rows_of(engine, theirs)[0], Status(None, frozenset()), NOON, None)

    assert told.endswith(
        "no worker listens to queue celery@shop; start a worker of your application"
    )


def test_the_default_application_may_have_a_name(
    engine: sa.Engine, broker: Broker, settings: Settings, shop: str
) -> None:
    named = using(settings, SCHED_CELERY_BROKERS_SHOP=shop, SCHED_CELERY_APPLICATION="shop")
    try:
        cleaning(engine, named)
        cleaning(engine, named, "shop")

        report = run_tick(engine)
    finally:
        configure(settings)

    assert (report.sent, len(celery_messages(broker, database=SHOP))) == (2, 2)


def test_a_named_default_application_is_found_by_its_name(
    engine: sa.Engine, broker: Broker, settings: Settings
) -> None:
    named = using(settings, SCHED_CELERY_BROKERS_CRM=NOWHERE, SCHED_CELERY_APPLICATION="crm")
    try:
        cleaning(engine, named)

        report = run_tick(engine)
        (found,) = check_brokers(named)
    finally:
        configure(settings)

    assert list(report.application_errors) == ["crm"]
    assert (found.what, found.remedy) == (
        "celery broker crm",
        "check SCHED_CELERY_BROKERS_CRM, and whether it runs",
    )


def test_an_application_that_the_settings_lost_fails_its_operations_by_name(
    engine: sa.Engine, broker: Broker, its: Settings
) -> None:
    theirs = cleaning(engine, its, "shop")
    using(its)

    run_tick(engine)

    (row,) = rows_of(engine, theirs)
    assert row["state"] == "failed"
    assert "its application 'shop' is not among the applications" in row["error"]
    assert celery_messages(broker) == []


@pytest.mark.parametrize(
    ("application", "says"),
    [
        ("shp", "is not among the applications of this installation (shop)"),
        ("Shop", "set SCHED_CELERY_BROKERS_SHOP to its broker"),
    ],
)
def test_an_unknown_application_is_refused_when_it_is_saved(
    engine: sa.Engine, its: Settings, application: str, says: str
) -> None:
    with pytest.raises(InvalidDocument, match=r"application") as refused:
        cleaning(engine, its, application)

    (problem,) = refused.value.problems
    assert (problem.path, problem.value) == ("operations.celery_task.application", application)
    assert says in problem.remedy


def test_each_application_may_have_a_list_of_tasks_of_its_own(
    settings: Settings, shop: str
) -> None:
    object_ = f'{{"broker_url": "{shop}", "tasks": ["crm.*"], "sep": ":"}}'
    made = using(settings, SCHED_CELERY_BROKERS_CRM=object_)
    configure(settings)

    rules = rules_of(made)

    assert (rules.allows("shop.a"), rules.allows("crm.a")) == (True, False)
    assert (rules.at("crm").allows("shop.a"), rules.at("crm").allows("crm.a")) == (False, True)
    assert made.celery.brokers["crm"].broker_options == {"sep": ":"}


def test_an_application_beside_the_default_one_is_for_trusted_small_apps(its: Settings) -> None:
    restricted = rules_of(its).within(Trust(tasks=("*",)))

    why = restricted.why_no_application("shop")

    assert "--trusted" in str(why)


def test_doctor_tells_the_tasks_of_applications_apart(
    engine: sa.Engine, broker: Broker, its: Settings
) -> None:
    followed_by(engine, "shop")
    plans = [_plan(engine, cleaning(engine, its, name)) for name in (None, "shop")]

    with reading(engine) as connection:
        (found,) = check_tasks(connection, its, plans)

    assert found.text == f"no worker follows {CLEANUP}: the result is unknown"


def test_doctor_names_a_worker_of_an_unknown_application(
    engine: sa.Engine, broker: Broker, its: Settings
) -> None:
    followed_by(engine, "Shop")

    with reading(engine) as connection:
        (found,) = check_tasks(connection, its, [])

    assert "for the application 'Shop', which is unknown" in found.text


def _plan(engine: sa.Engine, action: Changed) -> str:
    text = sa.text("SELECT plan FROM actions WHERE name = :name")
    with reading(engine) as connection:
        return str(connection.execute(text, {"name": action.name}).scalar_one())
