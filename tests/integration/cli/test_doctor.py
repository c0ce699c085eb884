"""`minutebook doctor` against real servers, sound and broken ones."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from threading import Event
from typing import Any

import pytest
import sqlalchemy as sa
from alembic import command
from pydantic import SecretStr

from cli.main import run
from models.store import actions as stored_actions
from models.store import key_values, schema, workers
from models.tables import action_state, actions
from runtime.clock import monotonic
from runtime.config import Settings
from runtime.database import make_engine
from scheduler.loop import Daemon
from services.doctor.report import Check, Checked, fault, look, ok
from tests.celery_messages import TASK, celery_action, follow_by_name
from tests.factories import STEPS, make_action
from tests.mail_server import mail_server
from tests.servers import Broker, PostgreSQL
from tests.ticks import MINUTE
from tests.transactions import act, execute, fetched

Examine = Callable[..., tuple[int, dict[str, list[dict[str, Any]]]]]
NOBODY = "127.0.0.1:1"


@pytest.fixture
def examine(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Examine:
    """Call `minutebook doctor --json`; return its exit code and what it found, by what."""
    for variable in [name for name in os.environ if name.startswith("SCHED_")]:
        monkeypatch.delenv(variable)
    settings.home.chmod(0o700)

    def examine(**environ: str) -> tuple[int, dict[str, list[dict[str, Any]]]]:
        own = {
            "SCHED_DATABASE_URL": settings.database_url.get_secret_value(),
            "SCHED_BROKER_URL": settings.broker_url.get_secret_value(),
            **environ,
        }
        with monkeypatch.context() as patch:
            for name, value in own.items():
                if value:
                    patch.setenv(name, value)
            code = run(["doctor", "--json", "--home", str(settings.home)])
        found: dict[str, list[dict[str, Any]]] = {}
        for one in json.loads(capsys.readouterr().out):
            found.setdefault(one["what"], []).append(one)
        return code, found

    return examine


def alive(engine: sa.Engine, settings: Settings, *queues: str) -> None:
    """Let a daemon tick and workers show themselves."""
    daemon = Daemon(engine, settings, steps=STEPS)
    daemon.prepare()
    daemon.tick_once()
    for queue in queues:
        worker = workers.Heartbeat(f"{queue}@here:1", queue, 1, 0.0, slots=1)
        act(engine, workers.beat, worker)


def levels(found: dict[str, list[dict[str, Any]]]) -> dict[str, str]:
    return {what: found[what][0]["level"] for what in found}


def test_a_sound_installation_has_no_fault(
    engine: sa.Engine, settings: Settings, examine: Examine
) -> None:
    make_action(engine, when={"cron_rule": "0 0 1 1 *", "timezone": "UTC"})
    alive(engine, settings, "quick")

    with mail_server() as server:
        code, found = examine(SCHED_SMTP_URL=server.url)

    faults = [one for each in found.values() for one in each if one["level"] == "fault"]
    assert (code, faults) == (0, [])
    assert set(found) >= {
        "settings", "home", "schema", "database", "clock", "time zones", "daemon", "workers",
        "retention", "actions", "broker", "mail",
    }  # fmt: skip
    told = "accepts and delivers messages; 0 in quick, 0 in heavy, 0 in default"
    assert found["broker"][0]["text"] == told
    assert server.took == []


def test_that_no_worker_lives_is_named_before_anything_waits(
    engine: sa.Engine, settings: Settings, examine: Examine
) -> None:
    alive(engine, settings)

    code, found = examine()

    (one,) = found["workers"]
    assert (code, one["text"]) == (1, "no worker is live")
    assert one["remedy"] == "start `minutebook worker --queues quick`"


def test_an_outdated_schema(engine: sa.Engine, examine: Examine) -> None:
    execute(engine, sa.text("UPDATE minutebook_version SET version_num = '0001_pre_first'"))

    code, found = examine()

    assert code == 1
    assert found["schema"][0]["level"] == "fault"
    assert found["schema"][0]["remedy"] == "run `minutebook migrate`"


def test_everything_down_is_told_in_bounded_time(settings: Settings, examine: Examine) -> None:
    started = monotonic()

    code, found = examine(
        SCHED_DATABASE_URL=f"postgresql://nobody@{NOBODY}/x",
        SCHED_BROKER_URL=f"redis://{NOBODY}/0",
        SCHED_SMTP_URL=f"smtp://{NOBODY}",
    )

    assert code == 1
    assert monotonic() - started < 20
    assert {what for what, level in levels(found).items() if level != "ok"} == {
        "database", "broker", "mail",
    }  # fmt: skip


def test_a_home_that_is_not_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = run(["doctor", "--home", str(tmp_path / "nowhere")])

    out = capsys.readouterr().out
    assert code == 1
    assert "fault    home" in out
    assert "fault    database    there is none yet" in out
    assert list(tmp_path.iterdir()) == []


def test_a_wrong_setting_is_a_fault(engine: sa.Engine, examine: Examine) -> None:
    code, found = examine(SCHED_WORKER_QUICK="none")

    assert code == 1
    assert "SCHED_WORKER_QUICK" in found["settings"][0]["text"]


def test_what_actions_need(engine: sa.Engine, settings: Settings, examine: Examine) -> None:
    hook = {"on_failure": [{"webhook": "https://example.com/"}]}
    make_action(engine, name="long", policy={"look_back": "P40D"}, hooks=hook)
    failed = make_action(engine, name="fails")
    broken = make_action(engine, name="broken")
    alive(engine, settings, "quick")
    act(engine, stored_actions.quarantined, broken.uid, "its document is broken")
    once = {"last_state": "failed", "failures_in_row": 1, "bad_runs_in_a_row": 1}
    execute(engine, sa.insert(action_state).values(action_uid=failed.uid, **once))

    code, found = examine(SCHED_RETENTION_OPERATIONS_DAYS="30")

    assert code == 1
    assert found["retention"][0]["text"] == "30 days, and an action looks back 40 days"
    assert found["hooks"][0]["remedy"] == "set SCHED_HOOK_SECRET"
    assert [one["text"] for one in (*found["quarantined"], *found["actions"])] == [
        "broken: quarantined: its document is broken", "2 unhealthy"
    ]  # fmt: skip


def test_what_is_not_as_it_should_be_is_named(
    engine: sa.Engine, settings: Settings, examine: Examine
) -> None:
    settings.home.chmod(0o755)
    act(engine, key_values.set_value, "tz_release", "2999z")

    found = examine(SCHED_WORKER_QICK="2")[1]

    wrong = {what: found[what][0]["level"] for what in ("home", "settings", "time zones")}
    assert wrong == {"home": "warning", "settings": "warning", "time zones": "fault"}
    assert found["home"][0]["remedy"] == f"chmod 700 {settings.home}"
    assert "did you mean SCHED_WORKER_QUICK?" in found["settings"][0]["text"]


def test_checks_that_hang_are_faults_and_the_others_are_told() -> None:
    never = Event()

    def hangs() -> list[Checked]:
        never.wait(30)
        return []

    checks: dict[str, Check] = {
        "hangs": hangs,
        "too": hangs,
        "works": lambda: [ok("works", "well")],
    }
    found = look(checks, 0.2)

    never.set()
    assert found == [
        fault("hangs", "hangs: no answer within 0.2 s", "is it reachable from here?"),
        fault("too", "too: no answer within 0.2 s", "is it reachable from here?"),
        ok("works", "well"),
    ]


def test_it_changes_nothing(engine: sa.Engine, settings: Settings, examine: Examine) -> None:
    make_action(engine)

    examine()

    assert act(engine, key_values.value, "doctor") is None
    assert len(fetched(engine, sa.select(actions)).all()) == 1


def test_tasks_of_the_user_s_own_are_allowed_and_followed_or_named(
    engine: sa.Engine, settings: Settings, examine: Examine
) -> None:
    celery_action(engine)

    _, refused = examine()
    _, unfollowed = examine(SCHED_CELERY_TASKS="shop.*")
    follow_by_name(engine, TASK)
    _, followed = examine(SCHED_CELERY_TASKS="shop.*")

    assert refused["celery tasks"][0]["level"] == "fault"
    assert f"{TASK} may not be sent" in refused["celery tasks"][0]["text"]
    (warned,) = unfollowed["celery tasks"]
    assert (warned["level"], TASK in warned["text"]) == ("warning", True)
    assert [one["level"] for one in followed["celery tasks"]] == ["ok"]
    # Nobody of ours need listen to a queue of theirs.
    assert not any("queue celery" in one["text"] for one in unfollowed["workers"])


def test_a_reference_that_cannot_be_read_here_is_named(
    engine: sa.Engine, examine: Examine, tmp_path: Path
) -> None:
    (tmp_path / "there").write_text("https://example.com/hooks/s3cret")
    hooks = [{"webhook": "env:CHAT_HOOK"}, {"webhook": f"file:{tmp_path / 'there'}"}]
    make_action(engine, hooks={"on_failure": hooks})

    allowed = {"SCHED_SECRETS_ENV": "CHAT_*", "SCHED_SECRETS_FOLDER": str(tmp_path)}
    _, found = examine(SCHED_HOOK_SECRET="file:/not/there", **allowed)

    told = [one["text"] for one in found["hooks"]]
    assert told == [
        "SCHED_HOOK_SECRET: file:/not/there cannot be read: No such file or directory",
        "env:CHAT_HOOK is not set; set the variable CHAT_HOOK for this worker",
    ]


def test_modules_of_steps_that_cannot_be_loaded_are_named(
    engine: sa.Engine, settings: Settings, examine: Examine, tmp_path: Path
) -> None:
    alive(engine, settings, "quick")
    (worker,) = act(engine, workers.live_workers, MINUTE)
    failures = {"there_not_here": "OSError: away"}
    act(engine, workers.note_step_failures, worker["name"], failures)

    code, found = examine(SCHED_STEP_MODULES="not_there_at_all")

    told = [one["text"] for one in (*found["step_failed"], *found["steps"])]
    assert code == 1
    assert f"worker {worker['name']} could not import there_not_here: OSError: away" in told
    assert any("module not_there_at_all failed to import" in text for text in told)


def test_the_broker_of_the_application_is_looked_at_too(
    engine: sa.Engine, settings: Settings, broker: Broker, examine: Examine
) -> None:
    there = examine(SCHED_CELERY_BROKER_URL=broker.url.replace("/0", "/1"))[1]
    away = examine(SCHED_CELERY_BROKER_URL=f"redis://{NOBODY}/0")[1]

    assert (levels(there)["celery broker"], levels(away)["celery broker"]) == ("ok", "fault")
    assert "celery broker" not in examine()[1]


def test_a_broker_that_removes_messages_when_it_is_full_is_a_warning(
    engine: sa.Engine, broker: Broker, examine: Examine
) -> None:
    def told(policy: str) -> list[str]:
        with broker.client() as client:
            client.config_set("maxmemory", "100mb")
            client.config_set("maxmemory-policy", policy)
        return [one["text"] for one in examine()[1]["broker"] if one["level"] == "warning"]

    try:
        assert told("allkeys-lru") == [
            "Redis removes messages when its memory is full (maxmemory-policy allkeys-lru)"
        ]
        assert told("volatile-lru") == []
    finally:
        with broker.client() as client:
            client.config_set("maxmemory", "0")
            client.config_set("maxmemory-policy", "noeviction")


def test_a_database_that_lacks_characters_is_a_warning(
    settings: Settings, postgresql: PostgreSQL, examine: Examine
) -> None:
    postgresql.execute("CREATE DATABASE latin ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0")
    url = postgresql.url("latin")
    engine = make_engine(settings.model_copy(update={"database_url": SecretStr(url)}))
    with engine.begin() as connection:
        for branch in schema.branches():
            command.upgrade(schema.config_of(branch, connection), "head")
    engine.dispose()

    _, found = examine(SCHED_DATABASE_URL=url)
    postgresql.execute("DROP DATABASE latin WITH (FORCE)")

    assert [one["text"] for one in found["database"] if one["level"] == "warning"] == [
        "it stores text as LATIN1, which lacks characters of names and texts"
    ]
