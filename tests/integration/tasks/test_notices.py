"""What an end owes, to whom it goes, and that it goes at least once."""

import hashlib
import hmac
import json
import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import sqlalchemy as sa

from cli.main import run
from models.operation import OperationState
from models.sql import read_clock
from models.store import installation_facts, retention
from models.store import notices as stored
from models.store.notices.alerting import NO_ALERTS
from models.store.operations.end import Outcome
from models.store.operations.end import end as write_end
from models.store.people import users
from models.tables import action_state, notices
from models.users import UserModel, parse_users
from runtime.config import Settings, load_settings
from runtime.database import reading
from runtime.sections import AlertSettings
from scheduler.sweep import dispatch_notices
from tasks.execute import run_attempt
from tasks.notices import deliver
from tests.attempts import claim, key_of
from tests.docs.pages import text_of
from tests.factories import make_operation
from tests.integration.tasks.crew import Crew
from tests.mail_server import mail_server
from tests.receiver import Receiver, receiver
from tests.servers import Broker
from tests.told import told_as

NOON = datetime(2027, 1, 4, 12, tzinfo=UTC)
HOOK = {"webhook": "https://example.com/hooks"}
MAIL = {"mail": "ann@example.com"}


pytestmark = pytest.mark.usefixtures("own_steps")


@pytest.fixture
def web() -> Iterator[Receiver]:
    with receiver() as server:
        yield server


@pytest.fixture
def crew(engine: sa.Engine, settings: Settings) -> Crew:
    return Crew(engine, settings)


def with_settings(settings: Settings, **values: Any) -> Settings:
    return settings.model_copy(update=values)


@pytest.fixture
def set_up(settings: Settings) -> Callable[..., Settings]:
    """A factory of settings like `settings` with variables of the environment besides."""

    def make(**environ: str) -> Settings:
        own = {
            "SCHED_DATABASE_URL": settings.database_url.get_secret_value(),
            "SCHED_BROKER_URL": settings.broker_url.get_secret_value(),
            "SCHED_HOOK_ALLOW_PRIVATE": "true",
            **environ,
        }
        return load_settings(settings.home, {key: value for key, value in own.items() if value})

    return make


HOOKS = {"on_success": [HOOK], "on_failure": [MAIL]}


@pytest.mark.parametrize(
    ("end", "told"),
    [
        ("success", [("success", HOOK["webhook"])]),
        ("failed", [("failure", MAIL["mail"])]),
        ("partial", [("failure", MAIL["mail"])]),
    ],
)
def test_an_end_owes_what_its_hooks_say(crew: Crew, end: str, told: list[tuple[str, str]]) -> None:
    action = crew.make(hooks=HOOKS)

    id = crew.run(action, end)

    assert crew.owed() == told
    (row,) = crew.rows()
    assert (row["operation_id"], row["payload"]["state"]) == (id, end)


def test_an_action_without_hooks_owes_nothing(crew: Crew) -> None:
    action = crew.make()

    for end in ("success", "failed", "failed", "failed", "failed"):
        crew.run(action, end)

    assert crew.owed() == []


@pytest.mark.parametrize("end", ["success", "failed", "partial"])
def test_who_has_nobody_to_tell_executes_no_statement_more(crew: Crew, end: str) -> None:
    """The row, its attempt, what the action knows, and who waits: as without any hooks."""
    action = crew.make()
    crew.run(action, end)
    id = make_operation(crew.engine, action, NOON)
    seen: list[str] = []
    with crew.engine.begin() as connection:
        claim(connection, id, 1, "tests", alerts=NO_ALERTS)
        key = key_of(connection, id, 1)
        sa.event.listen(connection, "before_cursor_execute", lambda *one: seen.append(one[2]))
        ended = write_end(
            connection,
            key,
            Outcome(OperationState(end), is_failure=end == "failed"),
            alerts=NO_ALERTS,
        )

    assert ended.owed == []
    assert len(seen) == 2, seen


