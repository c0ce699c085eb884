from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from itertools import product
from typing import Any

import pytest
import sqlalchemy as sa

from models.action.recipients import RecipientFilterModel
from models.store.people import selection, users
from models.store.people.users import Imported, Moved, User
from models.users import parse_users
from runtime.config import Settings
from runtime.database import make_engine, reading
from tests.factories import DEFAULT_APP
from tests.statements import rows_read
from tests.transactions import act

ANN = {"id": "ann", "email": "ann@example.com", "groups": ["manager"]}
BEN = {"id": "ben@example.com", "name": "Ben", "groups": ["manager", "shop"]}
SEEN = {"activated_at": "2026-01-05T09:00:00Z"}


def imported(engine: sa.Engine, *rows: dict[str, Any]) -> Imported:
    return act(engine, users.import_users, DEFAULT_APP.id, parse_users(rows))


def selected(engine: sa.Engine, **rule: Any) -> Sequence[str]:
    model = RecipientFilterModel.model_validate(rule)
    return [one.id for one in act(engine, users.recipients_of, DEFAULT_APP.id, model)]


def people(engine: sa.Engine) -> dict[str, User]:
    return {one.id: one for one in act(engine, users.page, DEFAULT_APP.id, None, 9)}


def test_users_and_groups_are_made_then_updated(engine: sa.Engine) -> None:
    assert imported(engine, {**ANN, **SEEN}, BEN) == Imported(created=2, updated=0)
    again = {"id": "ann", "email": "ann@example.com", "name": "Ann", "groups": ["board"]}

    assert imported(engine, again) == Imported(created=0, updated=1)

    found = people(engine)
    known = act(engine, users.group_sizes, DEFAULT_APP.id, None, 9)
    assert [one.name for one in known] == ["board", "manager", "shop"]
    assert (found["ann"].name, found["ann"].groups) == ("Ann", frozenset({"board"}))
    assert found["ann"].activated_at is not None
    assert found["ben@example.com"].groups == {"manager", "shop"}


def test_what_a_row_does_not_name_is_kept(engine: sa.Engine) -> None:
    imported(engine, {**ANN, **SEEN, "active": False})

    imported(engine, {"id": "ann", "email": "new@example.com"})

    ann = people(engine)["ann"]
    assert (ann.email, ann.active) == ("new@example.com", False)
    assert ann.groups == {"manager"}
    assert ann.activated_at is not None


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        pytest.param({"users": ["ann"]}, ["ann"], id="by_id"),
        pytest.param({"groups": ["shop"]}, ["ben@example.com"], id="by_group"),
        pytest.param({"users": ["ann"], "groups": ["shop"]}, ["ann", "ben@example.com"], id="both"),
        pytest.param({"groups": ["all"]}, ["ann", "ben@example.com"], id="everybody"),
        pytest.param({"users": ["nobody"], "groups": ["none"]}, [], id="unknown"),
    ],
)
def test_whom_a_filter_means(engine: sa.Engine, rule: dict[str, Any], expected: list[str]) -> None:
    old = {"id": "old@example.com", "active": False, "groups": ["shop"], **SEEN}
    imported(engine, {**ANN, **SEEN}, {**BEN, **SEEN}, old, {"id": "new@example.com"})

    assert selected(engine, **rule) == expected


def test_users_that_are_more_than_a_batch_are_imported_once(engine: sa.Engine) -> None:
    rows = [{"id": f"u{n}@example.com", "groups": [f"g{n % 50}", "staff"]} for n in range(1_200)]

    imported(engine, *rows)
    imported(engine, *rows)

    assert len(selected(engine, groups=["staff"], only_inactivated_users=True)) == 1_200


def silent(engine: sa.Engine) -> frozenset[str]:
    """Return which instants of Ann raise no event."""
    return people(engine)["ann"].silent


@pytest.mark.parametrize("first", [True, False], ids=["events_first", "silence_first"])
def test_an_import_raises_events_of_what_it_changes_if_they_are_asked_for(
    engine: sa.Engine, first: bool
) -> None:
    every, found = {"created_at", "activated_at", "last_seen_at"}, []
    later = {"last_seen_at": "2026-02-01T00:00:00Z", "name": "Ann"}

    for more, raises_events in (({}, first), (later, not first)):
        rows = parse_users([{**ANN, **SEEN, **more}])
        act(engine, users.import_users, DEFAULT_APP.id, rows, raises_events=raises_events)
        found.append(silent(engine))

    assert found[0] == (set() if first else every)
    assert found[1] == ({"last_seen_at"} if first else every - {"last_seen_at"})


def test_a_user_who_is_seen_moves_and_is_heard(engine: sa.Engine) -> None:
    imported(engine, {**ANN, **SEEN})
    first, earlier = (datetime(2026, 2, day, tzinfo=UTC) for day in (2, 1))

    asked = [("ann", first), ("ann", earlier), ("zoe", first)]
    stands = [act(engine, users.move, DEFAULT_APP.id, id, "last_seen_at", at) for id, at in asked]

    assert stands == [Moved(first, True), Moved(first, False), None]
    assert silent(engine) == {"created_at", "activated_at"}


def test_a_new_user_is_heard_and_never_overwritten(engine: sa.Engine) -> None:
    ann, other = parse_users([{**ANN, **SEEN}, {**BEN, "name": "other"}])
    added = [act(engine, users.add, DEFAULT_APP.id, one) for one in (ann, ann, other)]

    assert added == [True, False, True]
    found = people(engine)["ann"]
    assert (found.silent, found.groups) == (frozenset(), frozenset({"manager"}))
    assert found.created_at is not None


def test_the_database_keeps_whom_the_flags_keep(engine: sa.Engine) -> None:
    """The database decides what is only counted; the model decides whom a mail reaches."""
    rows = [
        {"id": f"{active}-{len(seen)}@example.com", "active": active, "groups": ["both"], **seen}
        for active, seen in product((True, False), (SEEN, {}))
    ]
    imported(engine, *rows)
    names = [name for name in RecipientFilterModel.model_fields if name.endswith("_users")]
    assert len(names) == 4
    tried = 0

    with reading(engine) as connection:
        for chosen in product((True, False), repeat=4):
            flags = dict(zip(names, chosen, strict=True))
            if flags["only_inactive_users"] and flags["only_inactivated_users"]:
                continue
            for group, people in (("all", rows), ("both", rows), ("none", [])):
                rule = RecipientFilterModel.model_validate({**flags, "groups": [group]})
                ids = [one.id for one in users.recipients_of(connection, DEFAULT_APP.id, rule)]

                assert selection.keeps_one_of(connection, DEFAULT_APP.id, group, rule) == bool(ids)
                assert people or not ids
                tried += 1
    assert tried == 36


def test_a_change_of_one_user_reads_that_user_alone(home_of: Callable[[str], Settings]) -> None:
    engine = make_engine(home_of("postgresql"))
    imported(engine, *({"id": f"user-{number}@example.com"} for number in range(20)))

    with rows_read(engine) as read:
        imported(engine, {"id": "user-7@example.com", "name": "Seven"})
    engine.dispose()

    assert max(read) == 1
