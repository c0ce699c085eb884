"""Jobs of a real APScheduler 3, read in its process."""

import json
import subprocess
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import pytest
import pytz
from apscheduler.jobstores.sqlalchemy import SQLAlchemyJobStore
from apscheduler.schedulers.background import BackgroundScheduler
from apscheduler.triggers.calendarinterval import CalendarIntervalTrigger
from apscheduler.triggers.combining import AndTrigger, OrTrigger
from apscheduler.triggers.cron import CronTrigger
from apscheduler.triggers.interval import IntervalTrigger
from celery import Celery

from interop.apscheduler_jobs import Work, entries_of, written_jobs
from interop.outcomes import Outcome, outcomes
from minutebook.apscheduler import jobs_of
from models.action.document import ParseContext
from models.errors import InvalidDocument
from runtime.clock import utc_now
from tasks.built_in import built_in_steps
from tests.moved import document, names
from tests.tables import table

# The schedulers of these tests are real: they plan from now on.
NOW = utc_now()
CONTEXT = ParseContext("UTC", NOW, built_in_steps(), created_at=NOW, celery=None, commands=None)
WORK = Work(lambda name: fnmatchcase(name, "builtins.*"), "shop")
BY_PYTHON = Work(lambda _name: False, "shop", "/opt/shop/bin/python")
PARIS = "Europe/Paris"
app = Celery("shop", set_as_current=False)


def cron(**fields: Any) -> CronTrigger:
    return CronTrigger(timezone=fields.pop("zone", PARIS), **fields)


def calendar(**fields: Any) -> CalendarIntervalTrigger:
    return CalendarIntervalTrigger(timezone=PARIS, **{"start_date": "2026-12-31", **fields})


def fill(scheduler: Any) -> None:  # noqa: PLR0915 - a table
    """Add one job of each kind: the functions are those of a module that is there."""

    def add(id: str, trigger: Any, func: str = "builtins:print", **rest: Any) -> None:
        scheduler.add_job(func, trigger, id=id, **rest)

    quarter = IntervalTrigger(minutes=15, start_date=datetime(2026, 1, 1, tzinfo=UTC))
    daily = cron(hour=7, minute=30)
    add("daily", daily, args=["[1]"], name="The report", misfire_grace_time=3600)
    add("pytz", cron(hour=7, minute=30, zone=pytz.timezone(PARIS)))
    add("work days", cron(day_of_week="mon-fri", hour="9,17"))
    add("first monday", cron(day="1st mon", hour=9))
    add("every quarter", cron(minute="*/15", zone="UTC"))
    add("summer", cron(month="6-8", day="*/2", hour=4, zone="Asia/Tokyo"))
    add("often", quarter, coalesce=False, max_instances=3)
    add("in turn", quarter, coalesce=False)
    add("once", "date", run_date=datetime(2190, 12, 24, 18, tzinfo=UTC))
    add("either", OrTrigger([daily, cron(day="1", hour=0)]))
    add("bounded", cron(hour=7, start_date="2030-01-01", end_date="2031-01-01"))
    add("paused", daily, next_run_time=None, misfire_grace_time=None)
    add("jitter", cron(hour=7, jitter=30))
    add("sent", daily, f"{__name__}:app.send_task", args=["shop.close", ["Paris"]])
    add("a command", daily, "os.path:join", args=["a"])
    add("each second", cron(second="*"))
    add("second monday", cron(day="2nd mon", hour=9))
    add("last day", cron(day="last"))
    add("some", cron(day="1st mon,last fri", hour=9))
    add("last of some", cron(day="last", day_of_week="mon"))
    add("dates and days", cron(day="15,2nd mon,last", hour=9))
    add("several days", cron(day="2nd mon,3rd tue", hour=9))
    add("both days", cron(day="8-15", day_of_week="mon", hour="9,17"))
    add("days of days", cron(day="last fri", day_of_week="mon", hour=9))
    add("third day", calendar(days=3, hour=11))
    add("half years", calendar(months=6, hour=9, minute=30, end_date="2031-01-01"))
    add("each leap day", calendar(years=1, start_date="2028-02-29"))
    add("months and days", calendar(months=1, days=1))
    add("calendar seconds", calendar(days=1, second=5))
    add("odd", IntervalTrigger(seconds=90.5))
    add("both", AndTrigger([daily, cron(day="1", hour=7, minute=30)]))
    add("an instant", daily, args=[datetime(2026, 1, 1, tzinfo=UTC)])


