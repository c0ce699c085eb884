"""Warnings of what is known now; those of a document are in models/action/mistakes.json."""

from typing import Any

import pytest

from services.warnings import UNSENT, KnownNames, warnings_of
from tests.unit.models.action.minimal import action, parse

MAIL = {"operations": {"send_email": {"template": "news"}}, "recipients": {"groups": ["all"]}}
OPS = [{"mail": "ops@example.com"}]


def warnings(known: KnownNames, **changes: Any) -> list[str]:
    return warnings_of(parse(action(**changes)), known)


def test_recipients_without_users_name_the_flags_that_leave_them_out() -> None:
    (text,) = warnings(KnownNames(kept_recipients=0), **MAIL)

    assert "no user is selected now" in text
    assert "include_inactive_users" in text
    assert "include_inactivated_users" in text


@pytest.mark.parametrize(
    "changes",
    [{"hooks": {"on_failure": OPS}}, {"hooks": {"on_missed": OPS}}, MAIL],
    ids=["failure", "missed", "step"],
)
def test_mail_without_a_server_is_written_to_files(changes: dict[str, Any]) -> None:
    unset = KnownNames(has_mail_server=False)

    assert warnings(unset, **changes) == [UNSENT]
    # Of what was not looked up nothing is said.
    assert warnings(KnownNames(), **changes) == []
    assert warnings(unset) == []