def test_old_notices_go_those_that_are_owed_stay(crew: Crew) -> None:
    action = crew.make(hooks={"on_success": [HOOK], "on_failure": [MAIL]})
    crew.run(action)
    crew.run(action, "failed")
    with crew.engine.begin() as connection:
        is_success = notices.c.target["kind"].as_string() == "webhook"
        done = sa.update(notices).where(is_success)
        connection.execute(done.values(state="done", finished_at=NOON - timedelta(days=4000)))
        rule = retention.rules_of_app(1, timedelta(days=90))["notices"]
        went = retention.delete(rule, connection, 10)

    assert (went, crew.owed()) == (1, [("failure", "ann@example.com")])


def test_an_attempt_that_is_tried_again_owes_nothing_yet(crew: Crew) -> None:
    action = crew.make(hooks=HOOKS, policy={"retry": {"max_attempts": 2}})
    crew.error = "source is away"
    id = make_operation(crew.engine, action, NOON)

    ends = [
        run_attempt(crew.engine, crew.settings, crew.registry, (id, attempt), "tests")
        for attempt in (1, 2)
    ]

    assert ends == ["pending", "failed"]
    assert crew.owed() == [("failure", "ann@example.com")]
    assert crew.rows()[0]["payload"]["attempt"] == 2


def test_one_alert_at_so_many_in_a_row_and_one_on_recovery(crew: Crew) -> None:
    crew.settings = with_settings(crew.settings, alert=AlertSettings(mail=("ops@example.com",)))
    action = crew.make(hooks={"alert_after": 2})

    for end in ("failed", "failed", "failed", "success", "success", "failed", "success"):
        crew.run(action, end)

    assert crew.owed() == [("failed", "ops@example.com"), ("failed over", "ops@example.com")]


def test_a_recovery_closes_no_alert_of_another_action(crew: Crew) -> None:
    alerts = AlertSettings(mail=("ops@example.com",), after=1)
    crew.settings = with_settings(crew.settings, alert=alerts)

    crew.run(crew.make(name="fails"), "failed")
    crew.run(crew.make(name="succeeds"))

    assert crew.owed() == [("failed", "ops@example.com")]


def test_what_is_always_partial_raises_an_alert(crew: Crew) -> None:
    action = crew.make(hooks={"on_failure": [MAIL], "alert_after": 3})

    for _ in range(4):
        crew.run(action, "partial")

    assert [kind for kind, _ in crew.owed()].count("failed") == 1


def test_the_installation_says_after_how_many_where_the_action_does_not(crew: Crew) -> None:
    alerts = AlertSettings(mail=("ops@example.com",), after=1)
    crew.settings = with_settings(crew.settings, alert=alerts)

    crew.run(crew.make(name="says", hooks={"alert_after": 3}), "failed")
    crew.run(crew.make(name="silent"), "failed")

    assert [row["payload"]["action"] for row in crew.rows()] == ["silent"]


def around_now(engine: sa.Engine) -> AlertSettings:
    with reading(engine) as connection:
        now = read_clock(connection)
    span = [f"{now + timedelta(hours=hours):%H:%M}" for hours in (-1, 2)]
    return AlertSettings(mail=("ops@example.com",), after=1, quiet_hours="-".join(span))


def test_an_alert_waits_for_the_end_of_the_quiet_hours(crew: Crew) -> None:
    crew.settings = with_settings(crew.settings, alert=around_now(crew.engine))

    crew.run(crew.make(), "failed")

    (row,) = crew.rows()
    wait = row["not_before"] - row["created_at"]
    assert timedelta(minutes=118) < wait < timedelta(minutes=121)
    with crew.engine.begin() as connection:
        assert stored.reserve(connection, 10, read_clock(connection)) == []


def test_a_recovery_in_the_quiet_hours_cancels_both(crew: Crew) -> None:
    crew.settings = with_settings(crew.settings, alert=around_now(crew.engine))
    action = crew.make()

    crew.run(action, "failed")
    crew.run(action, "success")
    crew.settings = with_settings(
        crew.settings, alert=AlertSettings(mail=("ops@example.com",), after=1)
    )
    crew.run(action, "failed")

    states = [(told_as(row), row["state"], row["error"]) for row in crew.rows()]
    assert states == [
        ("failed", "done", "over before it could be delivered"),
        ("failed", "owed", None),
    ]


