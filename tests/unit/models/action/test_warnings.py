from dataclasses import replace
from typing import Any

import pytest

from models.action.document import ParseContext, load_action, parse_action
from models.action.warnings import UNSENT, KnownNames, warnings_of
from models.celery_task import CeleryRules
from tests.factories import STEPS
from tests.unit.models.action.minimal import NOW, action

KNOWN = KnownNames(
    users=["ann@example.com"],
    groups=["managers"],
    domains=["orders"],
    templates=["inactive", "inactivated", "news"],
    design=["start"],
    permissions=["sales"],
    kept_recipients=1,
)
TASKS = CeleryRules(("shop.*",))
MAIL = {"send_email": {"template": "news"}}


def warnings(known: KnownNames = KNOWN, **changes: Any) -> list[str]:
    return warnings_of(
        parse_action(action(**changes), ParseContext("UTC", NOW, steps=STEPS, celery=TASKS)), known
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


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        pytest.param(
            {"operations": MAIL, "recipients": {"users": ["ann@example.org"]}},
            'recipients.users "ann@example.org": no user has this name now; did you mean '
            '"ann@example.com"?',
            id="user",
        ),
        pytest.param(
            {"operations": MAIL, "recipients": {"groups": ["zz"]}},
            'recipients.groups "zz": no group has this name now',
            id="group",
        ),
        pytest.param(
            {"operations": {"refresh": {"domains": ["order"]}}},
            'operations.refresh.domains "order": no domain has this name now; did you mean '
            '"orders"?',
            id="domain_to_refresh",
        ),
        pytest.param(
            {"operations": {"publish": {"design": ["strat"]}}},
            'operations.publish.design "strat": no design document has this name now; did '
            'you mean "start"?',
            id="design",
        ),
        pytest.param(
            {"operations": {"publish": {"permissions": ["zz"]}}},
            'operations.publish.permissions "zz": no permissions document has this name now',
            id="permissions",
        ),
        pytest.param(
            {"operations": {"publish": {"data": ["zz"]}}},
            'operations.publish.data "zz": no domain has this name now',
            id="domain_to_publish",
        ),
        pytest.param(
            {"operations": {"send_email": {"template": "zz"}}, "recipients": {"groups": ["all"]}},
            'operations.send_email.template "zz": no template has this name now',
            id="template",
        ),
        pytest.param(
            {
                "operations": {"send_email": {"template": "inactive"}},
                "recipients": {"groups": ["all"]},
            },
            "recipients: inactive users are left out, but the template seems to be for them; see "
            '"include_inactive_users"',
            id="inactive_template",
        ),
        pytest.param(
            {
                "operations": {"send_email": {"template": "inactivated"}},
                "recipients": {"groups": ["all"], "include_inactive_users": True},
            },
            "recipients: users who never activated their account are left out, but the template "
            'seems to be for them; see "include_inactivated_users"',
            id="inactivated_template",
        ),
        pytest.param(
            {"policy": {"max_waiting": 5}},
            'policy.max_waiting: has an effect only with "overlap": "queue"',
            id="max_waiting",
        ),
        pytest.param(
            {"when": {"on": "order.paid"}, "policy": {"overlap": "queue"}},
            "policy.overlap: has no effect on event actions; each event is its own operation",
            id="overlap_of_events",
        ),
        pytest.param(
            {
                "when": {"due_date": "2027-01-01T00:00Z"},
                "policy": {"ends_at": "2026-12-31T00:00Z"},
            },
            "policy.ends_at: every due date is outside starts_at and ends_at",
            id="due_date_after_the_end",
        ),
        pytest.param(
            {"when": {"due_date": "2027-03-28T02:30", "timezone": "Europe/Berlin"}},
            'when.due_date "2027-03-28T02:30": does not exist in Europe/Berlin, whose clocks '
            "change; it is due at 2027-03-28T03:00+02:00. Write an offset to choose another "
            "instant",
            id="skipped_due_date",
        ),
        pytest.param(
            {"when": {"due_date": "2027-10-31T02:30", "timezone": "Europe/Berlin"}},
            'when.due_date "2027-10-31T02:30": comes twice in Europe/Berlin, whose clocks change; '
            "it is due at 2027-10-31T02:30+02:00. Write an offset to choose another instant",
            id="repeated_due_date",
        ),
        pytest.param(
            {"when": {"cron_rule": "0 7 * * 1", "timezone": "est"}},
            'when.timezone "EST": is UTC-5 all year; write "America/New_York" for the clock there',
            id="a_fixed_zone",
        ),
        pytest.param(
            {"when": {"on": "user.activated"}},
            'when "user.activated": is an event of your own; did you mean '
            '"instance.user.activated"?',
            id="custom_event_like_a_built_in_one",
        ),
        pytest.param(
            {"when": [{"cron_rule": "*/90 * * * *"}, {"cron_rule": "0 7 * * *"}]},
            'when.cron_rule: the step of "*/90" exceeds the range of the minute, so only 0 matches;'
            ' write "0", or an interval, {"every": "PT90M"}',
            id="ninety_minutes_in_a_list",
        ),
        pytest.param(
            {"when": {"cron_rule": "0 */36 * * *"}},
            'when.cron_rule: the step of "*/36" exceeds the range of the hour, so only 0 matches;'
            ' write "0", or an interval, {"every": "PT36H"}',
            id="a_day_and_a_half",
        ),
        pytest.param(
            {"when": {"cron_rule": "0 8-18/24 * * *"}},
            'when.cron_rule: the step of "8-18/24" exceeds the range of the hour, so only 8 '
            'matches; write "8"',
            id="a_day_of_hours",
        ),
    ],
)
def test_a_warning_is_given(changes: dict[str, Any], text: str) -> None:
    assert [text] == warnings(**changes)


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
        ("0 7 13 * fri", True),
        ("0 7 */2 * 1", False),
        ("0 7 1 * *", False),
        ("@weekly", False),
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


