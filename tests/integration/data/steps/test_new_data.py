"""The "new data available" mail, on both stores, with a real SMTP server."""

from email.message import EmailMessage
from typing import Any, cast
from uuid import UUID

import pytest
import sqlalchemy as sa
from pydantic import SecretStr

from data.steps.publish import work as publishing
from data.store.tables import deliveries
from minutebook.steps import StepOutcome, StepResult
from models.store.people import users
from models.users import parse_users
from tests.factories import update_operation
from tests.integration.data.steps.conftest import Work, from_files, text_of
from tests.mail_server import MailServer
from tests.transactions import act, fetched

DOMAINS = from_files("a", "b")
SINCE = "2026-01-05T09:00:00Z"
PEOPLE = [
    {"id": "ann@example.com", "name": "Ann", "groups": ["manager"], "activated_at": SINCE},
    {"id": "ben@example.com", "groups": ["staff"], "activated_at": SINCE},
    {"id": "off@example.com", "groups": ["staff"], "activated_at": SINCE, "active": False},
    {"id": "new@example.com", "groups": ["staff"]},
]
EVERYBODY = ["ann@example.com", "ben@example.com"]


@pytest.fixture
def shop(work: Work) -> Work:
    """Two domains, refreshed and not published, and four users, of whom two can be reached."""
    work.imported(a="id\n1\n", b="id\n7\n8\n")
    act(work.engine, users.import_users, work.app.id, parse_users(PEOPLE, zone="UTC"))
    return work


def ran(
    shop: Work,
    smtp: MailServer,
    *,
    is_manual: bool = True,
    said: bool | None = None,
    operation_id: UUID | None = None,
    attempt: int = 1,
    **parameters: Any,
) -> StepResult:
    """Run publish, by default of all data and by a person."""
    given = {
        "is_manual": is_manual, "operation_id": operation_id, "attempt": attempt, "notify": said,
        "smtp_url": SecretStr(smtp.url),
    }  # fmt: skip
    return shop.publish(given, data=True, **parameters)


def test_a_manual_publish_mails_all_users(shop: Work, smtp: MailServer) -> None:
    result = ran(shop, smtp)

    assert smtp.recipients == EVERYBODY
    assert result.outcome is StepOutcome.SUCCESS
    assert (
        result.message
        == "published a (1 row), b (2 rows); mail about it: sent 2 messages by 127.0.0.1"
    )
    message = cast(EmailMessage, smtp.took[0][1])
    assert message["Subject"] == "shop: new data available"
    assert "- a: 1 row\n- b: 2 rows\n" in text_of(message)
    assert "<li>b: 2 rows</li>" in text_of(message, "html")


def test_the_schedule_publishes_in_silence(shop: Work, smtp: MailServer) -> None:
    assert ran(shop, smtp, is_manual=False).message == "published a (1 row), b (2 rows)"
    assert smtp.recipients == []


def test_what_is_published_already_is_no_news(shop: Work, smtp: MailServer) -> None:
    ran(shop, smtp, is_manual=False)

    assert ran(shop, smtp).message == "a, b already published"
    assert ran(shop, smtp, notify=True).message == "a, b already published"
    assert smtp.recipients == []


@pytest.mark.parametrize(
    ("app", "asked", "is_sent"),
    [
        pytest.param(True, {"is_manual": False, "notify": True}, True, id="asked_for"),
        pytest.param(True, {"notify": False}, False, id="refused"),
        pytest.param(False, {}, False, id="silent_app"),
        pytest.param(False, {"notify": True}, True, id="asked_for_in_a_silent_app"),
        pytest.param(False, {"notify": False, "said": True}, True, id="asked_for_by_the_user"),
        pytest.param(True, {"notify": True, "said": False}, False, id="refused_by_the_user"),
    ],
)
def test_the_user_comes_before_the_action_the_action_before_the_app(
    shop: Work, smtp: MailServer, app: bool, asked: dict[str, Any], is_sent: bool
) -> None:
    shop.apply(domains=DOMAINS, notify=app)

    ran(shop, smtp, **asked)

    assert smtp.recipients == (EVERYBODY if is_sent else [])


def test_the_small_app_says_whose_the_mail_is(shop: Work, smtp: MailServer) -> None:
    shop.apply(domains=DOMAINS, notify_recipients={"groups": ["manager"]})

    ran(shop, smtp)

    assert smtp.recipients == ["ann@example.com"]


def test_a_small_app_without_users_publishes_without_a_word_of_mail(
    shop: Work, smtp: MailServer
) -> None:
    shop.apply(domains=DOMAINS, notify_recipients={"groups": ["nobody"]})

    assert ran(shop, smtp).message == "published a (1 row), b (2 rows)"


def test_the_small_apps_own_template_is_used(shop: Work, smtp: MailServer) -> None:
    own = {
        "subject": "News of {{ small_app.name }}",
        "text": "{% for domain in domains %}{{ domain.name }}={{ domain.rows }} {% endfor %}",
    }
    shop.apply(domains=DOMAINS, templates={"new_data": own})

    ran(shop, smtp)

    message = cast(EmailMessage, smtp.took[0][1])
    assert message["Subject"] == "News of shop"
    assert text_of(message).strip() == "a=1 b=2"


def test_a_template_that_cannot_be_used_fails_the_mail_and_not_the_publish(
    shop: Work, smtp: MailServer
) -> None:
    shop.apply(
        domains=DOMAINS, templates={"new_data": {"subject": "{{ nobody }}", "text": "Hello"}}
    )

    result = ran(shop, smtp)

    assert result.outcome is StepOutcome.PARTIAL
    assert "mail about it: failed: templates.new_data.subject" in result.message
    assert shop.domains()["a"].production is not None


def test_a_next_attempt_skips_recipients_that_had_the_mail(shop: Work, smtp: MailServer) -> None:
    id = shop.operation()
    smtp.answers["ben"] = "451 try again later"
    first = ran(shop, smtp, operation_id=id)
    smtp.answers.clear()
    update_operation(shop.engine, id, attempt=2)

    second = ran(shop, smtp, operation_id=id, attempt=2)

    assert first.outcome is StepOutcome.PARTIAL
    assert "`minutebook run retry` sends it" in first.message
    assert smtp.recipients == EVERYBODY
    assert second.message == (
        "published a (1 row), b (2 rows);"
        " mail about it: sent 1 message by 127.0.0.1; 1 already had it"
    )


class Killed(BaseException):
    """Stands for the end of the process."""


def test_the_next_attempt_sends_the_mail_of_a_worker_cut_off_before_it(
    shop: Work, smtp: MailServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    id = shop.operation()

    def end_of_the_process(*_arguments: object) -> None:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(publishing, "mail_news", end_of_the_process)
        with pytest.raises(Killed):
            ran(shop, smtp, operation_id=id)
    assert shop.domains()["a"].production is not None
    update_operation(shop.engine, id, attempt=2)

    ran(shop, smtp, operation_id=id, attempt=2)

    assert smtp.recipients == EVERYBODY
    rows = fetched(shop.engine, sa.select(deliveries.c.step, deliveries.c.state))
    assert [tuple(row) for row in rows] == [("publish", "sent")] * 2
