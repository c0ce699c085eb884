"""`minutebook template …` and `notify …`: test messages, as a user sends them."""

import json
from pathlib import Path

import pytest
import sqlalchemy as sa

from models.tables import audit
from tests.integration.cli.conftest import Call
from tests.mail_server import MailServer
from tests.receiver import receiver
from tests.transactions import fetched

APP = {
    "name": "shop",
    "title": "The Shop",
    "zone": "Europe/Paris",
    "templates": {
        "welcome": {
            "subject": "Hello {{ recipient.name }}",
            "text": "Dear {{ recipient.name }} of {{ small_app.title }}",
            "html": "<p>{{ recipient.name }}</p>",
        },
        "plain": {"subject": "Plain", "text": "{{ date }}"},
    },
}


@pytest.fixture
def shop(call: Call, tmp_path: Path) -> Call:
    (tmp_path / "shop.json").write_text(json.dumps(APP))
    assert call("app", "apply", str(tmp_path / "shop.json"))[0] == 0
    return call


def test_a_test_mail_goes_to_one_address_and_no_delivery_is_noted(
    shop: Call, smtp: MailServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SCHED_SMTP_URL", smtp.url)

    code, out, _err = shop(
        "--app", "shop", "template", "send-test", "welcome", "--to", "eve@example.com"
    )

    assert (code, out) == (0, "sent 1 message by 127.0.0.1\n")
    assert smtp.recipients == ["eve@example.com"]
    assert smtp.took[0][1]["Subject"] == "Hello Ann Example"


def test_a_test_mail_counts_and_stands_in_the_audit_trail(
    shop: Call, stored: sa.Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SCHED_LIMITS_MAILS", "1")
    send = ("--app", "shop", "template", "send-test", "plain", "--to", "eve@example.com")
    first, _out, _err = shop(*send)

    _code, _out, err = shop(*send)
    rows = fetched(stored, sa.select(audit.c.object, audit.c.details, audit.c.verb)).all()

    assert first == 0
    assert "small app 'shop' is restricted to 1 mails in 24 hours (SCHED_LIMITS_MAILS)" in err
    assert ("plain", {"to": "eve@example.com"}, "template.send_test") in rows


def test_a_test_mail_that_nobody_took_is_a_failure_whose_answer_hides_nothing(
    shop: Call, smtp: MailServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SCHED_SMTP_URL", smtp.url)
    smtp.answers["eve"] = "550 nobody \u202e here"

    code, _out, err = shop("--app=shop", "template", "send-test", "plain", "--to=eve@example.com")

    assert code == 1
    assert err == "error: the test mail was not accepted: 550 nobody \\u202e here\n"


def test_a_channel_is_listed_and_takes_a_test(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    with receiver() as chat:
        monkeypatch.setenv("SCHED_HOOK_ALLOW_PRIVATE", "true")
        monkeypatch.setenv("SCHED_NOTIFY_OPS", chat.url.replace("http://", "json://"))

        listed = call("notify", "list")
        tested = call("notify", "test", "ops")
        chat.answers = [500]
        refused = call("notify", "test", "ops")
        unknown = call("notify", "test", "pager")

    assert listed.out.split() == ["NAME", "ops"]
    assert tested.out == "channel ops took the test message\n"
    assert refused.code == 2
    assert refused.err.startswith("error: channel ops: ")
    assert (unknown.code, "SCHED_NOTIFY_PAGER" in unknown.err) == (2, True)