PARIS = {"timezone": "Europe/Paris", "starting_at": "2026-12-01T11:05:00"}
SINCE = '"timezone": "Europe/Paris", "starting_at": "2026-12-01"} to keep the local time'
KEEPS = "keeps exact hours, so its local time moves by the clock changes of Europe/Paris"


@pytest.mark.parametrize(
    ("when", "text"),
    [
        pytest.param(
            {"every": "P1D", **PARIS},
            f'when.every "P1D": {KEEPS}; write {{"rrule": "FREQ=DAILY", "at": "11:05", {SINCE}',
            id="a_day",
        ),
        pytest.param(
            {"every": "PT168H", **PARIS},
            f'when.every "P7D": {KEEPS}; write {{"rrule": "FREQ=WEEKLY", "at": "11:05", {SINCE}',
            id="a_week",
        ),
        pytest.param(
            {"every": "P3D", **PARIS},
            f'when.every "P3D": {KEEPS}; write {{"rrule": "FREQ=DAILY;INTERVAL=3", "at": "11:05", '
            f"{SINCE}",
            id="three_days",
        ),
        pytest.param(
            {"every": "P10D", "starting_at": "2026-12-01T11:05:00Z"},
            f'when.every "P10D": {KEEPS}; write {{"rrule": "FREQ=DAILY;INTERVAL=10", '
            f'"at": "12:05", {SINCE}',
            id="in_the_zone_of_the_small_app",
        ),
    ],
)
def test_an_interval_of_days_names_the_rule_that_does_not_drift(when: Any, text: str) -> None:
    known = replace(KNOWN, zone="Europe/Paris")

    assert [text] == warnings(known, when=when)


@pytest.mark.parametrize(
    "when",
    [
        pytest.param({"every": "P1D", **PARIS, "timezone": "Asia/Tokyo"}, id="no_clock_changes"),
        pytest.param({"every": "P1D", **PARIS, "timezone": "UTC"}, id="utc"),
        pytest.param({"every": "PT12H", **PARIS}, id="shorter_than_a_day"),
        pytest.param({"every": "PT36H", **PARIS}, id="at_another_time_each_day"),
    ],
)
def test_an_interval_that_does_not_drift_has_no_warning(when: Any) -> None:
    assert warnings(when=when) == []
