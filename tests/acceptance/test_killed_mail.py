"""A worker is killed between the mail server's answer and the record of it."""

import os
import signal
from uuid import UUID

import psutil
import pytest
import sqlalchemy as sa

from data.store.tables import deliveries
from models.store.people.users import import_users
from models.store.tenants import storing
from models.tenant.document import parse_small_app
from models.users import parse_users
from runtime.database import reading
from tests.acceptance.installation import Installation
from tests.acceptance.processes import until
from tests.mail_server import mail_server

PEOPLE = [{"id": name, "email": f"{name}@example.com"} for name in ("ann", "ben", "eve")]
TEMPLATES = {"news": {"subject": "News", "text": "Dear {{ recipient.id }}"}}


def _prepare(installation: Installation) -> UUID:
    """Store people and a template; return a recorded operation that mails it to them."""
    model = parse_small_app({"name": "default", "templates": TEMPLATES})
    with installation.engine.begin() as connection:
        app, _applied = storing.apply(connection, model)
        import_users(connection, app.id, parse_users(PEOPLE))
    action = installation.action(
        operations={"send_email": {"template": "news"}},
        recipients={"groups": ["all"], "include_inactivated_users": True},
    )
    return installation.operation(action)


def _states(installation: Installation) -> dict[str, str]:
    with reading(installation.engine) as connection:
        found = connection.execute(sa.select(deliveries.c.recipient, deliveries.c.state)).all()
    return {row.recipient: row.state for row in found}


@pytest.mark.parametrize("victim", ["child", "main"])
def test_a_message_whose_record_was_cut_off_comes_once_more_under_the_same_id(
    installation: Installation, victim: str
) -> None:
    id = _prepare(installation)
    frozen: list[int] = []

    with mail_server() as server:

        def freeze(address: str) -> None:
            # Who sends stands still from before the answer until its end: it never reads it.
            if address == "ben@example.com" and not frozen:
                # Not the processes in which the child renders mails.
                (child,) = psutil.Process(first.pid).children()
                child.suspend()
                frozen.append(child.pid)

        server.on_taken = freeze
        settings = {"SCHED_SMTP_URL": server.url}
        first = installation.worker(settings=settings, is_awaited=True)
        installation.send()
        until(lambda: bool(frozen), "ben's message is taken")
        os.kill(frozen[0], signal.SIGKILL)
        if victim == "main":
            first.kill()
            installation.worker(settings=settings)
        installation.daemon(settings)
        row = installation.becomes(id, "success")

        assert row["attempt"] == 2
        assert server.recipients == [
            "ann@example.com", "ben@example.com", "ben@example.com", "eve@example.com",
        ]  # fmt: skip
        assert server.took[1][1]["Message-ID"] == server.took[2][1]["Message-ID"]
    assert _states(installation) == dict.fromkeys(("ann", "ben", "eve"), "sent")
