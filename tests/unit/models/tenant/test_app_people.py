"""Users and groups of a small app's document against those that are stored."""

from dataclasses import dataclass, field
from datetime import UTC, datetime
from time import process_time
from typing import Any

import pytest

from models.tenant.document import InvalidSmallApp, SmallAppModel, parse_small_app, stored_small_app
from models.tenant.people import PeoplePlan, plan_people, unknown_members

SEEN = datetime(2026, 1, 5, 8, tzinfo=UTC)


@dataclass(frozen=True)
class Known:
    id: str
    groups: frozenset[str] = frozenset()
    email: str = ""
    name: str | None = None
    active: bool = True
    created_at: datetime | None = None
    activated_at: datetime | None = None
    last_seen_at: datetime | None = field(default=None)


def app(**changes: Any) -> SmallAppModel:
    return parse_small_app({"name": "shop", **changes})


def plan(document: SmallAppModel, *stored: Known, groups: tuple[str, ...] = ()) -> PeoplePlan:
    return plan_people(document.people, stored, groups)


ANN = {"id": "ann@example.com"}
KNOWN_ANN = Known("ann@example.com", frozenset({"staff"}), "ann@example.com")
BOB = Known("bob@example.com", frozenset({"staff"}), "bob@example.com")


def test_a_document_without_people_says_nothing_of_them() -> None:
    assert plan(app(), KNOWN_ANN, groups=("staff",)) == PeoplePlan()


def test_users_that_are_listed_are_added_and_changed_and_none_is_removed() -> None:
    document = app(users=[{**ANN, "name": "Ann"}, {"id": "cleo@example.com"}])

    found = plan(document, KNOWN_ANN, BOB, groups=("staff",))

    assert [user.id for user in found.write] == ["ann@example.com", "cleo@example.com"]
    assert (found.removed_users, found.removed_groups) == ((), ())
    assert found.changes == ("1 user created", "1 user changed")
    assert found.write[0].groups == ("staff",)


def test_what_is_stored_already_changes_nothing() -> None:
    document = app(users=[{**ANN, "groups": ["staff"]}], groups={"staff": [ANN["id"], BOB.id]})

    assert plan(document, KNOWN_ANN, BOB, groups=("staff",)) == PeoplePlan()


def test_a_listed_group_has_exactly_its_members() -> None:
    found = plan(app(groups={"staff": [], "boss": [BOB.id]}), KNOWN_ANN, BOB, groups=("staff",))

    assert {user.id: user.groups for user in found.write} == {
        "ann@example.com": (),
        "bob@example.com": ("boss",),
    }
    assert (found.new_groups, found.removed_groups) == (("boss",), ())


def test_a_group_that_is_not_listed_stays() -> None:
    found = plan(app(groups={"boss": [BOB.id]}), BOB, groups=("staff",))

    assert found.write[0].groups == ("boss", "staff")


def test_a_complete_document_removes_the_users_and_groups_it_does_not_list() -> None:
    document = app(users=[{**ANN, "groups": []}], users_complete=True)

    found = plan(document, KNOWN_ANN, BOB, groups=("staff",))

    assert (found.removed_users, found.removed_groups) == (("bob@example.com",), ("staff",))
    assert found.changes == ("1 user changed", "1 user removed", "1 group removed")


def test_a_group_without_members_is_made() -> None:
    assert plan(app(groups={"empty": []})).new_groups == ("empty",)


def test_an_unknown_member_is_named() -> None:
    document = app(users=[ANN], groups={"staff": ["ann@example.con", "bob@example.com"]})

    problems = unknown_members(document.people, [BOB.id])

    assert [problem.path for problem in problems] == ["groups.staff[0]"]
    assert 'did you mean "ann@example.com"' in problems[0].remedy


def test_a_stored_user_is_no_member_of_a_complete_document_that_leaves_them_out() -> None:
    document = app(users=[ANN], groups={"staff": [BOB.id]}, users_complete=True)

    assert [p.path for p in unknown_members(document.people, [BOB.id])] == ["groups.staff[0]"]


def test_people_are_no_part_of_the_stored_document() -> None:
    document = app(users=[ANN], groups={"staff": []}, users_complete=True, settings={"a": 1})

    assert stored_small_app(document) == {"name": "shop", "settings": {"a": 1}}


def test_instants_of_users_are_read_in_the_zone_of_the_small_app() -> None:
    document = app(zone="Europe/Paris", users=[{**ANN, "last_seen_at": "2026-01-05T09:00:00"}])

    assert document.users[0].last_seen_at == SEEN


def test_hundreds_of_unknown_members_are_refused_at_once() -> None:
    users = [f"user-{n:03}-{'x' * 60}" for n in range(500)]
    document = app(groups={"staff": [f"usfr-{n:03}-{'x' * 60}" for n in range(500)]})
    began = process_time()

    problems = unknown_members(document.people, users)

    assert process_time() - began < 1
    assert len(problems) == 500
    assert "did you mean" in problems[0].remedy


def test_thousands_of_unknown_keys_are_refused_at_once_by_the_first_hundred() -> None:
    document = {"name": "shop", **{f"zonf{n}": 1 for n in range(16_000)}}
    began = process_time()

    with pytest.raises(InvalidSmallApp) as refused:
        parse_small_app(document)

    assert process_time() - began < 2
    assert len(refused.value.problems) == 101
    assert str(refused.value).endswith("document: has more problems; correct these first")
