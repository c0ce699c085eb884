"""send_email, on both stores, with a real SMTP server or as files."""

from collections.abc import Sequence
from email import message_from_bytes
from email.message import EmailMessage
from email.policy import default
from typing import Any

import pytest
import sqlalchemy as sa
from pydantic import SecretStr

from minutehand.steps import Recipient, StepFailed, StepOutcome
from models.errors import LeaseLost
from models.parameters import (
    SendEmailParameters,
)
from models.store import deliveries
from models.store.deliveries import Delivery
from models.tables import deliveries as table
from runtime.mail_settings import MailSettings
from tasks.context import WorkContext
from tasks.steps import send_email
from tests.integration.steps.conftest import ANN, BEN, Work, text_of
from tests.mail_server import MailServer, mail_server
from tests.servers import free_port

WELCOME = {
    "subject": "Hello {{ recipient.name }}",
    "text": "It is {{ time }} in {{ small_app.zone }}.",
    "html": "<p>Dear {{ recipient.name }}</p>",
}


@pytest.fixture
def mailing(work: Work) -> Work:
    """A small app with the template `welcome`."""
    work.apply(templates={"welcome": WELCOME})
    return work


def context_of(
    work: Work,
    smtp: MailServer | None,
    recipients: Sequence[Recipient] = (ANN, BEN),
    **other: Any,
) -> WorkContext:
    """Return a context of send_email that sends to `smtp`, or into files."""
    if smtp is not None:
        other["smtp_url"] = SecretStr(smtp.url)
    return work.context(SendEmailParameters(template="welcome"), recipients=recipients, **other)


def rows(work: Work) -> dict[str, tuple[str, str | None]]:
    """Return state and error of every delivery."""
    with work.engine.connect() as connection:
        found = connection.execute(sa.select(table).order_by(table.c.recipient)).all()
    return {row.recipient: (row.state, row.error) for row in found}


def eml_files(work: Work) -> list[EmailMessage]:
    """Return the messages in the mail folder."""
    found = sorted((work.settings.home / "mail").iterdir())
    assert all(file.suffix == ".eml" for file in found)
    parsed = [message_from_bytes(file.read_bytes(), policy=default) for file in found]
    return [message for message in parsed if isinstance(message, EmailMessage)]


def test_without_a_server_messages_are_files_and_the_result_says_where(mailing: Work) -> None:
    result = send_email.run(context_of(mailing, None))

    assert result.message == f"wrote 2 messages to {mailing.settings.home / 'mail'}"
    addressed = {message["To"].addresses[0].addr_spec for message in eml_files(mailing)}
    assert addressed == {"ann@example.com", "ben@example.com"}
    assert rows(mailing) == {"ann": ("sent", None), "ben": ("sent", None)}


def test_each_recipient_gets_one_rendered_message(mailing: Work, smtp: MailServer) -> None:
    result = send_email.run(context_of(mailing, smtp))

    assert result.message == "sent 2 messages by 127.0.0.1"
    assert smtp.recipients == ["ann@example.com", "ben@example.com"]
    assert smtp.sessions == 1
    message = smtp.took[0][1]
    assert isinstance(message, EmailMessage)
    assert message["Subject"] == "Hello Ann"
    assert text_of(message) == "It is 07:00 in Europe/Paris.\n"
    assert text_of(message, "html") == "<p>Dear Ann</p>\n"


def test_a_retry_sends_to_those_only_who_have_not_had_it(mailing: Work, smtp: MailServer) -> None:
    smtp.answers["ben"] = "451 later"
    operation_id = mailing.operation()
    first = send_email.run(context_of(mailing, smtp, operation_id=operation_id))
    smtp.answers.clear()

    second = send_email.run(context_of(mailing, smtp, operation_id=operation_id))

    assert first.outcome is StepOutcome.PARTIAL
    assert first.details["put_off"] == {"count": 1, "samples": {"ben": "451 later"}}
    assert second.message == "sent 1 message by 127.0.0.1; 1 had it already"
    assert smtp.recipients == ["ann@example.com", "ben@example.com"]


def test_a_delivery_cut_off_while_sending_is_sent_again_under_the_same_id(
    mailing: Work, smtp: MailServer
) -> None:
    operation_id = mailing.operation()
    with mailing.engine.begin() as connection:
        cut_off = Delivery(operation_id, "send_email", "ann")
        deliveries.reserve(connection, cut_off, "ann@example.com", "<first@example.com>")

    send_email.run(context_of(mailing, smtp, [ANN], operation_id=operation_id))

    assert [message["Message-ID"] for _to, message in smtp.took] == ["<first@example.com>"]
    assert rows(mailing) == {"ann": ("sent", None)}


