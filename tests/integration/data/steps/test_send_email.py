"""send_email, on both stores, with a real SMTP server or as files."""

import smtplib
from dataclasses import dataclass, field
from email.message import EmailMessage
from itertools import count
from typing import Any
from uuid import UUID

import pytest
import sqlalchemy as sa
from pydantic import SecretStr

from data.settings import Settings
from data.steps import send_email
from data.steps.send_email import SendEmailParameters
from data.store import deliveries
from data.store.deliveries import Delivery
from data.store.tables import deliveries as table
from minutebook.steps import Recipient, StepFailed, StepOutcome, StepResult
from models.errors import LeaseLost
from runtime.clock import monotonic
from runtime.sections import MailSettings
from tasks.outgoing.mail.smtp import SmtpTransport
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


@dataclass
class Mails(Work):
    """A small app with a template, a server for its mails, and an operation that sends them."""

    smtp: MailServer = field(kw_only=True)
    id: UUID = field(init=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.apply(templates={"welcome": WELCOME})
        self.id = self.operation()

    def send(self, *recipients: Recipient, **given: Any) -> StepResult:
        """Run the step, by default for Ann and Ben."""
        its = {"operation_id": self.id, "smtp_url": SecretStr(self.smtp.url), **given}
        parameters = SendEmailParameters(template="welcome")
        return send_email.run(self.context(parameters, recipients=recipients or (ANN, BEN), **its))

    def rows(self) -> dict[str, tuple[str, str | None]]:
        found = fetched(self.engine, sa.select(table).order_by(table.c.recipient))
        return {row.recipient: (row.state, row.error) for row in found}


@pytest.fixture
def mails(engine: sa.Engine, settings: Settings, smtp: MailServer) -> Mails:
    return Mails(engine, settings, smtp=smtp)


def test_without_a_server_messages_are_files_and_the_result_says_where(mails: Mails) -> None:
    result = mails.send(smtp_url=SecretStr(""))

    assert result.message == f"wrote 2 messages to {mails.settings.home / 'mail'}"
    written = [one.read_text() for one in (mails.settings.home / "mail").glob("*.eml")]
    assert len(written) == 2
    assert "ann@example.com" in "".join(written)
    assert "ben@example.com" in "".join(written)
    assert mails.rows() == {"ann": ("sent", None), "ben": ("sent", None)}


def test_each_recipient_gets_one_rendered_message(mails: Mails) -> None:
    result = mails.send()

    assert result.message == "sent 2 messages by 127.0.0.1"
    assert mails.smtp.recipients == ["ann@example.com", "ben@example.com"]
    assert mails.smtp.sessions == 1
    message = mails.smtp.took[0][1]
    assert isinstance(message, EmailMessage)
    assert message["Subject"] == "Hello Ann"
    assert text_of(message) == "It is 07:00 in Europe/Paris.\n"
    assert text_of(message, "html") == "<p>Dear Ann</p>\n"


def test_a_delivery_cut_off_while_sending_is_sent_again_under_the_same_id(mails: Mails) -> None:
    cut_off = Delivery(mails.id, "send_email", "ann")
    act(mails.engine, deliveries.reserve, cut_off, "ann@example.com", "<first@example.com>")

    mails.send(ANN)

    assert [message["Message-ID"] for _to, message in mails.smtp.took] == ["<first@example.com>"]
    assert mails.rows() == {"ann": ("sent", None)}


@pytest.mark.parametrize(("answer", "permanent"), [("550 nobody here", True), ("451 later", False)])
def test_a_step_that_reaches_nobody_fails(mails: Mails, answer: str, permanent: bool) -> None:
    mails.smtp.answers.update(ann=answer, ben="550 nobody here")

    with pytest.raises(StepFailed, match=f"no message was accepted: ann: {answer}") as failed:
        mails.send()

    assert failed.value.permanent is permanent
    assert mails.rows()["ben"] == ("failed", "550 nobody here")


def test_no_server_fails_for_now_and_sends_nothing(mails: Mails) -> None:
    url = SecretStr(f"smtp://127.0.0.1:{free_port()}")

    with pytest.raises(StepFailed, match=r"2 still wait: .*cannot be reached") as failed:
        mails.send(smtp_url=url)

    assert not failed.value.permanent
    assert mails.rows()["ann"][0] == "failed"


def test_recipients_refused_before_are_not_counted_as_waiting(mails: Mails) -> None:
    mails.smtp.answers["ann"] = "550 nobody here"
    mails.smtp.answers["ben"] = "450 busy"
    with pytest.raises(StepFailed):
        mails.send()
    away = SecretStr(f"smtp://127.0.0.1:{free_port()}")

    with pytest.raises(StepFailed, match=r"0 messages by .*, 1 still wait: "):
        mails.send(smtp_url=away)


def test_a_wrong_password_fails_for_good_without_showing_it(mails: Mails) -> None:
    with mail_server(user="minutebook", password="right") as server:
        url = SecretStr(server.url.replace("right", "wrong"))
        with pytest.raises(StepFailed, match="refused the user 'minutebook'") as failed:
            mails.send(smtp_url=url)

    assert failed.value.permanent
    assert "wrong" not in str(failed.value)


def test_no_recipient_left_is_a_success_with_a_warning(mails: Mails) -> None:
    result = mails.send(Recipient("eve", None, None))

    assert result.outcome is StepOutcome.SUCCESS
    assert result.message.startswith("warning: no recipient left, nothing was sent")
    assert result.details["without_address"] == {"count": 1, "samples": ["eve"]}
    assert mails.smtp.took == []


def test_an_unknown_template_is_named(mails: Mails) -> None:
    context = mails.context(SendEmailParameters(template="welcom"), recipients=[ANN])

    with pytest.raises(StepFailed, match='did you mean "welcome"') as failed:
        send_email.run(context)

    assert failed.value.permanent


def test_an_unknown_value_of_a_template_is_named(mails: Mails) -> None:
    mails.apply(templates={"welcome": {**WELCOME, "text": "{{ salutation }}"}})

    with pytest.raises(StepFailed) as failed:
        mails.send(smtp_url=SecretStr(""))

    assert str(failed.value).startswith(
        "templates.welcome.text 'salutation': is not a known variable; known here: \"recipient\","
    )
    assert failed.value.permanent
    assert mails.rows() == {}


def test_a_wrong_sender_names_its_setting(mails: Mails) -> None:
    with pytest.raises(StepFailed, match="SCHED_MAIL_SENDER: 'nobody' is not an e-mail address"):
        mails.send(mail=MailSettings.model_construct(sender="nobody"))


def test_a_next_attempt_sends_only_to_recipients_put_off(mails: Mails) -> None:
    mails.smtp.answers.update(ben="451 later", eve="550 nobody here")
    people = [ANN, BEN, EVE]
    with pytest.raises(StepFailed) as failed:
        mails.send(*people, attempts_left=1)
    mails.smtp.answers.clear()

    second = mails.send(*people)

    assert str(failed.value) == (
        "sent 1 message by 127.0.0.1; 1 refused (eve: 550 nobody here); 1 put off (ben: 451 later);"
        " a retry sends to those put off"
    )
    assert not failed.value.permanent
    assert mails.smtp.recipients == ["ann@example.com", "ben@example.com"]
    assert second.outcome is StepOutcome.PARTIAL
    assert second.details == {
        "sent": 1,
        "had_it": 1,
        "refused": {"count": 1, "samples": {"eve": "550 nobody here"}},
    }


def test_a_corrected_address_is_tried_though_the_old_one_was_refused_for_good(mails: Mails) -> None:
    mails.smtp.answers["ben"] = "550 nobody here"
    mails.send()
    moved = Recipient("ben", "benjamin@example.com", None)

    result = mails.send(ANN, moved)

    assert result.outcome is StepOutcome.SUCCESS
    assert mails.smtp.recipients == ["ann@example.com", "benjamin@example.com"]
    assert mails.rows()["ben"] == ("sent", None)


def test_an_address_that_is_none_is_refused_for_good(mails: Mails) -> None:
    wrong = Recipient("eve", "eve@example.com, ann@example.com", None)

    result = mails.send(ANN, wrong)

    assert result.outcome is StepOutcome.PARTIAL
    assert "is not an e-mail address" in result.details["refused"]["samples"]["eve"]
    kept = sa.select(table.c.is_permanent).where(table.c.recipient == "eve")
    assert fetched(mails.engine, kept).scalar_one() is True


def test_a_refused_sender_condemns_no_address(mails: Mails) -> None:
    mails.smtp.sender_answer = "550 not from you"
    with pytest.raises(StepFailed, match="the sender was refused") as failed:
        mails.send()
    mails.smtp.sender_answer = None

    mails.send()

    assert failed.value.permanent
    assert mails.smtp.recipients == ["ann@example.com", "ben@example.com"]


def test_when_the_server_goes_away_midway_the_rest_waits_for_the_next_attempt(
    mails: Mails, monkeypatch: pytest.MonkeyPatch
) -> None:
    people = [Recipient(f"u{n}", f"u{n}@example.com", None) for n in range(5)]
    connect, made = SmtpTransport._connect, count()

    def once(self: SmtpTransport) -> smtplib.SMTP:
        if next(made) == 1:
            raise ConnectionRefusedError("refused")
        return connect(self)

    monkeypatch.setattr(SmtpTransport, "_connect", once)
    mails.smtp.most_in_session = 1
    waits = r"1 message by .*, 4 still wait: .* cannot be reached: refused"
    with pytest.raises(StepFailed, match=waits) as failed:
        mails.send(*people)
    first = list(mails.smtp.recipients)

    mails.send(*people)

    assert not failed.value.permanent
    assert first == ["u0@example.com"]
    assert mails.smtp.recipients == [f"u{n}@example.com" for n in range(5)]


def test_what_was_taken_before_the_connection_broke_comes_again_under_the_same_id(
    mails: Mails,
) -> None:
    mails.smtp.takes_and_drops.add("ann")
    first = mails.send()
    mails.smtp.takes_and_drops.clear()

    mails.send()

    assert first.details["uncertain"] == 1
    assert mails.smtp.recipients == ["ann@example.com", "ben@example.com", "ann@example.com"]
    assert mails.smtp.took[0][1]["Message-ID"] == mails.smtp.took[2][1]["Message-ID"]


def test_messages_keep_the_pace_that_is_set(mails: Mails) -> None:
    people = [Recipient(f"u{n}", f"u{n}@example.com", None) for n in range(4)]
    began = monotonic()

    mails.send(*people, mail=MailSettings(rate=600))

    assert monotonic() - began >= 0.3
    assert len(mails.smtp.took) == 4


def test_a_wait_for_the_pace_ends_when_the_step_is_to_stop(mails: Mails) -> None:
    result = mails.send(mail=MailSettings(rate=1), should_stop=lambda: bool(mails.smtp.took))

    assert result.message == "sent 1 message by 127.0.0.1; stopped after 1 of 2"
    assert result.outcome is StepOutcome.PARTIAL


def test_an_odd_id_adds_no_header(mails: Mails) -> None:
    mail = MailSettings(reply_to="help@example.com")
    odd = Recipient("ann@shop>\r\nBcc: x", "ann@example.com", None)

    mails.send(odd, BEN, mail=mail)

    assert mails.smtp.took[0][1]["Reply-To"] == "help@example.com"
    assert mails.smtp.took[0][1]["Bcc"] is None


def test_messages_sent_before_a_template_failed_are_recorded(mails: Mails) -> None:
    text = "{{ 1 / (recipient.name|length - 4) }}"
    mails.apply(templates={"welcome": {"subject": "s", "text": text}})
    four = Recipient("benn", "ben@example.com", None)

    with pytest.raises(StepFailed, match="welcome text, line 1: division by zero") as failed:
        mails.send(ANN, four)

    assert failed.value.permanent
    assert mails.rows() == {"ann": ("sent", None)}


def test_messages_sent_before_the_lease_was_lost_are_recorded(mails: Mails) -> None:

    def taken_over() -> bool:
        if mails.smtp.took:
            update_operation(mails.engine, mails.id, attempt=2)
        return False

    with pytest.raises(LeaseLost):
        mails.send(should_stop=taken_over)

    assert mails.smtp.recipients == ["ann@example.com"]
    assert mails.rows() == {"ann": ("sent", None)}
