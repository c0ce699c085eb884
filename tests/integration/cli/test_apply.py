"""Applying many documents: one summary, and no query for each."""

import json
from datetime import timedelta
from typing import Any

import sqlalchemy as sa

from models.sql import read_clock
from models.store.actions.status import health_in, perhaps_unhealthy
from models.tables import action_cursor
from runtime.clock import wait_for
from runtime.config import Settings
from runtime.database import reading
from scheduler.changes.change import create_all
from services import changes
from services.upcoming import show
from tests.factories import author, installation_on, make_document
from tests.integration.cli.conftest import Call, Write
from tests.statements import executed

HOURLY = {"cron_rule": "0 * * * *", "timezone": "UTC"}


def mails(number: int, **changes: Any) -> dict[str, Any]:
    """Return an action that names users, groups and a template, none of which is there."""
    recipients = {"users": [f"user{number}@example.com"], "groups": ["staff"]}
    steps = {"send_email": {"template": "hello"}}
    return make_document(
        name=f"mail {number}", operations=steps, recipients=recipients, when=HOURLY, **changes
    )


def test_the_number_of_statements_does_not_grow_with_the_actions(
    settings: Settings, engine: sa.Engine
) -> None:
    installation = installation_on(engine, settings)

    def statements(number: int) -> list[int]:
        """Count those that create so many actions, and those that apply them again."""
        documents, counted = [mails(n) for n in range(number, 2 * number)], []
        for _ in range(2):
            with executed(engine) as seen:
                made = changes.apply(installation, documents)
            assert len([one for one in made.root if one.warnings]) == number
            counted.append(len(seen))
        return counted

    few, many = statements(3), statements(60)

    assert all(more <= less for more, less in zip(many, few, strict=True))


def test_apply_prints_one_line_and_the_first_warnings(call: Call, write: Write) -> None:
    first = "\n".join(json.dumps(mails(n)) for n in range(40))
    second = "\n".join(json.dumps(mails(n, description="new")) for n in range(38, 42))
    call("action", "apply", write(first, "first.jsonl"))

    done = call("action", "apply", write(second, "second.jsonl"))

    lines = done.out.splitlines()
    assert lines[0] == "created 2, changed 2, unchanged 0"
    assert lines[1].startswith("  warning: mail 38: recipients.users")
    assert lines[-1] == "  … and 10 more warnings; --verbose shows them"
    assert (len(lines), done.err) == (12, "")


def test_a_date_that_passed_during_a_pause_is_said_at_resume_and_in_the_list(
    settings: Settings, engine: sa.Engine
) -> None:
    installation = installation_on(engine, settings)
    with reading(engine) as connection:
        soon = read_clock(connection).replace(microsecond=0) + timedelta(seconds=2)
    once = make_document(name="once", when={"due_date": soon.isoformat()}, active=False)
    (stored,) = create_all(engine, [once], author())

    def has_come() -> bool:
        with reading(engine) as connection:
            return read_clock(connection) > soon

    assert wait_for(has_come, 5)

    resumed = changes.resume(installation, "once")

    text = "no occurrence is to come; give it another date or rule"
    assert resumed.warnings == (text,)
    assert show(installation, "once").health == f"never ran, and {text}"
    # By what a tick writes then, the verdict finds it.
    with engine.begin() as connection:
        its_own = action_cursor.c.action_uid == stored.uid
        connection.execute(sa.update(action_cursor).where(its_own).values(next_occurrence_at=None))
        (found,) = perhaps_unhealthy(connection)
    assert health_in(found, 3).sentence == f"never ran, and {text}"


def test_many_actions_that_a_file_resumes_are_named(call: Call, write: Write) -> None:
    def named(**changes: object) -> str:
        made = [make_document(name=f"n{n}", **changes) for n in range(11)]
        return write("\n".join(map(json.dumps, made)), "many.jsonl")

    call("action", "add", named(active=False))
    done = call("action", "apply", named(active=True))

    assert done.out.splitlines()[:2] == ["resumed n0", "resumed n1"]
    assert done.out.splitlines()[-1] == "created 0, changed 11, unchanged 0"
