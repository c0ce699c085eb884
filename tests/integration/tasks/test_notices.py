"""What an end owes, to whom it goes, and that it goes at least once."""

import hashlib
import hmac
import json
import re
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest
import sqlalchemy as sa

from cli.main import run
from models.operation import OperationState
from models.store import installation_facts
from models.store import notices as stored
from models.store.notices.alerting import NO_ALERTS
from models.store.operations.end import Outcome
from models.store.operations.end import end as write_end
from models.store.people import users
from models.tables import action_state, notices, operations
from models.users import parse_users
from runtime.database import reading
from scheduler.sweep import dispatch_notices
from tasks.notices import deliver
from tests.attempts import claim, key_of
from tests.docs.pages import text_of
from tests.factories import make_operation
from tests.integration.tasks.crew import ALERTED, ANN, NOON, OPS, Crew
from tests.mail_server import MailServer
from tests.receiver import Receiver
from tests.servers import Broker
from tests.ticks import HOUR, MINUTE
from tests.transactions import act, clock_of, execute, fetched

HOOK = {"webhook": "https://example.com/hooks"}
OVER = "over before it could be delivered"
HOOKS = {"on_success": [HOOK], "on_failure": [ANN]}


@pytest.mark.parametrize(
    ("end", "told"),
    [
        ("success", [("success", HOOK["webhook"])]),
        ("failed", [("failure", ANN["mail"])]),
        ("partial", [("failure", ANN["mail"])]),
    ],
)
def test_an_end_owes_what_its_hooks_say(crew: Crew, end: str, told: list[tuple[str, str]]) -> None:
    id = crew.run(crew.make(hooks=HOOKS), end)

    assert crew.owed() == told
    (row,) = crew.rows()
    assert (row["operation_id"], row["payload"]["state"]) == (id, end)


@pytest.mark.parametrize("end", ["success", "failed", "partial"])
def test_who_has_nobody_to_tell_executes_no_statement_more(crew: Crew, end: str) -> None:
    """The row, its attempt, what the action knows, and who waits: as without any hooks."""
    action = crew.make()
    crew.run(action, *["failed"] * 4, end)
    id = crew.operation(action)
    seen: list[str] = []
    outcome = Outcome(OperationState(end), is_failure=end == "failed")
    with crew.engine.begin() as connection:
        claim(connection, id, 1, "tests", alerts=NO_ALERTS)
        key = key_of(connection, id, 1)
        sa.event.listen(connection, "before_cursor_execute", lambda *one: seen.append(one[2]))
        ended = write_end(connection, key, outcome, alerts=NO_ALERTS)

    assert (ended.owed, crew.owed()) == ([], [])
    assert len(seen) == 2, seen


def test_one_alert_at_so_many_in_a_row_and_one_on_recovery(crew: Crew) -> None:
    crew.sets(SCHED_ALERT_MAIL=OPS)
    ends = ("failed", "failed", "failed", "success", "success", "failed", "success")

    crew.run(crew.make(hooks={"alert_after": 2}), *ends)

    assert crew.owed() == [("failed", OPS), ("failed over", OPS)]


def test_a_recovery_closes_no_alert_of_another_action(crew: Crew) -> None:
    crew.sets(**ALERTED)

    crew.run(crew.make(name="fails"), "failed")
    crew.run(crew.make(name="succeeds"))

    assert crew.owed() == [("failed", OPS)]


def test_what_is_always_partial_raises_an_alert(crew: Crew) -> None:
    crew.run(crew.make(hooks={"on_failure": [ANN], "alert_after": 3}), *["partial"] * 4)

    assert [kind for kind, _ in crew.owed()].count("failed") == 1


def test_the_installation_says_after_how_many_where_the_action_does_not(crew: Crew) -> None:
    crew.sets(**ALERTED)

    crew.run(crew.make(name="says", hooks={"alert_after": 3}), "failed")
    crew.run(crew.make(name="silent"), "failed")

    assert [row["payload"]["action"] for row in crew.rows()] == ["silent"]


def quiet_now(crew: Crew) -> None:
    """Set quiet hours that end in two hours."""
    now = clock_of(crew.engine)
    hours = "-".join(f"{now + hours * HOUR:%H:%M}" for hours in (-1, 2))
    crew.sets(**ALERTED, SCHED_ALERT_QUIET_HOURS=hours)


def test_an_alert_waits_for_the_end_of_the_quiet_hours(crew: Crew) -> None:
    quiet_now(crew)

    crew.run(crew.make(), "failed")

    (row,) = crew.rows()
    assert 118 * MINUTE < row["not_before"] - row["created_at"] < 121 * MINUTE
    assert act(crew.engine, stored.reserve, 10, clock_of(crew.engine)) == []