def test_two_attempts_give_the_same_message_id(mailing: Work, smtp: MailServer) -> None:
    operation_id = mailing.operation()
    send_email.run(context_of(mailing, smtp, [ANN], operation_id=operation_id))
    with mailing.engine.begin() as connection:
        connection.execute(sa.delete(table))
    send_email.run(context_of(mailing, smtp, [ANN], operation_id=operation_id))

    first, second = (message["Message-ID"] for _to, message in smtp.took)
    assert first == second
    assert str(operation_id) in first


def test_everybody_refused_for_good_fails_for_good(mailing: Work, smtp: MailServer) -> None:
    smtp.answers.update(ann="550 nobody here", ben="550 nobody here")

    with pytest.raises(StepFailed, match="no message was taken: ann: 550 nobody here") as failed:
        send_email.run(context_of(mailing, smtp))

    assert failed.value.permanent
    assert rows(mailing)["ben"] == ("failed", "550 nobody here")


def test_everybody_deferred_fails_for_now(mailing: Work, smtp: MailServer) -> None:
    smtp.answers.update(ann="451 later", ben="550 nobody here")

    with pytest.raises(StepFailed) as failed:
        send_email.run(context_of(mailing, smtp))

    assert not failed.value.permanent


def test_a_connection_dropped_within_a_message_costs_that_message_alone(
    mailing: Work, smtp: MailServer
) -> None:
    smtp.drops.add("ann")

    result = send_email.run(context_of(mailing, smtp))

    assert result.outcome is StepOutcome.PARTIAL
    assert list(result.details["put_off"]["samples"]) == ["ann"]
    assert smtp.recipients == ["ben@example.com"]


def test_no_server_fails_for_now_and_sends_nothing(mailing: Work) -> None:
    url = SecretStr(f"smtp://127.0.0.1:{free_port()}")

    with pytest.raises(StepFailed, match=r"2 still wait: .*cannot be reached") as failed:
        send_email.run(context_of(mailing, None, smtp_url=url))

    assert not failed.value.permanent
    assert rows(mailing)["ann"][0] == "failed"


def test_a_wrong_password_fails_for_good_without_showing_it(mailing: Work) -> None:
    with mail_server(user="minutehand", password="right") as server:
        server.url = server.url.replace("right", "wrong")
        with pytest.raises(StepFailed, match="refused the user 'minutehand'") as failed:
            send_email.run(context_of(mailing, server))

    assert failed.value.permanent
    assert "wrong" not in str(failed.value)


def test_user_and_password_open_the_server(mailing: Work) -> None:
    with mail_server(user="minutehand", password="right") as server:
        send_email.run(context_of(mailing, server))

        assert len(server.took) == 2


def test_no_recipient_left_is_a_success_with_a_warning(mailing: Work, smtp: MailServer) -> None:
    result = send_email.run(context_of(mailing, smtp, [Recipient("eve", None, None)]))

    assert result.outcome is StepOutcome.SUCCESS
    assert result.message.startswith("warning: no recipient left, nothing was sent")
    assert result.details["without_address"] == {"count": 1, "samples": ["eve"]}
    assert smtp.took == []


def test_a_stop_is_partial_and_the_rest_is_sent_later(mailing: Work, smtp: MailServer) -> None:
    operation_id = mailing.operation()
    asked = iter([False, True])
    stopped = context_of(mailing, smtp, operation_id=operation_id, should_stop=lambda: next(asked))

    result = send_email.run(stopped)
    send_email.run(context_of(mailing, smtp, operation_id=operation_id))

    assert result.message == "sent 1 message by 127.0.0.1; stopped after 1 of 2"
    assert result.outcome is StepOutcome.PARTIAL
    assert smtp.recipients == ["ann@example.com", "ben@example.com"]


def test_a_worker_that_lost_its_lease_sends_nothing(mailing: Work, smtp: MailServer) -> None:
    operation_id = mailing.operation(attempt=2)

    with pytest.raises(LeaseLost):
        send_email.run(context_of(mailing, smtp, operation_id=operation_id, attempt=1))

    assert smtp.took == []


def test_an_unknown_template_is_named(mailing: Work) -> None:
    context = mailing.context(SendEmailParameters(template="welcom"), recipients=[ANN])

    with pytest.raises(StepFailed, match='did you mean "welcome"') as failed:
        send_email.run(context)

    assert failed.value.permanent


def test_an_unknown_value_of_a_template_is_named(mailing: Work) -> None:
    mailing.apply(templates={"welcome": {**WELCOME, "text": "{{ salutation }}"}})

    with pytest.raises(StepFailed, match="welcome text: 'salutation' is undefined") as failed:
        send_email.run(context_of(mailing, None))

    assert failed.value.permanent
    assert rows(mailing) == {}


def test_a_wrong_sender_names_its_setting(mailing: Work) -> None:
    with pytest.raises(StepFailed, match="SCHED_MAIL_SENDER: 'nobody' is not an e-mail address"):
        send_email.run(
            context_of(mailing, None, mail=MailSettings.model_construct(sender="nobody"))
        )
