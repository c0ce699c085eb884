"""What becomes of an entry: when it begins, whether it is due as before, what a fault says."""

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
from interop.outcomes import Outcome, outcomes
from interop.services.imports import Import, _moved
from interop.texts import report
from minutebook.beat import schedule_of
from models.errors import InvalidDocument, Problem
from models.values import format_instant
from tests.moved import CONTEXT, NOW
from tests.tables import table
from tests.ticks import DAY, HOUR, MINUTE

NIGHT = datetime(2026, 11, 26, 2, tzinfo=UTC)
FOUR = NIGHT + 2 * HOUR
CRONTAB: Mapping[str, object] = {"crontab": {"minute": "0", "hour": "4"}}


def entry_of(schedule: Mapping[str, object], at: datetime, **said: Any) -> Entry | Refused:
    """Return the only entry of a schedule that beat wrote then."""
    entry = {"name": "it", "task": "tasks.it", "schedule": schedule, **said}
    written = {"minutebook_beat": 1, "celery": "5", "timezone": "UTC", "entries": [entry]}
    (only,) = entries_of({**written, "written_at": format_instant(at)}, "beat.json", at)
    return only


def moved(schedule: Mapping[str, object], next_at: list[str] | None, **more: Any) -> Outcome:
    known = {} if next_at is None else {"next_at": next_at}
    (only,) = outcomes([entry_of(schedule, NIGHT, **known, **more)], CONTEXT)
    return only


def days(first: datetime, count: int = 5) -> list[str]:
    return [format_instant(first + number * DAY) for number in range(count)]


@pytest.mark.parametrize(
    ("schedule", "next_at", "more"), table(__file__, "other_next_instants_are_a_difference")
)
def test_other_next_instants_are_a_difference(
    schedule: Mapping[str, object], next_at: list[str], more: Mapping[str, str]
) -> None:
    found = moved(schedule, next_at, **more)

    assert found.kind == "differs"
    assert found.upcoming is not None
    assert found.upcoming.differing is not None


def test_the_same_next_instants_and_unknown_ones_are_no_difference() -> None:
    crontab, unknown = moved(CRONTAB, days(FOUR)), moved(CRONTAB, None)
    phase = moved({"every_s": 86_400}, days(FOUR), last_run_at=format_instant(FOUR - DAY))

    assert (crontab.kind, phase.kind, unknown.kind) == ("same", "same", "same")
    for one in (crontab, phase):
        assert one.upcoming is not None
        assert one.upcoming.there == one.upcoming.here
    assert unknown.upcoming is not None
    assert (unknown.upcoming.there, len(unknown.upcoming.here)) == (None, 5)


def test_the_report_shows_both_side_by_side() -> None:
    one = _moved(moved(CRONTAB, days(FOUR - HOUR)))
    made = Import(counts={}, entries=(one,))

    head, numbers, *_, place, names, first, second, _, _, _ = report(made, is_stored=True)

    assert head == "same  differs  cannot  entries"
    assert numbers == "   0        1       0        1"
    assert place == "  it (beat.json entries[0])"
    assert names == "    beat                  here"
    assert first == "    2026-11-26T03:00:00Z  2026-11-26T04:00:00Z"
    assert second == "    2026-11-27T03:00:00Z  2026-11-27T04:00:00Z"


def test_what_most_entries_share_is_said_once_and_makes_none_differ_if_it_cannot_be_known() -> None:
    entries = [_moved(moved({"every_s": 86_400 + n}, None, name=f"it {n}")) for n in range(60)]
    lines = list(report(Import(counts={}, entries=tuple(entries)), is_stored=True))

    assert lines[1] == "  60        0       0       60"
    assert lines[3].startswith("all 60 entries: its last run is unknown")
    assert all(len(line) <= 80 for line in lines)
    assert len(lines) < 20


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
    assert of(entry_of({"every_s": 900}, NOW, **said)) == (starting_at, tuple(remarks))


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


@pytest.mark.parametrize(
    ("value", "remedy", "why", "instead"),
    table(__file__, "the_two_halves_of_a_fault_are_sentences_of_their_own"),
)
def test_the_two_halves_of_a_fault_are_sentences_of_their_own(
    value: object, remedy: str, why: str, instead: str
) -> None:
    refused = Refused.by("it", "file", InvalidDocument([Problem("x", value, remedy)]))

    assert (refused.why, refused.instead) == (why, instead)


def test_several_faults_are_all_named_and_the_same_advice_once() -> None:
    problems = [Problem(key, n, "is no text; write a text") for n, key in enumerate("xy", 1)]

    refused = Refused.by("it", "file", InvalidDocument(problems))

    assert (refused.why, refused.instead) == ("x 1 is no text; y 2 is no text", "write a text")