def test_a_recovery_in_the_quiet_hours_cancels_both(crew: Crew) -> None:
    quiet_now(crew)
    action = crew.make()

    crew.run(action, "failed", "success")
    crew.sets(SCHED_ALERT_QUIET_HOURS="")
    crew.run(action, "failed")

    assert crew.states() == [("failed", "done", OVER), ("failed", "owed", None)]


def test_of_two_recoveries_in_the_quiet_hours_none_is_told_before_the_end(crew: Crew) -> None:
    """Who was told of the alert before the quiet hours is told nothing new by the next one."""
    crew.sets(**ALERTED)
    action = crew.make()
    crew.run(action, "failed")
    crew.deliver()
    quiet_now(crew)

    crew.run(action, "success", "failed")

    assert [state[:2] for state in crew.states()] == [("failed", "done"), ("failed over", "done")]


@pytest.mark.parametrize(
    ("ends", "stale"), [(["failed", "success"], "failed"), (["success", "failed"], "failed over")]
)
def test_what_is_over_is_not_told_after_its_opposite(
    crew: Crew, ends: list[str], stale: str
) -> None:
    crew.sets(**ALERTED)
    action = crew.make()
    if stale == "failed over":
        crew.run(action, "failed")
        crew.deliver()
    crew.sets(SCHED_SMTP_URL="smtp://127.0.0.1:1")
    crew.run(action, ends[0])
    assert crew.deliver() == ["put off"]

    crew.run(action, ends[1])

    (newer,) = {"failed", "failed over"} - {stale}
    assert crew.states()[-2:] == [(stale, "done", OVER), (newer, "owed", None)]


def test_who_ended_it_sends_the_message_at_once(crew: Crew, broker: Broker) -> None:
    crew.owe("https://example.com/hooks")

    (row,) = crew.rows()
    with broker.client() as client:
        (message,) = client.lrange("minutebook.quick", 0, -1)
    headers = json.loads(message)["headers"]
    assert (headers["task"], headers["id"]) == ("deliver_notice", str(row["id"]))
    assert row["not_before"] - row["created_at"] > 4 * MINUTE


def test_a_notice_that_nobody_delivered_is_sent_again(crew: Crew, broker: Broker) -> None:
    """As after kill -9 between the end and the message, or in the middle of a try."""
    crew.owe("https://example.com/hooks")
    execute(crew.engine, sa.update(notices).values(not_before=NOON - timedelta(days=9000)))
    with broker.client() as client:
        client.flushall()

        assert [dispatch_notices(crew.engine).count for _ in range(2)] == [1, 0]
        assert client.llen("minutebook.quick") == 1


def test_two_workers_deliver_once(crew: Crew, web: Receiver) -> None:
    crew.owe(web.url)
    (row,) = crew.rows()

    with ThreadPoolExecutor() as pool:
        asked = (crew.engine, crew.settings, (row["id"], 1))
        tries = [pool.submit(deliver, *asked) for _ in range(4)]
        ends = sorted(one.result() for one in tries)

    assert ends == ["done", "taken", "taken", "taken"]
    assert len(web.got) == 1


def test_a_webhook_is_signed_and_says_what_happened(crew: Crew, web: Receiver) -> None:
    crew.sets(SCHED_HOOK_SECRET="s3cret")
    id = crew.run(crew.make(hooks={"on_failure": [{"webhook": f"{web.url}/in?key=1"}]}), "failed")

    assert crew.deliver() == ["done"]

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
    assert signed == hmac.new(own.encode(), said, hashlib.sha256).hexdigest()
    expected = {
        "kind": "run_ended",
        "action": "every minute",
        "small_app": "default",
        "operation_id": str(id),
        "state": "failed",
        "error": "source is away",
        "occurrence_at": "2027-01-04T12:01:00Z",
        "steps": [{"name": "told", "state": "failed", "error": "source is away"}],
        "run_number": 1,
        "failures_in_row": 1,
        "log": ["line 1"],
    }
    assert {key: told[key] for key in expected} == expected
    documented = set(re.findall(r"`(\w+)`", text_of("how-to/hooks-and-alerts/webhooks")))
    assert set(told) <= documented


@pytest.mark.parametrize(
    ("answer", "end", "state"),
    [
        (204, "done", "done"),
        (404, "failed", "failed"),
        (429, "put off", "owed"),
        (503, "put off", "owed"),
        (302, "put off", "owed"),
    ],
)
def test_what_the_receiver_answers_decides(
    crew: Crew, web: Receiver, answer: int, end: str, state: str
) -> None:
    web.answers, web.headers = [answer], {"Location": f"{web.url}/elsewhere"}
    crew.owe(web.url)

    assert crew.deliver() == [end]

    (row,) = crew.rows()
    assert (row["state"], row["tries"]) == (state, 1)
    (got,) = web.got
    assert got.path == "/"
    # Without a secret there is no signature.
    assert "Minutebook-Signature" not in got.headers
    assert state == "done" or str(answer) in row["error"]


