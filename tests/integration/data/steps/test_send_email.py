"""send_email, on both stores, with a real SMTP server or as files."""

import smtplib
from collections.abc import Sequence
from email.message import EmailMessage
from itertools import count
from typing import Any

import pytest
import sqlalchemy as sa
from pydantic import SecretStr

from data.steps import send_email
from data.steps.send_email import SendEmailParameters
from data.store import deliveries
from data.store.deliveries import Delivery
from data.store.tables import deliveries as table
from minutebook.steps import Recipient, StepFailed, StepOutcome
from models.errors import LeaseLost
from runtime.clock import monotonic
from runtime.sections import MailSettings
from tasks.outgoing.mail.smtp import SmtpTransport
from tasks.step_context import WorkContext
from tests.factories import update_operation
from tests.integration.data.steps.conftest import ANN, BEN, Work, text_of
from tests.mail_server import MailServer, mail_server
from tests.servers import free_port
from tests.transactions import act, fetched

EVE = Recipient("eve", "eve@example.com", None)
WELCOME = {
    "subject": "Hello {{ recipient.name }}",
    "text": "It is {{ time }} in {{ small_app.zone }}.",
    "html": "<p>Dear {{ recipient.name }}</p>",
}


@pytest.fixture
def mailing(work: Work) -> Work:
    work.apply(templates={"welcome": WELCOME})
    return work


def context_of(
    work: Work,
    smtp: MailServer | None,
    recipients: Sequence[Recipient] = (ANN, BEN),
    **other: Any,
) -> WorkContext:
    if smtp is not None:
        other["smtp_url"] = SecretStr(smtp.url)
    return work.context(SendEmailParameters(template="welcome"), recipients=recipients, **other)


def rows(work: Work) -> dict[str, tuple[str, str | None]]:
    found = fetched(work.engine, sa.select(table).order_by(table.c.recipient))
    return {row.recipient: (row.state, row.error) for row in found}


def test_without_a_server_messages_are_files_and_the_result_says_where(mailing: Work) -> None:
    result = send_email.run(context_of(mailing, None))

    assert result.message == f"wrote 2 messages to {mailing.settings.home / 'mail'}"
    written = [one.read_text() for one in (mailing.settings.home / "mail").glob("*.eml")]
    assert len(written) == 2
    assert "ann@example.com" in "".join(written)
    assert "ben@example.com" in "".join(written)
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


def test_a_retry_skips_recipients_that_had_the_mail(mailing: Work, smtp: MailServer) -> None:
    smtp.answers["ben"] = "451 later"
    operation_id = mailing.operation()
    first = send_email.run(context_of(mailing, smtp, operation_id=operation_id))
    smtp.answers.clear()

    second = send_email.run(context_of(mailing, smtp, operation_id=operation_id))

    assert first.outcome is StepOutcome.PARTIAL
    assert first.details["put_off"] == {"count": 1, "samples": {"ben": "451 later"}}
    assert second.message == "sent 1 message by 127.0.0.1; 1 already had it"
    assert smtp.recipients == ["ann@example.com", "ben@example.com"]


def test_a_delivery_cut_off_while_sending_is_sent_again_under_the_same_id(
    mailing: Work, smtp: MailServer
) -> None:
    operation_id = mailing.operation()
    cut_off = Delivery(operation_id, "send_email", "ann")
    act(mailing.engine, deliveries.reserve, cut_off, "ann@example.com", "<first@example.com>")

    send_email.run(context_of(mailing, smtp, [ANN], operation_id=operation_id))

    assert [message["Message-ID"] for _to, message in smtp.took] == ["<first@example.com>"]
    assert rows(mailing) == {"ann": ("sent", None)}


@pytest.mark.parametrize(("answer", "permanent"), [("550 nobody here", True), ("451 later", False)])
def test_a_step_that_reaches_nobody_fails(
    mailing: Work, smtp: MailServer, answer: str, permanent: bool
) -> None:
    smtp.answers.update(ann=answer, ben="550 nobody here")

    with pytest.raises(StepFailed, match=f"no message was accepted: ann: {answer}") as failed:
        send_email.run(context_of(mailing, smtp))

    assert failed.value.permanent is permanent
    assert rows(mailing)["ben"] == ("failed", "550 nobody here")


def test_no_server_fails_for_now_and_sends_nothing(mailing: Work) -> None:
    url = SecretStr(f"smtp://127.0.0.1:{free_port()}")

    with pytest.raises(StepFailed, match=r"2 still wait: .*cannot be reached") as failed:
        send_email.run(context_of(mailing, None, smtp_url=url))

    assert not failed.value.permanent
    assert rows(mailing)["ann"][0] == "failed"


