"""send_execsum, on both stores, with a real SMTP server."""

import json
from datetime import UTC, datetime
from email.message import EmailMessage
from typing import Any
from uuid import UUID, uuid4

import pytest
import sqlalchemy as sa
from pydantic import SecretStr

from data.services.summary import preview
from data.steps import send_execsum
from data.store.failures import ActionFailures, failures_since
from minutebook.steps import StepResult
from models.document import NoParameters
from models.sql import database_now, upsert
from models.tables import action_state, actions, missed_spans
from tests.factories import installation_on, spoil
from tests.integration.data.steps.conftest import ANN, Work, from_files, text_of
from tests.mail_server import MailServer
from tests.ticks import HOUR
from tests.transactions import act, execute

NOON = datetime(2026, 1, 5, 12, tzinfo=UTC)


@pytest.fixture
def published(work: Work) -> Work:
    work.apply(title="The Shop", domains=from_files("a", "b"))
    work.write("b.csv", "id\n1\n")
    _publish(work, "id,amount\n1,2.50\n2,4\n")
    return work


def _publish(work: Work, text: str) -> None:
    work.write("a.csv", text)
    work.refresh(domains=["a"])
    work.publish(data=["a"])


def _summarise(work: Work, smtp: MailServer, **other: Any) -> tuple[StepResult, EmailMessage]:
    url = SecretStr(smtp.url)
    context = work.context(NoParameters(), recipients=[ANN], smtp_url=url, **other)
    result = send_execsum.run(context)
    message = smtp.took[-1][1]
    assert isinstance(message, EmailMessage)
    return result, message


def test_the_summary_shows_rows_freshness_and_key_figures(
    published: Work, smtp: MailServer
) -> None:
    result, message = _summarise(published, smtp)

    assert result.message == "sent 1 message by 127.0.0.1"
    assert message["Subject"].startswith("The Shop: summary of ")
    assert "a\n  2 rows\n  data of just now, checked just now\n" in text_of(message)
    assert "  amount: 6.50\n\nb\n" in text_of(message)
    assert "b\n  nothing published yet" in text_of(message)


def test_the_summary_shows_changes_since_the_last_one(published: Work, smtp: MailServer) -> None:
    _summarise(published, smtp)
    _publish(published, "id,amount\n1,2.50\n2,4\n3,10\n")

    _result, message = _summarise(published, smtp)

    assert "3 rows (+1)" in text_of(message)
    assert "amount: 16.50 (+10)" in text_of(message)


def test_a_preview_is_what_would_be_mailed_and_sends_nothing(
    published: Work, smtp: MailServer
) -> None:
    _summarise(published, smtp)
    _publish(published, "id,amount\n1,2.50\n2,4\n3,10\n")
    uid = published.action_of(published.operation(state="success", finished_at=database_now()))
    with published.engine.begin() as connection:
        document = json.dumps({"operations": {"send_execsum": {}}})
        spoil(connection, actions.c.uid == uid, document=document, name="report")
        known = dict.fromkeys(("run_number", "failures_in_row", "bad_runs_in_a_row"), 0)
        its = {"action_uid": uid, "subject": "", "checkpoint": published.checkpoint}
        upsert(connection, action_state, [{**its, **known}])
    installation = installation_on(published.engine, published.settings, "shop")

    made = preview(installation)
    sent = len(smtp.took)
    _result, message = _summarise(published, smtp)

    assert (made.action, sent) == ("report", 1)
    # The fourth line is the minute in which each was made.
    shown, mailed = made.text.splitlines(), text_of(message).splitlines()
    assert shown[4:] == mailed[4:]
    assert 'class="bars"' in made.html


def test_the_summary_shows_failures_since_the_last_one(published: Work, smtp: MailServer) -> None:
    ago = -3600.0
    published.operation(state="failed", finished_at=database_now(ago), error="before the last one")
    _summarise(published, smtp)
    published.operation(state="failed", finished_at=database_now(), error="no such table\nline 3")
    published.operation(state="success", finished_at=database_now())
    published.operation(state="missed", recorded_at=database_now())

    _result, message = _summarise(published, smtp)

    text = text_of(message)
    assert "2 runs went wrong (1 failed, 1 missed)." in text.splitlines()[0]
    assert "    no such table\n" in text
    assert "before the last one" not in text


def test_the_first_summary_looks_back_a_week(published: Work, smtp: MailServer) -> None:
    day = 86_400.0
    published.operation(state="failed", finished_at=database_now(-6 * day))
    published.operation(state="failed", finished_at=database_now(-8 * day))

    _result, message = _summarise(published, smtp)

    assert "1 run went wrong (1 failed)." in text_of(message).splitlines()[0]


def test_its_own_operation_does_not_count(published: Work, smtp: MailServer) -> None:
    id = published.operation(finished_at=database_now())

    _result, message = _summarise(published, smtp, operation_id=id)

    assert "nothing failed" in text_of(message).splitlines()[0]


def add(work: Work, action: UUID, state: str, hours: int, **more: Any) -> None:
    """Record an operation that ended, or was missed, so many hours before noon."""
    at = NOON - hours * HOUR
    instants = dict.fromkeys(("occurrence_at", "recorded_at"), at)
    finished_at = None if state == "missed" else at
    work.operation(action_uid=action, state=state, finished_at=finished_at, **instants, **more)


def add_span(work: Work, action: UUID, count: int, hours: int) -> None:
    at = dict.fromkeys(("first_at", "last_at", "recorded_at"), NOON - hours * HOUR)
    span = {"action_uid": action, "revision": 1, "count": count, "reason": "too late", **at}
    execute(work.engine, sa.insert(missed_spans).values(span))


def failures(work: Work) -> list[ActionFailures]:
    return act(work.engine, failures_since, work.app.id, NOON - 10 * HOUR, uuid4())


def test_failures_are_counted_by_action_the_latest_first(work: Work) -> None:
    nightly, weekly = (work.action_of(work.operation()) for _ in range(2))
    add(work, nightly, "failed", 5, error="first")
    add(work, nightly, "failed", 3, error="second")
    add(work, nightly, "missed", 4)
    add_span(work, nightly, 40, 6)
    add(work, weekly, "partial", 2)

    assert failures(work) == [
        ActionFailures(str(weekly), 0, 1, 0, NOON - 2 * HOUR, None),
        ActionFailures(str(nightly), 2, 0, 41, NOON - 3 * HOUR, "second"),
    ]


def test_a_partial_operation_names_the_failed_domains(work: Work) -> None:
    refresh = {
        "name": "refresh", "state": "partial", "message": "rewrote a (2 rows); b failed: gone",
        "details": {"failed": {"b": "gone"}},
    }  # fmt: skip
    mail = {"name": "send_email", "state": "partial", "message": "sent 1 message; 2 refused"}
    nightly, weekly = (work.action_of(work.operation()) for _ in range(2))
    add(work, nightly, "partial", 2, steps=[refresh])
    add(work, weekly, "partial", 3, steps=[{**refresh, "state": "success"}, mail])

    assert [one.error for one in failures(work)] == ["b: gone", "sent 1 message; 2 refused"]


def test_older_and_successful_operations_do_not_count(work: Work) -> None:
    uid = work.action_of(work.operation())
    for state in ("failed", "partial", "missed"):
        add(work, uid, state, 10)
    for state in ("success", "skipped", "cancelled", "dropped", "handed_over"):
        add(work, uid, state, 1)
    add_span(work, uid, 3, 10)

    assert failures(work) == []
