"""Jobs are stored as actions: added, imported twice, listed, deleted; by command and by HTTP."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from cli.main import run
from models.action.plan import readable
from models.errors import InvalidDocument, NotFound, Refused
from models.job import id_of
from models.store import actions
from models.store.actions.status import plan_in
from runtime.config import Settings
from scheduler.occurrence import next_occurrences
from services import jobs
from services.files import read_documents
from services.installation import Installation
from services.jobs.documents import NewJob, first_runs
from tests.factories import installation_on, make_action
from tests.integration.web.jobs import URL, make_due, make_job
from tests.transactions import act

NOW = datetime(2027, 1, 4, 12, tzinfo=UTC)


@pytest.fixture
def opened(settings: Settings, engine: sa.Engine) -> Installation:
    return installation_on(engine, settings)


def write(folder: Path, *rows: object) -> Path:
    file = folder / "jobs.json"
    file.write_text(json.dumps(rows))
    return file


def many(count: int, interval_s: int = 300) -> list[dict[str, Any]]:
    return [
        {"url": f"https://example.com/{interval_s}/{number}", "interval_s": interval_s}
        for number in range(count)
    ]


def test_an_added_job_is_an_action_that_runs_at_once_and_every_five_minutes(
    opened: Installation,
) -> None:
    added = jobs.add(opened, NewJob(url=URL, meta={"depth": "2"}))
    (listed,) = jobs.list_jobs(opened, 2).items
    row = act(opened.engine, actions.find, opened.small_app.id, added.id, opened.scope)

    assert (added.id, added.change, added.interval_s) == (id_of(URL), "created", 300)
    assert len(added.id) == 12
    assert listed.next_run_at is not None
    assert listed.next_run_at >= row["created_at"]
    assert (listed.url, listed.interval_s, listed.meta) == (URL, 300, {"depth": "2"})
    made = row["created_at"]
    first, second = next_occurrences(readable(plan_in(row)), row["uid"], made, 2)
    assert first - made < timedelta(seconds=5)
    assert second - first == timedelta(seconds=300)


def test_adding_a_job_again_changes_it_and_keeps_its_policy(opened: Installation) -> None:
    retry = {"retry": {"max_attempts": 3}}
    make_job(opened.engine, name=id_of(URL), policy=retry)

    changed = jobs.add(opened, NewJob(url=URL, interval_s=60))
    again = jobs.add(opened, NewJob(url=URL, interval_s=60))

    assert (changed.change, again.change) == ("changed", "unchanged")
    plan = readable(plan_in(act(opened.engine, actions.find, 1, id_of(URL), opened.scope)))
    assert (plan.policy.retry.max_attempts, plan.every) == (3, timedelta(minutes=1))


def test_a_job_counts_from_its_end_until_it_gets_a_grid(opened: Installation) -> None:
    def stored() -> Any:
        row = act(opened.engine, actions.find, opened.small_app.id, id_of(URL), opened.scope)
        return json.loads(row["document"])["when"]

    seen = []
    jitter = {"jitter_s": 90, "jitter_each": True}
    for asked in ({"from_end": True}, {"interval_s": 600, **jitter}, {"from_end": False}):
        jobs.add(opened, NewJob(url=URL, **asked))
        seen.append(stored())
    (listed,) = jobs.list_jobs(opened, 2).items

    drawn = {"jitter": "PT1M30S", "jitter_each": True}
    assert seen[:2] == [
        {"every": "PT5M", "from": "end"},
        {"every": "PT10M", "from": "end", **drawn},
    ]
    assert seen[2] == {"every": "PT5M", "starting_at": seen[2]["starting_at"], **drawn}
    assert listed.interval_s == 300.0


def test_first_runs_are_spread_over_the_interval() -> None:
    news = [NewJob.model_validate(one) for one in (*many(3), *many(2, 60))]

    begins = first_runs(news, NOW - timedelta(seconds=1))

    assert [(at - NOW).total_seconds() for at in begins] == [0, 100, 200, 0, 30]


def test_importing_twice_changes_nothing(opened: Installation, tmp_path: Path) -> None:
    read = read_documents(write(tmp_path, *many(3), {"url": URL, "meta": {"a": [1]}}))

    first, second = jobs.import_jobs(opened, read), jobs.import_jobs(opened, read)

    assert first.model_dump() == {"created": 4, "changed": 0, "unchanged": 0}
    assert second.model_dump() == {"created": 0, "changed": 0, "unchanged": 4}


def test_an_import_is_all_or_nothing_and_names_each_fault(
    opened: Installation, tmp_path: Path
) -> None:
    wrong = [
        {"url": "ftp://x"},
        {"url": URL, "interval_s": "5"},
        {"interval_s": 5},
        {"url": URL, "x": 1},
    ]
    file = write(tmp_path, *many(1), *wrong)

    with pytest.raises(InvalidDocument) as refused:
        jobs.import_jobs(opened, read_documents(file))

    paths = [problem.path.partition(": ")[2] for problem in refused.value.problems]
    assert paths == ["url", "interval_s", "url", "x"]
    assert jobs.list_jobs(opened, 9).items == ()


def test_an_action_of_that_name_that_does_something_else_stays(opened: Installation) -> None:
    make_action(opened.engine, name=id_of(URL))

    with pytest.raises(Refused, match="is not the job of https://example"):
        jobs.add(opened, NewJob(url=URL))


def test_a_deleted_job_is_gone_and_what_waited_is_cancelled(opened: Installation) -> None:
    make_due(opened.engine, make_job(opened.engine))

    deleted = jobs.delete(opened, id_of(URL))

    assert (deleted.url, deleted.cancelled) == (URL, 1)
    assert jobs.list_jobs(opened, 9).items == ()
    with pytest.raises(NotFound, match="minutebook job list"):
        jobs.delete(opened, id_of(URL))


def test_a_job_of_two_actions_is_deleted_by_their_names(opened: Installation) -> None:
    make_job(opened.engine, name="one")
    make_job(opened.engine, name="two")

    with pytest.raises(Refused, match="work of 2 actions"):
        jobs.delete(opened, id_of(URL))


def test_the_commands_print_what_was_done(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    home = ["--home", str(tmp_path / "home")]
    file = write(tmp_path, *many(2))

    codes = [
        run([*home, "job", "add", "--url", URL, "--interval", "3600", "--meta", "depth=2"]),
        run([*home, "job", "import", "--file", str(file)]),
        run([*home, "job", "list"]),
        run([*home, "job", "delete", id_of(URL)]),
        run([*home, "job", "add", "--url", URL, "--meta", "depth"]),
    ]

    lines = capsys.readouterr().out.splitlines()
    assert codes == [0, 0, 0, 0, 2]
    assert lines[0] == f"created job {id_of(URL)} of {URL}, every 3600 s"
    assert lines[1] == "2 jobs created, 0 changed, 0 unchanged"
    assert lines[2].split() == ["ID", "URL", "INTERVAL", "NEXT", "RUN", "LAST", "STATE"]
    assert len(lines) == 7
    assert lines[6] == f"deleted job {id_of(URL)} of {URL}; 0 runs cancelled"


def test_entries_of_one_url_are_named(opened: Installation, tmp_path: Path) -> None:
    file = write(tmp_path, {"url": URL}, {"url": f"{URL}/b"}, {"url": URL, "interval_s": 60})

    with pytest.raises(InvalidDocument) as refused:
        jobs.import_jobs(opened, read_documents(file))

    (problem,) = refused.value.problems
    assert problem.path == f"{file}[2]: url"
    assert (problem.value, problem.remedy) == (
        URL,
        f"is also the job of {file}[0]; keep one of the two",
    )
    assert jobs.list_jobs(opened, 9).items == ()