def test_of_two_recoveries_in_the_quiet_hours_none_is_told_before_the_end(crew: Crew) -> None:
    """Who was told of the alert before the quiet hours is told nothing new by the next one."""
    crew.settings = with_settings(
        crew.settings, alert=AlertSettings(mail=("ops@example.com",), after=1)
    )
    action = crew.make()
    crew.run(action, "failed")
    crew.deliver()
    crew.settings = with_settings(crew.settings, alert=around_now(crew.engine))

    crew.run(action, "success")
    crew.run(action, "failed")

    states = [(told_as(row), row["state"]) for row in crew.rows()]
    assert states == [("failed", "done"), ("failed over", "done")]


@pytest.mark.parametrize(
    ("ends", "stale"), [(["failed", "success"], "failed"), (["success", "failed"], "failed over")]
)
def test_what_is_over_is_not_told_after_its_opposite(
    crew: Crew, set_up: Callable[..., Settings], ends: list[str], stale: str
) -> None:
    away = {"SCHED_SMTP_URL": "smtp://127.0.0.1:1", "SCHED_ALERT_MAIL": "ops@example.com"}
    crew.settings = set_up(**away, SCHED_ALERT_AFTER="1")
    action = crew.make()
    if stale == "failed over":
        crew.run(action, "failed")
        crew.deliver(set_up())
    crew.run(action, ends[0])
    assert crew.deliver() == ["put off"]

    crew.run(action, ends[1])

    last = crew.rows()[-2:]
    (newer,) = {"failed", "failed over"} - {stale}
    assert [(told_as(row), row["state"]) for row in last] == [(stale, "done"), (newer, "owed")]
    assert last[0]["error"] == "over before it could be delivered"


def test_who_ended_it_sends_the_message_at_once(crew: Crew, broker: Broker) -> None:
    action = crew.make(hooks={"on_success": [HOOK]})

    crew.run(action)

    (row,) = crew.rows()
    with broker.client() as client:
        messages = [json.loads(one) for one in client.lrange("minutebook.quick", 0, -1)]
    assert [one["headers"]["task"] for one in messages] == ["deliver_notice"]
    assert messages[0]["headers"]["id"] == str(row["id"])
    assert row["not_before"] - row["created_at"] > timedelta(minutes=4)


def test_a_notice_that_nobody_delivered_is_sent_again(crew: Crew, broker: Broker) -> None:
    """As after kill -9 between the end and the message, or in the middle of a try."""
    crew.run(crew.make(hooks={"on_success": [HOOK]}))
    with crew.engine.begin() as connection:
        connection.execute(sa.update(notices).values(not_before=NOON - timedelta(days=9000)))
    with broker.client() as client:
        client.flushall()

    assert dispatch_notices(crew.engine).count == 1
    assert dispatch_notices(crew.engine).count == 0

    with broker.client() as client:
        assert client.llen("minutebook.quick") == 1


def test_two_workers_deliver_once(
    crew: Crew, web: Receiver, set_up: Callable[..., Settings]
) -> None:
    crew.run(crew.make(hooks={"on_success": [{"webhook": web.url}]}))
    (row,) = crew.rows()
    settings = set_up()

    with ThreadPoolExecutor() as pool:
        tries = [pool.submit(deliver, crew.engine, settings, (row["id"], 1)) for _ in range(4)]
        ends = sorted(one.result() for one in tries)

    assert ends == ["done", "taken", "taken", "taken"]
    assert len(web.got) == 1


def test_a_webhook_is_signed_and_says_what_happened(
    crew: Crew, web: Receiver, set_up: Callable[..., Settings]
) -> None:
    action = crew.make(hooks={"on_failure": [{"webhook": f"{web.url}/in?key=1"}]})
    id = crew.run(action, "failed")

    assert crew.deliver(set_up(SCHED_HOOK_SECRET="s3cret")) == ["done"]

    (got,) = web.got
    (row,) = crew.rows()
    told = json.loads(got.body)
    assert (got.method, got.path) == ("POST", "/in?key=1")
    assert got.headers["Idempotency-Key"] == told["id"] == str(row["id"])
    sent_at, signed = (
        part.split("=")[1] for part in got.headers["Minutebook-Signature"].split(",")
    )
    own = hmac.new(b"s3cret", b"default", hashlib.sha256).hexdigest()
    said = f"{sent_at}\ndefault\n{web.url}/in?key=1\n".encode() + got.body
    expected = hmac.new(own.encode(), said, hashlib.sha256).hexdigest()
    assert signed == expected
    shown = {key: told[key] for key in ("kind", "action", "small_app", "operation_id", "state")}
    assert shown == {
        "kind": "run_ended",
        "action": "every minute",
        "small_app": "default",
        "operation_id": str(id),
        "state": "failed",
    }
    documented = set(re.findall(r"`(\w+)`", text_of("how-to/hooks-and-alerts/webhooks")))
    assert set(told) <= documented
    assert told["error"] == "source is away"
    assert told["occurrence_at"] == "2027-01-04T12:01:00Z"
    assert told["steps"] == [{"name": "told", "state": "failed", "error": "source is away"}]
    assert (told["run_number"], told["failures_in_row"], told["log"]) == (1, 1, ["line 1"])


