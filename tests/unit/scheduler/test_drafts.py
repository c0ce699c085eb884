"""Drafts that differ from another in the name alone make the revisions that they make alone."""

from collections import namedtuple
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from models.action.document import ParseContext
from models.errors import InvalidAction
from scheduler.changes.revisions import Revision, revision_of
from scheduler.changes.validation import Drafts
from tests.factories import STEPS, author, make_document

NOW = datetime(2026, 11, 23, 6, tzinfo=UTC)
CONTEXT = ParseContext(default_zone="UTC", now=NOW, steps=STEPS)
DUE = "2026-11-22T06:00:00Z"
Row = namedtuple("Row", ["created_at", "active", "document"])


def made(*documents: object, **known: Any) -> list[Revision]:
    return Drafts(documents, author(), NOW, **known).revisions


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({}, id="cron"),
        pytest.param({"when": {"every": "PT1H"}}, id="interval"),
        pytest.param({"owner": "me", "policy": {"retry": {"max_attempts": 3}}}, id="policy"),
    ],
)
def test_the_revision_is_that_of_the_document_alone(changes: dict[str, Any]) -> None:
    both = [make_document(**changes), make_document(name="Größe €", **changes)]

    revisions = made(*both)

    assert [revision_of(one, CONTEXT, "tests") for one in both] == revisions
    assert revisions[0].plan is revisions[1].plan


@pytest.mark.parametrize(
    ("when", "begins"),
    [
        pytest.param({"every": "PT1H"}, True, id="interval"),
        pytest.param({"rrule": "FREQ=DAILY", "at": "09:00"}, True, id="recurrence"),
        pytest.param(
            [{"rrule": "FREQ=DAILY;INTERVAL=2", "at": "09:00"}], True, id="one_of_several"
        ),
        pytest.param({"cron_rule": "0 7 * * *"}, False, id="cron"),
    ],
)
def test_a_rule_that_begins_with_its_action_has_its_beginning(when: object, begins: bool) -> None:
    created_at = NOW - timedelta(days=9, minutes=7)
    drafts = Drafts([make_document(when=when), make_document(name="b", when=when)], author(), NOW)
    new = list(drafts.revisions)

    drafts.settle({1: Row(created_at, True, None)})  # type: ignore[dict-item]

    alone = ParseContext("UTC", NOW, STEPS, created_at=created_at)
    assert drafts.revisions[0] is new[0]
    assert drafts.revisions[1] == revision_of(make_document(name="b", when=when), alone, "tests")
    assert (drafts.revisions[1] != new[1]) is begins


@pytest.mark.parametrize(("says", "is_active"), [({}, False), ({"active": True}, True)])
def test_a_paused_action_stays_so_unless_its_document_says_otherwise(
    says: dict[str, Any], is_active: bool
) -> None:
    drafts = Drafts([make_document(**says)], author(), NOW)

    drafts.settle({0: Row(NOW, False, None)})  # type: ignore[dict-item]

    assert drafts.revisions[0].plan.active is is_active


def test_a_past_due_date_is_kept_only_by_the_action_that_has_it() -> None:
    documents = [make_document(name=name, when={"due_date": DUE}) for name in "ab"]
    drafts = Drafts(documents, author(), NOW, may_exist=True)
    stored = Row(NOW, True, drafts.revisions[0].columns["document"])

    drafts.check_due_dates({0: stored}, NOW)  # type: ignore[dict-item]
    with pytest.raises(InvalidAction, match=r"^\[1\] when\.due_date .* is in the past"):
        drafts.check_due_dates({0: stored, 1: None}, NOW)  # type: ignore[dict-item]
    with pytest.raises(InvalidAction, match="is in the past"):
        made(*documents)


@pytest.mark.parametrize("name", [None, 7, "-an-option"])
def test_a_wrong_name_is_refused_as_alone(name: object) -> None:
    document = make_document(name=name)

    with pytest.raises(InvalidAction) as alone:
        revision_of(document, CONTEXT, "tests")
    with pytest.raises(InvalidAction) as found:
        made(make_document(), document)

    told = [(one.path, one.remedy) for one in alone.value.problems]
    assert [(one.path.removeprefix("[1] "), one.remedy) for one in found.value.problems] == told


def test_equal_values_of_other_kinds_are_not_alike() -> None:
    one, true = (make_document(name=f"{n}", policy={"max_waiting": n}) for n in (1, True))

    with pytest.raises(InvalidAction, match="whole number"):
        made(one, true)
