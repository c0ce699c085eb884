import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from celery import Celery
from celery.schedules import schedule

from interop.apscheduler_jobs import Work, written_jobs
from interop.apscheduler_jobs import entries_of as jobs_entries
from interop.beat_file import entries_of
from interop.entries import Entry, Refused
from interop.outcomes import outcomes
from minutebook.beat import schedule_of
from models.action.document import ParseContext
from tasks.built_in import built_in_steps
from tests.tables import table
from tests.ticks import MINUTE

NOW = datetime(2026, 11, 22, 15, tzinfo=UTC)
CONTEXT = ParseContext("UTC", NOW, built_in_steps(), created_at=NOW, celery=None)
LATE = "it was due at {}: its scheduler would run it at its start, the action would not"


def of(only: Entry | Refused) -> tuple[object, tuple[str, ...]]:
    """Return where an interval of 15 minutes begins, and what is said of it."""
    assert isinstance(only, Entry)
    assert isinstance(only.when, dict)
    (found,) = outcomes([only], CONTEXT)
    assert found.document is not None
    return only.when.get("starting_at"), (*found.remarks, *found.unknown)


@pytest.mark.parametrize(("said", "starting_at", "remarks"), table(__file__, "an_entry_of_beat"))
def test_an_entry_of_beat(
    said: Mapping[str, str], starting_at: str | None, remarks: list[str]
) -> None:
    entry = {"name": "it", "task": "t", "schedule": {"every_s": 900}, **said}
    made = {"minutebook_beat": 1, "celery": "5", "timezone": "Europe/Paris", "entries": [entry]}
    (only,) = entries_of({**made, "written_at": "2026-11-22T15:00:00Z"}, "beat.json", NOW)

    assert of(only) == (starting_at, tuple(remarks))


@pytest.mark.parametrize(
    ("said", "starting_at", "remarks"), table(__file__, "a_job_of_apscheduler")
)
def test_a_job_of_apscheduler(
    said: Mapping[str, Any], starting_at: str | None, remarks: list[str]
) -> None:
    trigger = {"type": "interval", "seconds": 900, "start_date": "2026-11-22T14:00:00+00:00"}
    job = {"id": "it", "name": "it", "func": "shop:it", "trigger": trigger, **said}
    made = {"minutebook_apscheduler": 1, "apscheduler": "3", "jobs": [job]}
    (only,) = jobs_entries(written_jobs(made), "jobs.json", Work(lambda _: True), NOW)

    assert of(only) == (starting_at, tuple(remarks))


@pytest.mark.parametrize("minutes", [0, 1, 7, 14])
def test_beat_itself_runs_it_then(minutes: int) -> None:
    app = Celery("shop", set_as_current=False)
    last_run_at = app.now().astimezone(UTC) - minutes * MINUTE
    given = {"task": "t", "schedule": schedule(900), "last_run_at": last_run_at}
    app.conf.beat_schedule = {"it": given}
    (only,) = entries_of(json.loads(json.dumps(schedule_of(app))), "beat.json", NOW)
    assert isinstance(only, Entry)
    assert isinstance(only.when, dict)

    _, next_s = schedule(900, app=app).is_due(last_run_at)
    theirs = app.now() + timedelta(seconds=next_s)
    ours = datetime.fromisoformat(only.when["starting_at"])
    assert abs(theirs - ours) < timedelta(seconds=2)