def test_recipients_refused_before_are_not_counted_as_waiting(
    mailing: Work, smtp: MailServer
) -> None:
    smtp.answers["ann"] = "550 nobody here"
    smtp.answers["ben"] = "450 busy"
    operation_id = mailing.operation()
    with pytest.raises(StepFailed):
        send_email.run(context_of(mailing, smtp, operation_id=operation_id))
    away = SecretStr(f"smtp://127.0.0.1:{free_port()}")

    with pytest.raises(StepFailed, match=r"0 messages by .*, 1 still wait: "):
        send_email.run(context_of(mailing, None, smtp_url=away, operation_id=operation_id))


def test_a_wrong_password_fails_for_good_without_showing_it(mailing: Work) -> None:
    with mail_server(user="minutebook", password="right") as server:
        server.url = server.url.replace("right", "wrong")
        with pytest.raises(StepFailed, match="refused the user 'minutebook'") as failed:
            send_email.run(context_of(mailing, server))

    assert failed.value.permanent
    assert "wrong" not in str(failed.value)


def test_no_recipient_left_is_a_success_with_a_warning(mailing: Work, smtp: MailServer) -> None:
    result = send_email.run(context_of(mailing, smtp, [Recipient("eve", None, None)]))

    assert result.outcome is StepOutcome.SUCCESS
    assert result.message.startswith("warning: no recipient left, nothing was sent")
    assert result.details["without_address"] == {"count": 1, "samples": ["eve"]}
    assert smtp.took == []


def test_an_unknown_template_is_named(mailing: Work) -> None:
    context = mailing.context(SendEmailParameters(template="welcom"), recipients=[ANN])

    with pytest.raises(StepFailed, match='did you mean "welcome"') as failed:
        send_email.run(context)

    assert failed.value.permanent


def test_an_unknown_value_of_a_template_is_named(mailing: Work) -> None:
    mailing.apply(templates={"welcome": {**WELCOME, "text": "{{ salutation }}"}})

    with pytest.raises(StepFailed) as failed:
        send_email.run(context_of(mailing, None))

    assert str(failed.value).startswith(
        "templates.welcome.text 'salutation': is not a known variable; known here: \"recipient\","
    )
    assert failed.value.permanent
    assert rows(mailing) == {}


def test_a_wrong_sender_names_its_setting(mailing: Work) -> None:
    with pytest.raises(StepFailed, match="SCHED_MAIL_SENDER: 'nobody' is not an e-mail address"):
        send_email.run(
            context_of(mailing, None, mail=MailSettings.model_construct(sender="nobody"))
        )


def test_a_next_attempt_sends_only_to_recipients_put_off(mailing: Work, smtp: MailServer) -> None:
    smtp.answers.update(ben="451 later", eve="550 nobody here")
    people = [ANN, BEN, EVE]
    operation_id = mailing.operation()
    with pytest.raises(StepFailed) as failed:
        send_email.run(
            context_of(mailing, smtp, people, operation_id=operation_id, attempts_left=1)
        )
    smtp.answers.clear()

    second = send_email.run(context_of(mailing, smtp, people, operation_id=operation_id))

    assert str(failed.value) == (
        "sent 1 message by 127.0.0.1; 1 refused (eve: 550 nobody here); 1 put off (ben: 451 later);"
        " a retry sends to those put off"
    )
    assert not failed.value.permanent
    assert smtp.recipients == ["ann@example.com", "ben@example.com"]
    assert second.outcome is StepOutcome.PARTIAL
    assert second.details == {
        "sent": 1,
        "had_it": 1,
        "refused": {"count": 1, "samples": {"eve": "550 nobody here"}},
    }


def test_a_corrected_address_is_tried_though_the_old_one_was_refused_for_good(
    mailing: Work, smtp: MailServer
) -> None:
    smtp.answers["ben"] = "550 nobody here"
    operation_id = mailing.operation()
    send_email.run(context_of(mailing, smtp, operation_id=operation_id))
    moved = Recipient("ben", "benjamin@example.com", None)

    result = send_email.run(context_of(mailing, smtp, [ANN, moved], operation_id=operation_id))

    assert result.outcome is StepOutcome.SUCCESS
    assert smtp.recipients == ["ann@example.com", "benjamin@example.com"]
    assert rows(mailing)["ben"] == ("sent", None)


def test_an_address_that_is_none_is_refused_for_good(mailing: Work, smtp: MailServer) -> None:
    wrong = Recipient("eve", "eve@example.com, ann@example.com", None)

    result = send_email.run(context_of(mailing, smtp, [ANN, wrong]))

    assert result.outcome is StepOutcome.PARTIAL
    assert "is not an e-mail address" in result.details["refused"]["samples"]["eve"]
    kept = sa.select(table.c.is_permanent).where(table.c.recipient == "eve")
    assert fetched(mailing.engine, kept).scalar_one() is True


