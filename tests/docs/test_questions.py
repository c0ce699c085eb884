"""What people look for is two clicks away from README, on a page that has the words."""

import re
from pathlib import Path

import pytest

from tests.docs.test_links import LINK

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
QUESTIONS = [
    # A beat user.
    ("How do I move my beat_schedule?", "how-to/move-from-celery-beat/README", "beat_schedule"),
    ("What is crontab() here?", "how-to/move-from-celery-beat/cheat-sheet", "crontab("),
    ("What does one line in my app change?", "how-to/move-from-celery-beat/follow", "follows"),
    ("How do I create schedules in Django code?", "how-to/move-from-celery-beat/django", "owns_"),
    ("Where is the task's return value?", "how-to/read-the-result-of-a-task", "AsyncResult"),
    ("How do I run every ten seconds?", "reference/action/intervals", "PT10S"),
    ("Every second Monday?", "reference/action/intervals", "every second Monday"),
    ("What happens when the clocks change?", "explanation/time", "Clock changes"),
    ("How do I go back to beat?", "how-to/move-back", "celerybeat-schedule"),
    ("Is it faster than RedBeat?", "reference/side-by-side", "10,000 due at once"),
    # An admin.
    ("How do I invite a colleague?", "how-to/invite-colleagues", "Invite"),
    ("How do I rotate a token?", "how-to/rotate-a-token", "--grace"),
    ("What are the time limits?", "reference/time-limits", "policy.time_limit"),
    ("Who may do what?", "reference/roles", "operator"),
    ("How do I deploy on Kubernetes?", "how-to/deploy/kubernetes", "kubectl apply"),
    ("How many workers do I need?", "how-to/operate/sizing", "processes ="),
    ("How do I back it up?", "how-to/operate/backup-and-restore", "pg_dump"),
    ("How do I upgrade?", "how-to/operate/upgrade-and-roll-back", "minutebook migrate"),
    ("How do I change the database's password?", "how-to/operate/secrets-and-tls", "NOLOGIN"),
    ("How do alerts reach Slack?", "how-to/hooks-and-alerts/README", "SCHED_NOTIFY_OPS"),
    ("How is a webhook verified?", "how-to/hooks-and-alerts/webhooks", "Minutebook-Signature"),
    ("How do I leave out holidays?", "how-to/leave-out-holidays", "except"),
    # Somebody on call.
    ("What do I do now?", "how-to/at-three-in-the-morning", "minutebook status"),
    ("Why did it not run?", "how-to/when-something-failed", "action explain"),
    ("How do I run it again?", "how-to/when-something-failed", "minutebook run retry"),
    ("How do I stop everything for an hour?", "how-to/at-three-in-the-morning", "pause --all"),
    ("How do I run what was missed?", "how-to/catch-up-and-backfill", "minutebook backfill"),
    ("What if I restart the broker?", "explanation/faults", "loses its messages"),
    ("What does this reason mean?", "reference/operation", "send uncertain"),
    ("What does this log line mean?", "reference/log-events", "broker_unavailable"),
]


def clicks() -> dict[Path, int]:
    """Return how many links lead from README to each page, at least."""
    found = {README: 0}
    waiting = [README]
    for page in waiting:
        for parts in LINK.findall(page.read_text(encoding="utf-8")):
            target = (page.parent / "".join(parts).partition("#")[0]).resolve()
            if target.suffix == ".md" and target.is_file() and target not in found:
                found[target] = found[page] + 1
                waiting.append(target)
    return found


CLICKS = clicks()


@pytest.mark.parametrize(("question", "page", "words"), QUESTIONS)
def test_each_question_is_answered_two_clicks_away(question: str, page: str, words: str) -> None:
    answer = ROOT / "docs" / f"{page}.md"

    assert CLICKS[answer] <= 2, question
    assert re.search(re.escape(words), answer.read_text(encoding="utf-8")), question


def test_thirty_questions_are_asked() -> None:
    assert len({question for question, _, _ in QUESTIONS}) == 30
