"""Limits of a small app, each at its edge: of what it has, and of what it does a day or minute."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from random import Random

import pytest
import sqlalchemy as sa

from data.mail.rates import AppRate
from data.steps import refresh, send_email
from data.steps.refresh import RefreshParameters
from data.steps.send_email import SendEmailParameters
from minutebook.steps import StepFailed
from models.errors import InvalidDocument, Refused
from models.sql import read_clock
from models.store import usage
from models.store.tenants import app_apply, app_limits
from models.store.usage import Used
from models.tables import app_usage
from models.tenant.document import parse_small_app
from runtime.database import reading
from runtime.sections.limits import LimitSettings
from scheduler.changes import change
from tests.factories import author, make_document
from tests.integration.data.steps.conftest import ANN, BEN, Work
from tests.web_source import Page, WebSource, web_source

MINUTE = timedelta(minutes=1)


@pytest.fixture
def web() -> Iterator[WebSource]:
    """A web server of data sources."""
    with web_source() as source:
        yield source


DOMAINS = {name: {"source": {"file": f"{name}.csv"}} for name in "abcd"}
MAIL = {"welcome": {"subject": "Hello", "text": "Dear {{ recipient.name }}"}}


def applied(engine: sa.Engine, limits: LimitSettings, **document: object) -> str:
    model = parse_small_app({"name": "default", **document})
    with engine.begin() as connection:
        return app_apply.apply_all(connection, [("it", model)], "tests", limits)[0].change


def first(count: int) -> dict[str, object]:
    return dict(list(DOMAINS.items())[:count])


def people(count: int) -> list[dict[str, str]]:
    return [{"id": f"user{number}@example.com"} for number in range(count)]


def spend(work: Work, what: Used, amount: int) -> None:
    with work.engine.begin() as connection:
        usage.spend(connection, work.app.id, what, amount)


def test_a_document_has_as_many_domains_as_the_limit_says(engine: sa.Engine) -> None:
    limits = LimitSettings(domains=2)

    assert applied(engine, limits, domains=first(2)) == "changed"
    with pytest.raises(InvalidDocument) as refusal:
        applied(engine, limits, domains=first(3))
    assert str(refusal.value) == (
        "it: domains: a small app may have at most 2 domains (SCHED_LIMITS_DOMAINS), and this "
        "would exceed it; leave some out, or raise the limit"
    )


def test_an_app_that_had_more_domains_keeps_them_and_gets_no_more(engine: sa.Engine) -> None:
    applied(engine, LimitSettings(domains=0), domains=first(3))
    limits = LimitSettings(domains=2)

    assert applied(engine, limits, domains=first(3), title="Shop") == "changed"
    with pytest.raises(InvalidDocument, match="SCHED_LIMITS_DOMAINS"):
        applied(engine, limits, domains=first(4))


def test_a_document_has_as_many_users_as_the_limit_says(engine: sa.Engine) -> None:
    limits = LimitSettings(users=2)

    assert applied(engine, limits, users=people(2)) == "changed"
    with pytest.raises(InvalidDocument, match=r"may have at most 2 users \(SCHED_LIMITS_USERS"):
        applied(engine, limits, users=people(3))
    assert applied(engine, limits, users=people(2), title="Shop") == "changed"


@pytest.mark.parametrize(("spent", "runs"), [(2 * MINUTE - MINUTE / 2, True), (2 * MINUTE, False)])
def test_a_refresh_runs_while_minutes_are_left(work: Work, spent: timedelta, runs: bool) -> None:
    work.apply(domains=first(1))
    work.write("a.csv", "id\n1\n")
    spend(work, Used.IMPORT_MS, spent // timedelta(milliseconds=1))
    context = work.context(RefreshParameters(), limits=LimitSettings(import_minutes=2))

    if runs:
        assert refresh.run(context).message == "rewrote a (1 row)"
        return
    with pytest.raises(StepFailed) as failure:
        refresh.run(context)
    assert failure.value.permanent
    assert str(failure.value) == (
        "the refreshes of this small app have used today's 2 minutes, in UTC "
        "(SCHED_LIMITS_IMPORT_MINUTES); refresh less often or fewer domains, or raise the limit"
    )


def test_the_time_of_a_refresh_is_counted_whatever_its_end(work: Work) -> None:
    work.apply(domains=first(1))

    with pytest.raises(StepFailed):
        refresh.run(work.context(RefreshParameters()))

    with reading(work.engine) as connection:
        assert usage.spent(connection, work.app.id, Used.IMPORT_MS) > 0


def test_a_refresh_whose_snapshot_has_no_room_fails_and_leaves_nothing(work: Work) -> None:
    work.apply(domains=first(2))
    drawn = Random(7)
    rows = "".join(f"{number},{drawn.random()}\n" for number in range(60_000))
    work.write("a.csv", f"id,x\n{rows}")
    work.write("b.csv", f"id,y\n{rows}")
    context = work.context(RefreshParameters(), limits=LimitSettings(disk_mb=1))

    with pytest.raises(StepFailed) as failure:
        refresh.run(context)
    again = work.context(RefreshParameters(), limits=LimitSettings(disk_mb=1))
    with pytest.raises(StepFailed):
        refresh.run(again)

    assert failure.value.permanent
    assert "the snapshots and downloads of small app 'shop' take 2 MiB, and may take 1" in str(
        failure.value
    )
    assert "(SCHED_LIMITS_DISK_MB)" in str(failure.value)
    held = [one.name for one in work.domains().values() if one.staging is not None]
    files = [*(work.settings.home / "snapshots").rglob("*.parquet")]
    assert len(files) == len(held) <= 1
    assert [*(work.settings.home / "scratch").rglob("*.parquet")] == []


def test_a_download_that_has_no_room_is_cut_off_and_removed(work: Work, web: WebSource) -> None:
    web.pages["/big.csv"] = Page(b"id\n" + b"1\n" * (3 * 2**20))
    work.apply(domains={"a": {"source": {"url": f"{web.url}/big.csv"}}})
    inside = work.settings.fetch.model_copy(update={"allow_private": True})
    limits = LimitSettings(disk_mb=1)
    context = work.context(RefreshParameters(), limits=limits, fetch=inside)

    with pytest.raises(StepFailed, match="SCHED_LIMITS_DISK_MB") as failure:
        refresh.run(context)

    assert failure.value.permanent
    assert [*(work.settings.home / "downloads").rglob("*.*")] == []


def test_a_small_app_may_have_another_limit_than_the_installation(work: Work) -> None:
    limits = LimitSettings(actions=5, disk_mb=7)
    with work.engine.begin() as connection:
        app_limits.set_own(connection, work.app.id, {"actions": 9, "users": 1})
        found = app_limits.limits_of(connection, limits, work.app.id)

    assert (found.actions, found.disk_mb, found.users) == (9, 7, limits.users)


@pytest.mark.parametrize(("more", "is_refused"), [(2, False), (3, True)])
def test_an_app_has_as_many_actions_as_the_limit_says(
    engine: sa.Engine, more: int, is_refused: bool
) -> None:
    by = replace(author(), most_actions=3)
    change.create_all(engine, [make_document(name="first")], by)
    documents = [make_document(name=f"action {number}") for number in range(more)]

    for store in (change.apply_all, change.create_all)[: 2 if is_refused else 1]:
        if not is_refused:
            assert len(store(engine, documents, by)) == more
            continue
        with pytest.raises(Refused) as refusal:
            store(engine, documents, by)
        assert str(refusal.value) == (
            "small app 'default' would have 4 actions, and may have 3 (SCHED_LIMITS_ACTIONS); "
            "delete some, or let an administrator run `minutebook app limit default --actions 4`"
        )
    assert change.apply_all(engine, [make_document(name="first", description="new")], by)


def test_mails_of_an_app_are_counted(work: Work) -> None:
    work.apply(templates=MAIL)
    parameters = SendEmailParameters(template="welcome")
    send_email.run(
        work.context(parameters, recipients=[ANN, BEN], limits=LimitSettings(messages=3))
    )

    with reading(work.engine) as connection:
        found = usage.all_spent(connection, read_clock(connection))
    assert found[Used.MESSAGES] == {work.app.id: 2}


def test_beyond_its_rate_an_app_s_mail_waits_for_the_next_minute(work: Work) -> None:
    asked: list[int] = []

    def should_stop() -> bool:
        asked.append(1)
        if len(asked) == 3:
            # As if the minute had gone by.
            with work.engine.begin() as connection:
                began = connection.execute(sa.select(app_usage.c.starts_at)).scalar_one()
                connection.execute(sa.update(app_usage).values(starts_at=began - MINUTE))
        return False

    limits = LimitSettings(messages=2)
    spend(work, Used.MESSAGES, 2)
    context = work.context(RefreshParameters(), should_stop=should_stop, limits=limits)
    recorded: list[str] = []

    assert AppRate(context, poll_s=0.001).wait(lambda: recorded.append("the last one"))

    assert len(asked) == 3
    assert recorded == ["the last one"]
    waits = "waits: its small app sends at most 2 messages a minute (SCHED_LIMITS_MESSAGES)"
    assert waits in {message for _, _, message in work.progress.reports}


def test_a_mail_that_waits_heeds_the_stop(work: Work) -> None:
    work.apply(templates=MAIL)
    spend(work, Used.MESSAGES, 2)
    context = work.context(
        SendEmailParameters(template="welcome"),
        recipients=[ANN],
        should_stop=lambda: True,
        limits=LimitSettings(messages=2),
    )

    assert "stopped" in str(send_email.run(context).message)


def test_limits_that_are_close_are_named(work: Work) -> None:
    work.apply(domains=first(4))
    spend(work, Used.IMPORT_MS, 8 * 60_000)
    spend(work, Used.MESSAGES, 7)
    limits = LimitSettings(domains=5, waiting=1, import_minutes=10, messages=9)

    with reading(work.engine) as connection:
        now = read_clock(connection)
        found = app_limits.close(connection, limits, now, work.app.id)
        none = app_limits.close(connection, LimitSettings(domains=0), now, work.app.id)

    # Seven of nine messages are not close.
    assert [(one.limit, one.used, one.most) for one in found] == [
        ("domains", 4, 5),
        ("import_minutes", 8, 10),
    ]
    assert none == []