def stored_in(url: str = "") -> BackgroundScheduler:
    """Return a scheduler with a job store of its own, or with none, which has not started."""
    jobstores = {"default": SQLAlchemyJobStore(url)} if url else {}
    return BackgroundScheduler(jobstores=jobstores, timezone="UTC")


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The URL of a job store that a real scheduler has filled."""
    url = f"sqlite:///{tmp_path_factory.mktemp('store')}/jobs.db"
    scheduler = stored_in(url)
    scheduler.start(paused=True)
    fill(scheduler)
    scheduler.shutdown()
    return url


def moved(
    scheduler: BackgroundScheduler, work: Work = WORK, now: datetime = NOW
) -> dict[str, Outcome]:
    """Return what becomes of the jobs of a scheduler, by their ids."""
    written = json.loads(json.dumps(jobs_of(scheduler)))
    entries = entries_of(written_jobs(written), "jobs.json", work, now)
    return {one.name: one for one in outcomes(entries, CONTEXT)}


def only_moved(work: Work, function: Any, **given: Any) -> Outcome:
    """Return what becomes of one job."""
    scheduler = stored_in()
    scheduler.add_job(function, cron(hour=7), id="it", **given)
    return moved(scheduler, work)["it"]


@pytest.fixture(scope="module")
def found(store: str) -> dict[str, Outcome]:
    return moved(stored_in(store))


def test_each_kind_of_outcome(found: Mapping[str, Outcome]) -> None:
    assert names(found, "same") == {
        "daily", "pytz", "work days", "first monday", "second monday", "last day", "some",
        "every quarter", "summer", "once", "either", "bounded", "paused", "sent", "last of some",
        "dates and days", "several days", "both days", "third day", "half years", "each leap day",
        "jitter",
    }  # fmt: skip
    assert names(found, "differs") == {"often", "in turn"}


def test_a_job_becomes_an_action(found: Mapping[str, Outcome]) -> None:
    assert document(found, "daily") == {
        "name": "daily",
        "description": "The report",
        "owner": "import:apscheduler",
        "operations": {"celery_task": {"task": "builtins.print", "args": ["[1]"], "queue": "shop"}},
        "when": {"cron_rule": "30 7 * * *", "timezone": PARIS},
        "policy": {"look_back": "PT1H"},
    }


@pytest.mark.parametrize(
    ("name", "when"),
    table(__file__, "rules_of_apscheduler"),
)
def test_rules(found: Mapping[str, Outcome], name: str, when: object) -> None:
    assert document(found, name)["when"] == when


@pytest.mark.parametrize(
    ("name", "policy"),
    table(__file__, "policies_of_apscheduler"),
)
def test_policies(found: Mapping[str, Outcome], name: str, policy: object) -> None:
    assert document(found, name)["policy"] == policy


@pytest.mark.parametrize(
    ("name", "why"),
    table(__file__, "what_is_refused_of_apscheduler"),
)
def test_what_is_refused(found: Mapping[str, Outcome], name: str, why: str) -> None:
    assert (found[name].kind, found[name].document) == ("cannot", None)
    assert why in found[name].why
    assert found[name].instead


def test_a_scheduler_without_a_store_writes_the_same(found: Mapping[str, Outcome]) -> None:
    scheduler = stored_in()
    fill(scheduler)

    it = moved(scheduler)

    assert {name: one.document for name, one in it.items()} == {
        name: one.document for name, one in found.items()
    }


def test_a_job_that_the_code_adds_stands_for_the_stored_one(store: str) -> None:
    scheduler = stored_in(store)
    scheduler.add_job(print, cron(hour=8), id="daily", replace_existing=True)

    jobs = [one for one in jobs_of(scheduler)["jobs"] if one["id"] == "daily"]

    assert [one["trigger"]["fields"]["hour"] for one in jobs] == ["8"]


def test_a_stored_job_whose_function_is_gone_is_named_and_stays_in_its_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"sqlite:///{tmp_path}/jobs.db"
    monkeypatch.setattr(sys.modules[__name__], "gone", lambda: None, raising=False)
    monkeypatch.setattr(sys.modules[__name__].__dict__["gone"], "__qualname__", "gone")
    scheduler = stored_in(url)
    scheduler.start(paused=True)
    scheduler.add_job(f"{__name__}:gone", cron(hour=7), id="it")
    scheduler.add_job(print, cron(hour=7), id="other")
    scheduler.shutdown()
    monkeypatch.delattr(sys.modules[__name__], "gone")

    first, again = moved(stored_in(url)), moved(stored_in(url))

    assert (first["it"].kind, first["other"].kind) == ("cannot", "same")
    assert "its store cannot restore it" in first["it"].why
    assert again.keys() == first.keys()


def test_a_store_that_cannot_be_read_is_one_sentence() -> None:
    with pytest.raises(SystemExit) as ended:
        jobs_of(stored_in("sqlite:////nowhere/jobs.db"))

    assert str(ended.value).startswith("error: the jobs of the store 'default' cannot be read: ")


class Clock:
    def strike(self) -> None: ...

    @classmethod
    def stop(cls) -> None: ...


async def waits() -> None: ...


@pytest.mark.parametrize(
    ("function", "why"),
    [
        (lambda: None, "no other process finds its function <function <lambda>"),
        (Clock().strike, "no other process finds its function <bound method Clock.strike"),
        (partial(print, 1), "no other process finds its function functools.partial("),
        (waits, "is a coroutine, which only an event loop runs"),
        (Clock.stop, None),
        (print, None),
    ],
)
def test_a_function_that_no_other_process_can_call_is_refused(
    function: Any, why: str | None
) -> None:
    scheduler = stored_in()
    scheduler.add_job(function, cron(hour=7), id="it", args=[1] if function == print else [])
    scheduler.add_job(print, cron(hour=7), id="other", args=["a"])

    found = moved(scheduler, Work(lambda _: True, "shop"))

    assert found["other"].kind == "same"
    assert found["it"].kind == ("cannot" if why else "same")
    assert (why or "") in found["it"].why


STARTS = """
import asyncio, atexit, threading, time
from datetime import datetime
from apscheduler.schedulers.{module} import {kind}