def test_without_a_secret_a_webhook_has_no_signature(
    crew: Crew, web: Receiver, set_up: Callable[..., Settings]
) -> None:
    crew.run(crew.make(hooks={"on_success": [{"webhook": web.url}]}))

    assert crew.deliver(set_up()) == ["done"]

    assert "Minutebook-Signature" not in web.got[0].headers


@pytest.mark.parametrize(
    ("answer", "end", "state"),
    [
        (204, "done", "done"),
        (400, "failed", "failed"),
        (404, "failed", "failed"),
        (408, "put off", "owed"),
        (429, "put off", "owed"),
        (503, "put off", "owed"),
        (302, "put off", "owed"),
    ],
)
def test_what_the_receiver_answers_decides(
    crew: Crew, web: Receiver, set_up: Callable[..., Settings], answer: int, end: str, state: str
) -> None:
    web.answers = [answer]
    web.headers = {"Location": f"{web.url}/elsewhere"}
    crew.run(crew.make(hooks={"on_success": [{"webhook": web.url}]}))

    assert crew.deliver(set_up()) == [end]

    (row,) = crew.rows()
    assert (row["state"], row["tries"]) == (state, 1)
    assert [got.path for got in web.got] == ["/"]
    if state != "done":
        assert str(answer) in row["error"]


def test_a_notice_is_tried_eight_times_and_then_given_up(
    crew: Crew, web: Receiver, set_up: Callable[..., Settings]
) -> None:
    web.answers = [500] * 8
    crew.run(crew.make(hooks={"on_success": [{"webhook": web.url}]}))
    settings = set_up()

    ends = [crew.deliver(settings) for _ in range(9)]

    assert ends == [*[["put off"]] * 7, ["failed"], []]
    with reading(crew.engine) as connection:
        assert installation_facts.known(connection).notices_failed == 1


