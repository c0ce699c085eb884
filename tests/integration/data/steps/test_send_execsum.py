"""send_execsum, on both stores, with a real SMTP server."""

import json
from email.message import EmailMessage
from typing import Any

import pytest
from pydantic import SecretStr

from data.services.summary import preview
from data.steps import send_execsum
from minutebook.steps import StepResult
from models.document import NoParameters
from models.sql import database_now, upsert
from models.tables import action_state, actions
from tests.factories import installation_on, spoil
from tests.integration.data.steps.conftest import ANN, Work, text_of
from tests.mail_server import MailServer


@pytest.fixture
def published(work: Work) -> Work:
    work.apply(
        title="The Shop",
        domains={"a": {"source": {"file": "a.csv"}}, "b": {"source": {"file": "b.csv"}}},
    )
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