class Own({kind}):
    def start(self, *args, **kwargs):
        super().start(*args, **kwargs)

def tick():
    open("ran", "a").write("x")

sched = {made}(timezone="UTC")
sched.add_job(tick, "interval", seconds=1, id="tick", next_run_time=datetime(2020, 1, 1))
sched.add_job(tick, "cron", hour=7, id="daily")
"""


def read(folder: Path, module: str, name: str) -> subprocess.CompletedProcess[str]:
    """Let the command read the scheduler of that name in a module."""
    (folder / "clock.py").write_text(module)
    command = [sys.executable, "-m", "minutebook", "apscheduler", "-s", f"clock:{name}"]
    return subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=60, check=False
    )


@pytest.mark.parametrize(
    ("module", "kind", "made", "end"),
    table(__file__, "a_module_that_starts_its_scheduler_is_read_without_running_a_job"),
)
def test_a_module_that_starts_its_scheduler_is_read_without_running_a_job(
    tmp_path: Path, module: str, kind: str, made: str, end: str
) -> None:
    ran = read(tmp_path, STARTS.format(module=module, kind=kind, made=made) + end, "sched")

    assert ran.returncode == 0, ran.stderr
    assert [one["id"] for one in json.loads(ran.stdout)["jobs"]] == ["tick", "daily"]
    assert "Traceback" not in ran.stderr
    advice = 'begin that part with `if __name__ == "__main__":`'
    # A thread may be too late to give it.
    assert "target=sched.start" in end or (advice in ran.stderr) == ("if __name__" not in end)
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("name", ["nothing", "make", "make.it"])
def test_a_scheduler_inside_a_function_is_answered_with_advice(tmp_path: Path, name: str) -> None:
    ran = read(tmp_path, "def make():\n    pass\n", name)

    assert ran.returncode != 0
    assert "write a module that calls it, such as scheduler = make()" in ran.stderr
    assert "Traceback" not in ran.stderr


def test_a_python_runs_functions_that_are_no_tasks(store: str) -> None:
    made = moved(stored_in(store), BY_PYTHON)["a command"]

    assert (made.kind, made.document is None) == ("same", False)
    run = (made.document or {})["operations"]["command"]["run"]
    assert (run[0], run[3:]) == ("/opt/shop/bin/python", ["os.path:join", '["a"]', "{}"])
    done = subprocess.run([sys.executable, *run[1:]], check=False, capture_output=True)
    assert done.returncode == 0, done.stderr


app.conf.task_routes = {"shop.renamed": {"queue": "hot"}}


@app.task(name="shop.renamed", expires=60, shared=False)
def renamed(shop: str) -> None: ...


@pytest.mark.parametrize(
    ("function", "given", "step"),
    [
        (renamed.delay, {"args": ["Paris"]}, {"queue": "hot"}),
        (renamed.apply_async, {"args": [["Paris"]]}, {"queue": "hot"}),
        (
            renamed.apply_async,
            {"kwargs": {"args": ["Paris"], "queue": "slow", "priority": 3}},
            {"queue": "slow", "priority": 3},
        ),
        (renamed, {"args": ["Paris"]}, {"queue": "hot"}),
        (
            f"{__name__}:app.send_task",
            {"args": ["shop.renamed", ["Paris"]], "kwargs": {"expires": 60}},
            {"queue": "hot"},
        ),
    ],
)
def test_a_task_of_another_name_is_sent_by_its_own_to_its_own_queue(
    function: Any, given: Mapping[str, Any], step: Mapping[str, Any]
) -> None:
    it = only_moved(Work(lambda name: name == "shop.renamed", "shop"), function, **given)

    assert it.document is not None, it.why
    task = {"task": "shop.renamed", "args": ["Paris"], "expires": 60, **step}
    assert it.document["operations"] == {"celery_task": task}


@pytest.mark.parametrize(
    ("args", "remark"),
    [
        ([(1, 2)], "JSON changes its args[0]: (1, 2)"),
        ([{"a": {1: 2}}], "JSON changes its args[0].a: the key 1"),
        ([{"a": [True, None, 1.5, "x"]}], None),
    ],
)
def test_a_python_gets_what_json_holds_of_arguments(args: list[Any], remark: str | None) -> None:
    it = only_moved(BY_PYTHON, print, args=args)

    assert it.remarks == ((remark,) if remark else ())


@pytest.mark.parametrize(
    "document",
    [
        pytest.param([], id="a_list"),
        pytest.param({"minutebook_apscheduler": 2, "apscheduler": "3", "jobs": []}, id="later"),
    ],
)
def test_another_document_is_refused(document: object) -> None:
    with pytest.raises(InvalidDocument):
        list(written_jobs(document))


def test_random_crontabs_are_due_when_apscheduler_fires() -> None:
    random = Random(13)

    def field(low: int, high: int) -> str:
        first = random.randint(low, high)
        last = random.randint(first, high)
        step = random.randint(1, max((last - first) // 2, 1))
        ranged = f"{first}-{last}" if step >= last - first else f"{first}-{last}/{step}"
        return random.choice(["*", "*/3", str(first), ranged])

    scheduler = stored_in()
    for number in range(40):
        fields = {"minute": (0, 59), "hour": (0, 23), "day_of_week": (0, 6), "month": (1, 12)}
        texts = {name: field(*bounds) for name, bounds in fields.items()}
        scheduler.add_job("builtins:print", cron(**texts, zone="UTC"), id=str(number))

    # Not that of the module: they are due from now on.
    assert {one.kind for one in moved(scheduler, now=utc_now()).values()} == {"same"}
