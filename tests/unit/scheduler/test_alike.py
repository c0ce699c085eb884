"""A document that differs from another in its name alone makes the revision that it makes alone."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from models.action.document import ParseContext
from models.errors import InvalidAction
from scheduler.changes.alike import AlikeDocuments
from scheduler.changes.revisions import Revision, revision_of
from tests.factories import STEPS, make_document

NOW = datetime(2026, 11, 23, 6, tzinfo=UTC)
CONTEXT = ParseContext(default_zone="Europe/Paris", now=NOW, steps=STEPS)
DUE = "2026-11-22T06:00:00Z"


def made(*given: tuple[object, ParseContext]) -> list[Revision]:
    alike = AlikeDocuments("tests")
    return [alike.revision_of(document, context) for document, context in given]


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({}, id="cron"),
        pytest.param({"when": {"every": "PT1H"}}, id="interval"),
        pytest.param({"when": {"after": {"action": "first"}}}, id="end"),
        pytest.param({"owner": "me", "policy": {"retry": {"max_attempts": 3}}}, id="policy"),
        pytest.param({"recipients": {"users": ["ann@example.com"]}}, id="recipients"),
    ],
)
def test_the_revision_is_that_of_the_document_alone(changes: dict[str, Any]) -> None:
    first, second = make_document(**changes), make_document(name="Größe €", **changes)

    revisions = made((first, CONTEXT), (second, CONTEXT))

    assert [revision_of(one, CONTEXT, "tests") for one in (first, second)] == revisions
    assert revisions[0].plan is revisions[1].plan


def test_actions_made_at_other_instants_have_other_grids() -> None:
    document = make_document(when={"every": "PT1H"})
    later = ParseContext("UTC", NOW, STEPS, created_at=NOW - timedelta(minutes=7))

    revisions = made((document, CONTEXT), ({**document, "name": "later"}, later))

    assert revision_of({**document, "name": "later"}, later, "tests") == revisions[1]


def test_actions_made_at_other_instants_share_all_but_a_grid() -> None:
    document = make_document()
    later = replace(CONTEXT, created_at=NOW - timedelta(minutes=7))

    revisions = made((document, CONTEXT), ({**document, "name": "later"}, later))

    assert revision_of({**document, "name": "later"}, later, "tests") == revisions[1]
    assert revisions[0].plan is revisions[1].plan


@pytest.mark.parametrize(
    "when",
    [
        pytest.param({"every": "PT1H"}, id="interval"),
        pytest.param({"rrule": "FREQ=DAILY", "at": "09:00"}, id="recurrence"),
        pytest.param([{"rrule": "FREQ=DAILY;INTERVAL=2", "at": "09:00"}], id="one_of_several"),
        pytest.param({"every": "PT1H", "from": "end"}, id="from_end"),
    ],
)
def test_a_rule_that_begins_with_its_action_has_its_own_beginning(when: object) -> None:
    document = make_document(when=when)
    later = replace(CONTEXT, created_at=NOW - timedelta(days=9, minutes=7))

    revisions = made((document, CONTEXT), ({**document, "name": "later"}, later))

    assert revision_of({**document, "name": "later"}, later, "tests") == revisions[1]


def test_a_past_due_date_is_kept_only_by_the_action_that_has_it() -> None:
    document = make_document(when={"due_date": DUE})
    edited = ParseContext("UTC", NOW, STEPS, previous=document)
    alike = AlikeDocuments("tests")
    alike.revision_of(document, edited)

    with pytest.raises(InvalidAction, match="is in the past"):
        alike.revision_of({**document, "name": "another"}, CONTEXT)


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(None, id="missing"),
        pytest.param(7, id="no_text"),
        pytest.param("", id="empty"),
        pytest.param("a\nb", id="two_lines"),
        pytest.param("a\0b", id="nul"),
        pytest.param("-x", id="an_option"),
    ],
)
def test_a_wrong_name_is_refused_as_alone(name: object) -> None:
    document = make_document(name=name)
    alike = AlikeDocuments("tests")
    alike.revision_of(make_document(), CONTEXT)

    with pytest.raises(InvalidAction) as alone:
        revision_of(document, CONTEXT, "tests")
    with pytest.raises(InvalidAction) as found:
        alike.revision_of(document, CONTEXT)

    assert alone.value.problems == found.value.problems


def test_equal_values_of_other_kinds_are_not_alike() -> None:
    alike = AlikeDocuments("tests")
    alike.revision_of(make_document(policy={"max_waiting": 1}), CONTEXT)

    with pytest.raises(InvalidAction, match="whole number"):
        alike.revision_of(make_document(policy={"max_waiting": True}), CONTEXT)
