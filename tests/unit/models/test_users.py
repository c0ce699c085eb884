from datetime import UTC, datetime
from typing import Any

import pytest

from models.users import InvalidUsers, parse_users

ANN = "ann@example.com"


def test_an_address_is_id_and_email_at_once() -> None:
    (user,) = parse_users([{"id": ANN}])

    assert (user.id, user.email) == (ANN, ANN)
    assert (user.name, user.groups, user.active, user.activated_at) == (None, (), True, None)


def test_every_key_is_read() -> None:
    given = {
        "id": "42",
        "email": "ANN@EXAMPLE.COM",
        "name": "Ann",
        "groups": ["sales", "sales", "managers"],
        "active": "false",
        "activated_at": "2026-01-01T00:00:00.25Z",
        "created_at": "2026-01-01T01:00:00+01:00",
        "last_seen_at": "2026-07-01T02:00",
    }
    (user,) = parse_users([given], zone="Europe/Paris")

    assert (user.id, user.email, user.name) == ("42", "ANN@example.com", "Ann")
    assert (user.groups, user.active) == (("sales", "managers"), False)
    assert user.activated_at == datetime(2026, 1, 1, 0, 0, 1, tzinfo=UTC)
    assert user.created_at == datetime(2026, 1, 1, tzinfo=UTC)
    assert user.last_seen_at == datetime(2026, 7, 1, tzinfo=UTC)


def test_the_faults_of_all_rows_are_reported_at_once() -> None:
    rows: list[Any] = [
        {"id": "x"},
        {"id": ANN, "groups": ["all"], "active": "yes", "nmae": "Ann"},
        5,
        {"id": "bob@example.com"},
        {"id": "bob@example.com"},
        {"email": ANN},
        {"id": ANN + "\0", "activated_at": "now", "name": None},
    ]
    with pytest.raises(InvalidUsers) as refused:
        parse_users(rows)

    found = {problem.path: problem.remedy for problem in refused.value.problems}
    assert set(found) == {
        "row 1.email", "row 2.groups", "row 2.active", "row 2.nmae", "row 3", "row 5.id",
        "row 6.id", "row 7.id", "row 7.email", "row 7.activated_at", "row 7.name",
    }  # fmt: skip
    assert '"name"' in found["row 2.nmae"]
    assert "row 4" in found["row 5.id"]
