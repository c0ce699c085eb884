from dataclasses import dataclass
from datetime import UTC, datetime

import pytest
from pydantic import ValidationError

from models.action.recipients import RecipientFilterModel


@dataclass(frozen=True)
class Person:
    id: str
    email: str = "someone@example.com"
    active: bool = True
    activated_at: datetime | None = datetime(2026, 1, 1, tzinfo=UTC)
    groups: frozenset[str] = frozenset()


WELL = Person("well")
INACTIVE = Person("inactive", active=False)
INACTIVATED = Person("inactivated", activated_at=None)
BOTH = Person("both", active=False, activated_at=None)
EVERYBODY = (WELL, INACTIVE, INACTIVATED, BOTH)

INCLUDE_INACTIVE = "include_inactive_users"
INCLUDE_INACTIVATED = "include_inactivated_users"
ONLY_INACTIVE = "only_inactive_users"
ONLY_INACTIVATED = "only_inactivated_users"


@pytest.mark.parametrize(
    ("flags", "kept"),
    [
        ([], [WELL]),
        ([INCLUDE_INACTIVE], [WELL, INACTIVE]),
        ([INCLUDE_INACTIVATED], [WELL, INACTIVATED]),
        ([INCLUDE_INACTIVE, INCLUDE_INACTIVATED], [WELL, INACTIVE, INACTIVATED, BOTH]),
        ([ONLY_INACTIVE], [INACTIVE]),
        ([ONLY_INACTIVATED], [INACTIVATED]),
        ([ONLY_INACTIVE, INCLUDE_INACTIVE], [INACTIVE]),
        ([ONLY_INACTIVATED, INCLUDE_INACTIVATED], [INACTIVATED]),
        ([ONLY_INACTIVE, INCLUDE_INACTIVATED], [INACTIVE, BOTH]),
        ([ONLY_INACTIVATED, INCLUDE_INACTIVE], [INACTIVATED, BOTH]),
    ],
    ids=lambda value: "+".join(map(str, value)) if value and isinstance(value[0], str) else None,
)
def test_flags_keep_their_users(flags: list[str], kept: list[Person]) -> None:
    chosen = RecipientFilterModel.model_validate(
        {"groups": ["all"], **dict.fromkeys(flags, "true")}
    )

    assert kept == [one for one in EVERYBODY if chosen.selects(one)]


def test_the_two_only_flags_together_are_refused() -> None:
    with pytest.raises(ValidationError, match="cannot be combined with only_inactive_users"):
        RecipientFilterModel.model_validate({ONLY_INACTIVE: "true", ONLY_INACTIVATED: True})


def test_an_only_flag_that_is_false_contradicts_nothing() -> None:
    document = {"groups": ["all"], ONLY_INACTIVE: "false", ONLY_INACTIVATED: True}

    chosen = RecipientFilterModel.model_validate(document)
    assert [one for one in EVERYBODY if chosen.selects(one)] == [INACTIVATED]


@pytest.mark.parametrize(
    ("document", "selected"),
    [
        ({"users": ["ann"]}, ["ann"]),
        ({"groups": ["sales"]}, ["bob", "cid"]),
        ({"users": ["ann", "bob"], "groups": ["sales"]}, ["ann", "bob", "cid"]),
        ({"groups": ["all"]}, ["ann", "bob", "cid"]),
        ({"users": ["all"]}, []),
        ({"users": ["Ann"], "groups": ["Sales"]}, []),
        ({}, []),
    ],
)
def test_named_users_and_members_of_named_groups_are_selected_once(
    document: dict[str, object], selected: list[str]
) -> None:
    people = (
        Person("ann"),
        Person("bob", groups=frozenset({"sales", "managers"})),
        Person("cid", groups=frozenset({"sales"})),
    )
    chosen = RecipientFilterModel.model_validate(document)

    assert selected == [person.id for person in people if chosen.selects(person)]
