"""What users do, told on the command line, runs actions by a real daemon and worker."""

import json
from typing import Any

from tests.acceptance.installation import Installation
from tests.acceptance.processes import until

TEMPLATES = {
    "welcome back": {
        "subject": "Welcome back, {{ recipient.name }}",
        "text": "Good to see you, {{ recipient.name }}.",
    }
}
ON_SEEN = {
    "name": "welcome back",
    "operations": {"send_email": {"template": "welcome back"}},
    "when": {"on": "instance.user.last_seen"},
    "recipients": {"groups": ["shop"]},
}
PAID = {"name": "thanks", "operations": {"trace_one": True}, "when": {"on": "order.paid"}}


def add(installation: Installation, kind: str, document: dict[str, Any]) -> Any:
    """Store a document by the command line."""
    file = installation.file(f"{document['name']}.json")
    file.write_text(json.dumps(document))
    return installation.cli(kind, "add", str(file))


def mails(installation: Installation) -> list[str]:
    return [path.read_text() for path in (installation.home / "mail").glob("*.eml")]


def test_a_user_who_is_seen_gets_the_mail_and_nobody_else(installation: Installation) -> None:
    add(installation, "app", {"name": "default", "zone": "UTC", "templates": TEMPLATES})
    for id in ("ann@example.com", "ben@example.com", "cleo@example.com"):
        groups = () if id.startswith("cleo") else ("--group", "shop")
        installation.cli("user", "add", id, "--activated-at", "now", *groups)
    add(installation, "action", ON_SEEN)
    installation.worker()
    installation.daemon()

    for id in ("ann@example.com", "cleo@example.com"):
        installation.cli("event", "send", "instance.user.last_seen", "--user", id)
    until(lambda: installation.count_of("success") == 1, "one operation has ended")

    (mail,) = mails(installation)
    (row,) = installation.rows()
    assert row["subject"] == "ann@example.com"
    assert "To: ann@example.com" in mail
    assert "welcome back" in row["triggerer"]


def test_each_order_runs_once_with_two_daemons_of_which_one_is_killed(
    installation: Installation,
) -> None:
    installation.cli("user", "add", "ann@example.com", "--activated-at", "now")
    add(installation, "action", PAID)
    installation.worker()
    killed = installation.daemon()
    installation.daemon()

    send = ("event", "send", "order.paid", "--user", "ann@example.com", "--id")
    for number in range(4):
        installation.cli(*send, str(number))
        again = installation.cli(*send, str(number))
        assert again["change"] == "known"
        if number == 1:
            killed.kill()
    until(lambda: installation.count_of("success") == 4, "each order has run")

    rows = installation.rows()
    assert sorted(row["event_id"] for row in rows) == ["0", "1", "2", "3"]
    assert all(
        installation.trace.story(row["id"]) == [(1, "trace_one", "start"), (1, "trace_one", "end")]
        for row in rows
    )
