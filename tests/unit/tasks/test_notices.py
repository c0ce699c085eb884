"""Notices: their texts, and the signatures of those to a webhook."""

from datetime import UTC, datetime
from typing import Any

from pydantic import SecretStr

from runtime.sections import HookSettings
from tasks.notices.text import content_of
from tasks.notices.webhook import secrets_of, signature

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
DOWN = "no daemon ticked from 2026-11-25T02:00:00Z to 2026-11-25T07:00:12Z (5 h)"
RANGE = "--from 2026-11-25T03:00:00Z --to 2026-11-25T06:00:00Z"
TEXT = f"nightly report missed 4 occurrences: {DOWN}"
MISSED: dict[str, Any] = {
    "kind": "finding_began",
    "findings": [
        {
            "kind": "action_missed",
            "since": "2026-11-25T07:00:13Z",
            "text": TEXT,
            "remedy": "run it now, or backfill what was missed",
        }
    ],
    "reason": DOWN,
    "missed": 4,
    "first_at": "2026-11-25T03:00:00Z",
    "last_at": "2026-11-25T06:00:00Z",
    "small_app": "default",
    "action": "nightly report",
    "event": None,
    "ran_instead_at": "2026-11-25T07:00:00Z",
}


def test_a_missed_action_is_told_with_the_command_that_runs_it() -> None:
    content = content_of(MISSED)

    assert content.subject == f"[minutebook] ALERT: {TEXT}"
    assert content.text.split("\n") == [
        f"reason             {DOWN}",
        "missed             4",
        "first at           2026-11-25T03:00:00Z",
        "last at            2026-11-25T06:00:00Z",
        "small app          default",
        "action             nightly report",
        "ran instead at     2026-11-25T07:00:00Z",
        "",
        f"{TEXT}, since 2026-11-25T07:00:13Z",
        "  run it now, or backfill what was missed",
        "",
        "To run what was missed:",
        f"  minutebook --app default backfill 'nightly report' {RANGE}",
        "",
        "To see more:",
        "  minutebook --app default action show 'nightly report'",
        "",
    ]


def test_missed_events_are_run_again_one_by_one() -> None:
    content = content_of({**MISSED, "event": "signed_up"})

    assert "minutebook --app default run retry ID...\n" in content.text
    assert "backfill 'nightly" not in content.text


def test_one_notice_stands_for_many_actions() -> None:
    told = {key: MISSED[key] for key in ("kind", "findings", "reason", "missed")}
    most = [{"name": "nightly", "missed": 1004}]

    content = content_of({**told, "actions": 340, "most_missed": most})

    assert "Most missed:\n    1,004  nightly\n" in content.text
    assert "minutebook run list --all-apps --state missed\n" in content.text


def test_several_findings_are_one_message_and_an_end_is_over() -> None:
    found = MISSED["findings"] * 3

    began, ended = (
        content_of({"kind": f"finding_{how}", "findings": found}) for how in ("began", "ended")
    )

    assert began.subject == f"[minutebook] ALERT: {TEXT} and 2 more"
    assert ended.subject == f"[minutebook] RESOLVED: {TEXT} and 2 more"
    assert began.text.count(TEXT) == 3


def signed(settings: HookSettings) -> list[str]:
    told = signature(secrets_of(settings, "shop"), "shop", "https://b.example.com", b"{}", NOON)
    return told.split(",")[1:]


def test_while_a_secret_changes_receivers_of_the_old_and_of_the_new_one_find_theirs() -> None:
    old, new = SecretStr("old"), SecretStr("new")

    both = signed(HookSettings(secret=new, old_secret=old))

    assert both == signed(HookSettings(secret=new)) + signed(HookSettings(secret=old))
    assert len(set(both)) == 2