def test_a_refused_sender_condemns_no_address(mailing: Work, smtp: MailServer) -> None:
    smtp.sender_answer = "550 not from you"
    operation_id = mailing.operation()
    with pytest.raises(StepFailed, match="the sender was refused") as failed:
        send_email.run(context_of(mailing, smtp, operation_id=operation_id))
    smtp.sender_answer = None

    send_email.run(context_of(mailing, smtp, operation_id=operation_id))

    assert failed.value.permanent
    assert smtp.recipients == ["ann@example.com", "ben@example.com"]


def test_when_the_server_goes_away_midway_the_rest_waits_for_the_next_attempt(
    mailing: Work, monkeypatch: pytest.MonkeyPatch
) -> None:
    people = [Recipient(f"u{n}", f"u{n}@example.com", None) for n in range(5)]
    operation_id = mailing.operation()
    connect, made = SmtpTransport._connect, count()

    def once(self: SmtpTransport) -> smtplib.SMTP:
        if next(made) == 1:
            raise ConnectionRefusedError("refused")
        return connect(self)

    monkeypatch.setattr(SmtpTransport, "_connect", once)
    with mail_server() as server:
        server.most_in_session = 1
        with pytest.raises(
            StepFailed, match=r"1 message by .*, 4 still wait: .* cannot be reached: refused"
        ) as failed:
            send_email.run(context_of(mailing, server, people, operation_id=operation_id))
        first = list(server.recipients)

        send_email.run(context_of(mailing, server, people, operation_id=operation_id))

        assert first == ["u0@example.com"]
        assert server.recipients == [f"u{n}@example.com" for n in range(5)]
    assert not failed.value.permanent


def test_what_was_taken_before_the_connection_broke_comes_again_under_the_same_id(
    mailing: Work, smtp: MailServer
) -> None:
    smtp.takes_and_drops.add("ann")
    operation_id = mailing.operation()
    first = send_email.run(context_of(mailing, smtp, operation_id=operation_id))
    smtp.takes_and_drops.clear()

    send_email.run(context_of(mailing, smtp, operation_id=operation_id))

    assert first.details["uncertain"] == 1
    assert smtp.recipients == ["ann@example.com", "ben@example.com", "ann@example.com"]
    assert smtp.took[0][1]["Message-ID"] == smtp.took[2][1]["Message-ID"]


def test_messages_keep_the_pace_that_is_set(mailing: Work, smtp: MailServer) -> None:
    people = [Recipient(f"u{n}", f"u{n}@example.com", None) for n in range(4)]
    began = monotonic()

    send_email.run(context_of(mailing, smtp, people, mail=MailSettings(rate=600)))

    assert monotonic() - began >= 0.3
    assert len(smtp.took) == 4


def test_a_wait_for_the_pace_ends_when_the_step_is_to_stop(mailing: Work, smtp: MailServer) -> None:
    context = context_of(
        mailing, smtp, mail=MailSettings(rate=1), should_stop=lambda: bool(smtp.took)
    )
    began = monotonic()

    result = send_email.run(context)

    assert result.message == "sent 1 message by 127.0.0.1; stopped after 1 of 2"
    assert result.outcome is StepOutcome.PARTIAL
    assert monotonic() - began < 30


def test_an_odd_id_adds_no_header(mailing: Work, smtp: MailServer) -> None:
    mail = MailSettings(reply_to="help@example.com")
    odd = Recipient("ann@shop>\r\nBcc: x", "ann@example.com", None)

    send_email.run(context_of(mailing, smtp, [odd, BEN], mail=mail))

    assert smtp.took[0][1]["Reply-To"] == "help@example.com"
    assert smtp.took[0][1]["Bcc"] is None


def test_messages_sent_before_a_template_failed_are_recorded(
    mailing: Work, smtp: MailServer
) -> None:
    text = "{{ 1 / (recipient.name|length - 4) }}"
    mailing.apply(templates={"welcome": {"subject": "s", "text": text}})
    four = Recipient("benn", "ben@example.com", None)

    with pytest.raises(StepFailed, match="welcome text, line 1: division by zero") as failed:
        send_email.run(context_of(mailing, smtp, [ANN, four]))

    assert failed.value.permanent
    assert rows(mailing) == {"ann": ("sent", None)}


def test_messages_sent_before_the_lease_was_lost_are_recorded(
    mailing: Work, smtp: MailServer
) -> None:
    operation_id = mailing.operation()

    def taken_over() -> bool:
        if smtp.took:
            update_operation(mailing.engine, operation_id, attempt=2)
        return False

    with pytest.raises(LeaseLost):
        send_email.run(context_of(mailing, smtp, operation_id=operation_id, should_stop=taken_over))

    assert smtp.recipients == ["ann@example.com"]
    assert rows(mailing) == {"ann": ("sent", None)}
