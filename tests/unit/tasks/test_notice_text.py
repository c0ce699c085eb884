"""The text of notices about missed occurrences: what, why, and the command that runs them."""

from typing import Any

from models.notices import NoticeKind
from tasks.notices.text import content_of

DOWN = "no daemon ticked from 2026-11-25T02:00:00Z to 2026-11-25T07:00:12Z (5 h)"
RANGE = "--from 2026-11-25T03:00:00Z --to 2026-11-25T06:00:00Z"
MISSED: dict[str, Any] = {
    "kind": "missed",
    "small_app": "default",
    "action": "nightly report",
    "state": "missed",
    "reason": DOWN,
    "event": None,
    "missed": 4,
    "first_at": "2026-11-25T03:00:00Z",
    "last_at": "2026-11-25T06:00:00Z",
    "ran_instead_at": "2026-11-25T07:00:00Z",
}


def test_a_missed_action_is_told_with_the_command_that_runs_it() -> None:
    content = content_of(NoticeKind.MISSED, MISSED)

    assert content.subject == "[minutebook] MISSED: nightly report: 4 occurrences"
    assert content.text.split("\n") == [
        "Occurrences were missed: they were due, and did not run.",
        "",
        "action                      nightly report",
        "small app                   default",
        "state                       missed",
        f"reason                      {DOWN}",
        "missed occurrences          4",
        "first                       2026-11-25T03:00:00Z",
        "last                        2026-11-25T06:00:00Z",
        "runs instead                2026-11-25T07:00:00Z",
        "",
        "To run what was missed:",
        f"  minutebook --app default backfill 'nightly report' {RANGE}",
        "",
        "To see more:",
        "  minutebook --app default action show 'nightly report'",
        "",
    ]


def test_missed_events_are_run_again_one_by_one() -> None:
    content = content_of(NoticeKind.MISSED, {**MISSED, "event": "signed_up", "missed": 1})

    assert content.subject == "[minutebook] MISSED: nightly report: 1 occurrence"
    assert "minutebook --app default operation retry ID...\n" in content.text
    assert "backfill" not in content.text


def test_one_notice_stands_for_many_actions() -> None:
    payload = {
        "kind": "missed",
        "state": "missed",
        "reason": DOWN,
        "actions": 340,
        "missed": 1204,
        "first_at": MISSED["first_at"],
        "last_at": MISSED["last_at"],
        "most_missed": [{"name": "nightly", "missed": 1004}],
    }

    content = content_of(NoticeKind.MISSED, payload)

    assert content.subject == "[minutebook] MISSED: 340 actions: 1,204 occurrences"
    assert "Most missed:\n    1,004  nightly\n" in content.text
    assert "minutebook operation list --all-apps --state missed\n" in content.text
