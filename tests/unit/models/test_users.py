from datetime import UTC, datetime
from typing import Any

import pytest

from models.users import InvalidUsers, UserModel, parse_users

ANN = "ann@example.com"


def problems(rows: list[Any]) -> dict[str, str]:
    with pytest.raises(InvalidUsers) as refused:
        parse_users(rows)
    return {problem.path: problem.remedy for problem in refused.value.problems}


def test_an_address_is_id_and_email_at_once() -> None:
    (user,) = parse_users([{"id": ANN}])

    assert (user.id, user.email) == (ANN, ANN)
    assert (user.name, user.groups, user.active, user.activated_at) == (None, (), True, None)


def test_every_key_is_read() -> None:
    (user,) = parse_users(
        [
            {
                "id": "42",
                "email": "ANN@EXAMPLE.COM",
                "name": "Ann",
                "groups": ["sales", "sales", "managers"],
                "active": "false",
                "activated_at": "2026-01-01T00:00:00.25Z",
                "created_at": "2026-01-01T01:00:00+01:00",
                "last_seen_at": "2026-07-01T02:00",
            }
        ],
        zone="Europe/Paris",
    )

    assert user == UserModel.model_construct(
        id="42",
        email="ANN@example.com",
        name="Ann",
        groups=("sales", "managers"),
        active=False,
        activated_at=datetime(2026, 1, 1, 0, 0, 1, tzinfo=UTC),
        created_at=datetime(2026, 1, 1, tzinfo=UTC),
        last_seen_at=datetime(2026, 7, 1, tzinfo=UTC),
    )


def test_the_faults_of_all_rows_are_reported_at_once() -> None:
    found = problems(
        [
            {"id": "x"},
            {"id": ANN, "groups": ["all"], "active": "yes", "nmae": "Ann"},
            5,
            {"id": "bob@example.com"},
            {"id": "bob@example.com"},
            {"email": ANN},
            {"id": ANN + "\0", "activated_at": "now", "name": None},
        ]
    )

    assert set(found) == {
        "row 1.email", "row 2.groups", "row 2.active", "row 2.nmae", "row 3", "row 5.id",
        "row 6.id", "row 7.id", "row 7.email", "row 7.activated_at", "row 7.name",
    }  # fmt: skip
    assert '"name"' in found["row 2.nmae"]
    assert "row 4" in found["row 5.id"]
