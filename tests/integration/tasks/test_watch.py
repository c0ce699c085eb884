"""Processes that watch the verdict together: each change is told once, also without a database."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
import sqlalchemy as sa
from pydantic import SecretStr

from models.sql import database_now
from models.store import ticks as stored
from models.tables import notices, ticks
from processes.watch import Watcher
from runtime.config import Settings
from runtime.sections import AlertSettings
from tests.factories import make_action
from tests.mail_server import MailServer
from tests.servers import free_port
from tests.ticks import HOUR
from tests.transactions import act, clock_of, execute, fetched

OPS = "ops@example.com"


@pytest.fixture
def watched(settings: Settings, smtp: MailServer) -> Settings:
    return having(settings, smtp_url=SecretStr(smtp.url), alert=AlertSettings(mail=(OPS,)))


def having(settings: Settings, **changes: Any) -> Settings:
    return settings.model_copy(update=changes)


def last_tick(engine: sa.Engine, ago: timedelta) -> None:
    """Let the only tick have ended so long ago."""
    act(engine, stored.report, "one:1", clock_of(engine), 1.0, {})
    execute(engine, sa.update(ticks).values(finished_at=database_now(-ago)))


def subjects(smtp: MailServer) -> list[str]:
    return [str(message["Subject"]) for _, message in smtp.took]


def look_together(watchers: list[Watcher]) -> None:
    with ThreadPoolExecutor(len(watchers)) as pool:
        list(pool.map(Watcher.look, watchers))


def test_of_many_watchers_one_tells_and_one_tells_the_end(
    engine: sa.Engine, watched: Settings, smtp: MailServer
) -> None:
    last_tick(engine, HOUR)
    watchers = [Watcher(watched) for _ in range(4)]

    for _ in range(3):
        look_together(watchers)
    # A process that is new does not tell again.
    Watcher(watched).look()
    broken = subjects(smtp)
    last_tick(engine, timedelta(0))
    for _ in range(3):
        look_together(watchers)

    assert broken == ["[minutebook] ALERT: no daemon ticks: the last tick was by one:1"]
    assert subjects(smtp) == [*broken, broken[0].replace("ALERT", "RESOLVED")]


def test_what_could_not_be_delivered_is_tried_again_by_any_watcher(
    engine: sa.Engine, watched: Settings, smtp: MailServer
) -> None:
    last_tick(engine, HOUR)
    smtp.answers["ops"] = "451 not now"
    Watcher(watched).look()
    smtp.answers.clear()
    execute(engine, sa.update(notices).values(not_before=database_now(-1.0)))

    look_together([Watcher(watched) for _ in range(3)])

    rows = fetched(engine, sa.select(notices.c.state, notices.c.tries))
    assert [tuple(row) for row in rows] == [("done", 2)]
    assert len(subjects(smtp)) == 1


def test_a_database_that_is_away_is_told_once_by_the_process_itself(
    watched: Settings, smtp: MailServer
) -> None:
    nowhere = f"postgresql+psycopg://minutebook@127.0.0.1:{free_port()}/none"
    alert = watched.alert.model_copy(update={"broken_after_s": 0})
    watcher = Watcher(having(watched, database_url=SecretStr(nowhere), alert=alert))

    for _ in range(4):
        watcher.look()
    away = subjects(smtp)
    watcher.engine = Watcher(watched).engine
    for _ in range(2):
        watcher.look()

    assert len(away) == 1
    assert "cannot reach the database" in away[0]
    assert "reaches the database again" in subjects(smtp)[1]


def test_during_quiet_hours_nothing_is_told(
    engine: sa.Engine, watched: Settings, smtp: MailServer
) -> None:
    last_tick(engine, HOUR)
    now = clock_of(engine)
    hours = f"{now - HOUR:%H:%M}-{now + HOUR:%H:%M}"
    quiet = AlertSettings(mail=(OPS,), quiet_hours=hours)

    Watcher(having(watched, alert=quiet)).look()
    before = subjects(smtp)
    Watcher(watched).look()

    assert (before, len(subjects(smtp))) == ([], 1)


def test_what_no_tick_sends_for_two_minutes_is_delivered_without_the_broker(
    engine: sa.Engine, watched: Settings, smtp: MailServer
) -> None:
    without_admins = having(watched, alert=AlertSettings())
    app = notices.insert().values(
        id=uuid4(), small_app_id=1, action_uid=make_action(engine).uid, kind="run_ended",
        target={"kind": "mail", "to": "ann@example.com"},
        payload={"kind": "run_ended", "small_app": "default", "action": "a", "state": "failed"},
        state="owed", not_before=database_now(-60.0), created_at=database_now(),
    )  # fmt: skip
    execute(engine, app)

    Watcher(without_admins).look()
    before = subjects(smtp)
    execute(engine, sa.update(notices).values(not_before=database_now(-130.0)))
    look_together([Watcher(without_admins) for _ in range(3)])

    assert (before, subjects(smtp)) == ([], ["[minutebook] FAILED: a"])