def test_a_database_that_goes_away_is_no_fault_of_the_notice(
    crew: Crew, set_up: Callable[..., Settings], monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(*_: object, **__: object) -> None:
        raise sa.exc.OperationalError("SELECT", {}, Exception("gone"))

    crew.run(crew.make(hooks={"on_success": [{"mail": "ann@example.com"}]}))
    monkeypatch.setattr("tasks.notices.ceilings.check", away)
    monkeypatch.setattr("runtime.db_retry.KEEP_S", 0.0)

    with pytest.raises(sa.exc.OperationalError):
        crew.deliver(set_up())

    (row,) = crew.rows()
    assert (row["tries"], row["error"]) == (1, None)


def test_a_receiver_that_trickles_its_answer_does_not_hold_the_worker(
    crew: Crew, web: Receiver, set_up: Callable[..., Settings]
) -> None:
    web.trickle_s = 0.2
    crew.run(crew.make(hooks={"on_success": [{"webhook": web.url}]}))

    assert crew.deliver(set_up(SCHED_HOOK_TIMEOUT_S="1")) == ["put off"]

    assert "gave no answer within 1 s" in crew.rows()[0]["error"]


def test_a_receiver_that_is_not_there_is_asked_again(
    crew: Crew, set_up: Callable[..., Settings]
) -> None:
    with receiver() as gone:
        url = gone.url
    crew.run(crew.make(hooks={"on_success": [{"webhook": url}]}))

    assert crew.deliver(set_up()) == ["put off"]


def test_a_private_address_is_refused_by_name_of_the_setting(crew: Crew, web: Receiver) -> None:
    crew.run(crew.make(hooks={"on_success": [{"webhook": web.url}]}))

    assert crew.deliver() == ["failed"]

    assert web.got == []
    assert "SCHED_HOOK_ALLOW_PRIVATE=true allows that" in crew.rows()[0]["error"]


def test_a_mail_says_what_happened_and_how_to_look(
    crew: Crew, set_up: Callable[..., Settings]
) -> None:
    id = crew.run(crew.make(hooks={"on_failure": [MAIL]}), "failed")

    with mail_server() as server:
        assert crew.deliver(set_up(SCHED_SMTP_URL=server.url)) == ["done"]

    ((address, message),) = server.took
    text = message.get_payload()
    assert address == "ann@example.com"
    assert message["Subject"] == "[minutebook] FAILED: every minute"
    assert message["Message-ID"] == f"<{crew.rows()[0]['id']}@example.com>"
    for part in ("source is away", "2027-01-04T12:01:00Z", "line 1", f"run show {id}"):
        assert part in text


@pytest.mark.parametrize(("code", "end"), [("450 later", "put off"), ("550 nobody", "failed")])
def test_a_mail_that_is_refused(
    crew: Crew, set_up: Callable[..., Settings], code: str, end: str
) -> None:
    crew.run(crew.make(hooks={"on_failure": [MAIL]}), "failed")

    with mail_server() as server:
        server.answers["ann"] = code
        assert crew.deliver(set_up(SCHED_SMTP_URL=server.url)) == [end]


def test_secrets_are_not_logged(
    crew: Crew, web: Receiver, set_up: Callable[..., Settings], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG", "minutebook")
    web.answers = [500, 200]
    crew.run(crew.make(hooks={"on_success": [{"webhook": f"{web.url}/T0KEN?k=T0KEN"}]}))

    settings = set_up(SCHED_HOOK_SECRET="s3cret")
    assert [crew.deliver(settings), crew.deliver(settings)] == [["put off"], ["done"]]

    assert "delivered" in caplog.text
    assert "T0KEN" not in caplog.text
    assert "s3cret" not in caplog.text


@pytest.mark.parametrize("settings", ["sqlite"], indirect=True)
def test_who_was_told_is_shown_with_the_operation(
    crew: Crew,
    web: Receiver,
    set_up: Callable[..., Settings],
    capsys: pytest.CaptureFixture[str],
) -> None:
    web.answers = [410]
    id = crew.run(crew.make(hooks={"on_success": [{"webhook": f"{web.url}/T0KEN"}]}))
    crew.deliver(set_up())

    code = run(["run", "show", str(id), "--home", str(crew.settings.home)])

    out = capsys.readouterr().out
    assert code == 0
    assert f"run_ended notice to {web.url}: failed: {web.url} answered 410" in out
    assert "T0KEN" not in out


def _activated(id: str) -> UserModel:
    user = {"id": id, "email": f"{id}@example.com", "activated_at": "2027-01-01T00:00:00Z"}
    return parse_users([user])[0]


def test_all_subjects_of_an_action_count_together(crew: Crew) -> None:
    """One that fails for each new user would else never raise an alert."""
    action = crew.make(hooks={"on_failure": [MAIL], "alert_after": 2})
    crew.error = "source is away"
    with crew.engine.begin() as connection:
        for subject in ("ann", "bob"):
            users.add(connection, 1, _activated(subject))
    for number, subject in enumerate(("ann", "bob")):
        id = make_operation(crew.engine, action, NOON + timedelta(minutes=number))
        with crew.engine.begin() as connection:
            operation = sa.table("operations", sa.column("id"), sa.column("subject"))
            connection.execute(sa.update(operation).values(subject=subject))
        run_attempt(crew.engine, crew.settings, crew.registry, (id, 1), "tests")

    with reading(crew.engine) as connection:
        rows = connection.execute(
            sa.select(action_state.c.subject, action_state.c.failures_in_row)
        ).all()
    assert sorted(map(tuple, rows)) == [("", 2), ("ann", 1), ("bob", 1)]
    assert [kind for kind, _ in crew.owed()] == ["failure", "failure", "failed"]
