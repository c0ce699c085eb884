from typing import Any

import pytest

from models.action.document import ParseContext, load_action, parse_action
from services.warnings import UNSENT, KnownNames, warnings_of
from tests.factories import STEPS
from tests.unit.models.action.minimal import NOW, action

KNOWN = KnownNames(
    users=["ann@example.com"],
    groups=["managers"],
    others={
        "domains": ["orders"],
        "templates": ["inactive", "inactivated", "news"],
        "design": ["start"],
        "permissions": ["sales"],
    },
    kept_recipients=1,
)
MAIL = {"send_email": {"template": "news"}}


def warnings(known: KnownNames = KNOWN, **changes: Any) -> list[str]:
    return warnings_of(
        parse_action(action(**changes), ParseContext("UTC", NOW, steps=STEPS)), known
    )


def test_a_sound_action_has_no_warning() -> None:
    assert (
        warnings(
            operations={
                **MAIL,
                "refresh": {"domains": ["orders"]},
                "publish": {
                    "data": ["orders"],
                    "design": ["start"],
                    "permissions": ["sales"],
                    "notify": True,
                },
            },
            recipients={"users": ["ann@example.com"], "groups": ["managers", "all"]},
            policy={"overlap": "queue", "max_waiting": 5},
        )
        == []
    )


@pytest.mark.parametrize("flag", ["include_inactive_users", "only_inactive_users"])
def test_a_flag_that_keeps_them_ends_the_warning(flag: str) -> None:
    recipients = {"groups": ["all"], flag: True}

    assert (
        warnings(operations={"send_email": {"template": "inactive"}}, recipients=recipients) == []
    )


def test_recipients_without_users_name_the_flags_that_leave_them_out() -> None:
    (text,) = warnings(
        KnownNames(kept_recipients=0), operations=MAIL, recipients={"groups": ["all"]}
    )

    assert "no user is selected now" in text
    assert "include_inactive_users" in text
    assert "include_inactivated_users" in text


def test_names_that_were_not_looked_up_raise_no_warning() -> None:
    assert warnings(KnownNames(), operations=MAIL, recipients={"users": ["nobody"]}) == []


def test_new_users_are_left_out_unless_a_flag_keeps_them() -> None:
    document = action(
        when={"on": "instance.user.created"}, operations=MAIL, recipients={"groups": ["all"]}
    )
    kept = {**document, "recipients": {"groups": ["all"], "include_inactivated_users": True}}

    (text,) = warnings_of(load_action(document, steps=STEPS), KNOWN)
    assert '"include_inactivated_users": true' in text
    assert warnings_of(load_action(kept, steps=STEPS), KNOWN) == []


@pytest.mark.parametrize(
    ("rule", "is_either"),
    [
        ("0 7 1-7 * 1", True),
        ("0 7 */2 * 1", False),
        ("0 7 1 * *", False),
    ],
)
def test_a_day_of_month_and_a_day_of_week_are_either_and_not_both(
    rule: str, is_either: bool
) -> None:
    found = warnings(when={"cron_rule": rule, "timezone": "UTC"})

    assert ["celery beat requires both" in one for one in found] == [True] * is_either


@pytest.mark.parametrize(
    "changes",
    [
        {"hooks": {"on_failure": [{"mail": "ops@example.com"}]}},
        {"hooks": {"on_missed": [{"mail": "ops@example.com"}]}},
        {"operations": MAIL, "recipients": {"groups": ["all"]}},
    ],
    ids=["failure", "missed", "step"],
)
def test_mail_without_a_server_is_written_to_files(changes: dict[str, Any]) -> None:
    unset = KnownNames(has_mail_server=False)

    assert warnings(unset, **changes) == [UNSENT]
    assert warnings(KnownNames(), **changes) == []
    assert warnings(unset) == []