def test_a_notice_is_tried_eight_times_and_then_given_up(crew: Crew, web: Receiver) -> None:
    web.answers = [500] * 8
    crew.owe(web.url)

    ends = [crew.deliver() for _ in range(9)]

    assert ends == [*[["put off"]] * 7, ["failed"], []]
    with reading(crew.engine) as connection:
        assert installation_facts.known(connection).notices_failed == 1


def test_a_database_that_goes_away_is_no_fault_of_the_notice(
    crew: Crew, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(*_: object, **__: object) -> None:
        raise sa.exc.OperationalError("SELECT", {}, Exception("gone"))

    crew.run(crew.make(hooks={"on_success": [ANN]}))
    monkeypatch.setattr("tasks.notices.ceilings.check", away)
    monkeypatch.setattr("runtime.db_retry.KEEP_S", 0.0)

    with pytest.raises(sa.exc.OperationalError):
        crew.deliver()

    (row,) = crew.rows()
    assert (row["tries"], row["error"]) == (1, None)


def test_a_receiver_that_trickles_its_answer_does_not_hold_the_worker(
    crew: Crew, web: Receiver
) -> None:
    web.trickle_s = 0.2
    crew.sets(SCHED_HOOK_TIMEOUT_S="1")
    crew.owe(web.url)

    assert crew.deliver() == ["put off"]
    assert "gave no answer within 1 s" in crew.error_told()


def test_a_mail_says_what_happened_and_how_to_look(crew: Crew, smtp: MailServer) -> None:
    crew.sets(SCHED_SMTP_URL=smtp.url)
    id = crew.run(crew.make(hooks={"on_failure": [ANN]}), "failed")

    assert crew.deliver() == ["done"]

    ((address, message),) = smtp.took
    assert address == ANN["mail"]
    assert message["Subject"] == "[minutebook] FAILED: every minute"
    assert message["Message-ID"] == f"<{crew.rows()[0]['id']}@example.com>"
    for part in ("source is away", "2027-01-04T12:01:00Z", "line 1", f"run show {id}"):
        assert part in message.get_payload()


@pytest.mark.parametrize(("code", "end"), [("450 later", "put off"), ("550 nobody", "failed")])
def test_a_mail_that_is_refused(crew: Crew, smtp: MailServer, code: str, end: str) -> None:
    smtp.answers["ann"] = code
    crew.sets(SCHED_SMTP_URL=smtp.url)
    crew.run(crew.make(hooks={"on_failure": [ANN]}), "failed")

    assert crew.deliver() == [end]


def test_secrets_are_not_logged(
    crew: Crew, web: Receiver, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG", "minutebook")
    web.answers = [500, 200]
    crew.sets(SCHED_HOOK_SECRET="s3cret")
    crew.owe(f"{web.url}/T0KEN?k=T0KEN")

    assert [crew.deliver(), crew.deliver()] == [["put off"], ["done"]]

    assert "delivered" in caplog.text
    assert not re.search("T0KEN|s3cret", caplog.text)


@pytest.mark.parametrize("settings", ["sqlite"], indirect=True)
def test_who_was_told_is_shown_with_the_operation(
    crew: Crew, web: Receiver, capsys: pytest.CaptureFixture[str]
) -> None:
    web.answers = [410]
    id = crew.owe(f"{web.url}/T0KEN")
    crew.deliver()

    assert run(["run", "show", str(id), "--home", str(crew.settings.home)]) == 0

    out = capsys.readouterr().out
    assert f"run_ended notice to {web.url}: failed: {web.url} answered 410" in out
    assert "T0KEN" not in out


def test_all_subjects_of_an_action_count_together(crew: Crew) -> None:
    """One that fails for each new user would else never raise an alert."""
    action = crew.make(hooks={"on_failure": [ANN], "alert_after": 2})
    crew.error = "source is away"
    for number, subject in enumerate(("ann", "bob")):
        user: dict[str, Any] = {"id": subject, "email": f"{subject}@example.com"}
        (model,) = parse_users([{**user, "activated_at": "2027-01-01T00:00:00Z"}])
        act(crew.engine, users.add, 1, model)
        id = make_operation(crew.engine, action, NOON + number * MINUTE)
        execute(crew.engine, sa.update(operations).values(subject=subject))
        crew.attempt(id)

    found = fetched(crew.engine, sa.select(action_state.c.subject, action_state.c.failures_in_row))
    assert sorted(map(tuple, found)) == [("", 2), ("ann", 1), ("bob", 1)]
    assert [kind for kind, _ in crew.owed()] == ["failure", "failure", "failed"]
