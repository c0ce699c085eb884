import json
from collections.abc import Mapping
from typing import Any

import pytest
from celery import Celery, Task
from celery.beat import ScheduleEntry
from celery.schedules import BaseSchedule, crontab, schedule
from celery.signals import before_task_publish

from interop.outcomes import Outcome
from minutebook.beat import schedule_of
from minutebook.beat.entries import SIGNAL
from models.json_text import read_json
from tests import moved as imported

SOUND = {"task": "tasks.it", "schedule": crontab("5", "0")}


class Rude:
    """A value of an application that cannot be shown."""

    def __repr__(self) -> str:
        raise RuntimeError("not shown")


class Weird(BaseSchedule):
    """A schedule that only the application's code understands."""


def moved(app: Celery) -> dict[str, Outcome]:
    written = json.dumps(schedule_of(app), allow_nan=False)
    return imported.moved(read_json(written, longest=None))


def application(entries: Mapping[Any, Any], **settings: Any) -> Celery:
    app = Celery("shop", set_as_current=False)
    app.conf.update(beat_schedule=dict(entries), **settings)
    return app


def endless() -> list[Any]:
    made: list[Any] = []
    made.append(made)
    return made


@pytest.mark.parametrize(
    ("entry", "why"),
    [
        pytest.param({"args": "Paris"}, "its args 'Paris' are not a list", id="args_text"),
        pytest.param({"kwargs": ["Paris"]}, "its kwargs ['Paris'] are not", id="kwargs_list"),
        pytest.param({"options": "orders"}, "its options 'orders' are not", id="options_text"),
        pytest.param({"task": None}, "it has no task", id="no_task"),
        pytest.param({"task": 3}, "its task 3 is no name", id="task_number"),
        pytest.param({"schedule": None}, "its schedule None is no schedule", id="schedule_none"),
        pytest.param({"schedule": True}, "its schedule True is no schedule", id="schedule_true"),
        pytest.param({"schedule": float("inf")}, "its schedule inf is no schedule", id="for_ever"),
        pytest.param({"schedule": 1e300}, "OverflowError", id="too_long"),
        pytest.param({"schedule": Weird()}, "test_entries.Weird' is not", id="own_schedule"),
        pytest.param({"schedule": Rude()}, "its schedule a Rude is no", id="rude_schedule"),
        pytest.param({"args": [float("nan")]}, "action cannot hold args[0]: nan", id="nan"),
        pytest.param({"args": [Rude()]}, "action cannot hold args[0]: a Rude", id="rude_argument"),
        pytest.param({"args": [2**80]}, "1208925819614629174706176 (beyond 2**63", id="wide"),
        pytest.param({"args": [-(2**63)]}, "-9223372036854775808 (beyond 2**63", id="wide_below"),
        pytest.param({"args": ["a\0b"]}, "action cannot hold args[0]: 'a\\x00b'", id="nul"),
        pytest.param({"args": [endless()]}, "action cannot hold args[0]", id="endless"),
        pytest.param({"args": [{(1, 2): 3}]}, "action cannot hold args[0]: {(1, 2)", id="pair_key"),
        pytest.param({"options": {"priority": "high"}}, "priority 'high'", id="priority_text"),
    ],
)  # fmt: skip
def test_a_broken_entry_is_named_and_the_others_move(entry: Mapping[str, Any], why: str) -> None:
    found = moved(application({"broken": {**SOUND, **entry}, "sound": SOUND}))

    assert (found["broken"].kind, found["sound"].kind) == ("cannot", "same")
    assert why in found["broken"].why
    assert found["broken"].instead


@pytest.mark.parametrize(
    ("entry", "why"),
    [
        (None, "None is not an entry"),
        ({"task": "tasks.it"}, "it has no schedule"),
        (Rude(), "a Rude is not an entry"),
        ({**SOUND, "owner": "x"}, "beat cannot make its entry: TypeError"),
    ],
)
def test_what_is_no_entry_is_named(entry: object, why: str) -> None:
    found = moved(application({"it": entry, "sound": SOUND}))

    assert (found["it"].kind, found["sound"].kind) == ("cannot", "same")
    assert why in found["it"].why


def test_a_queue_that_is_not_declared_refuses_its_entry_alone() -> None:
    entries = {"lost": {**SOUND, "options": {"queue": "nowhere"}}, "sound": SOUND}
    found = moved(application(entries, task_create_missing_queues=False))

    assert (found["lost"].kind, found["sound"].kind) == ("cannot", "same")
    assert "QueueNotFound: \"Queue 'nowhere' missing" in found["lost"].why


@pytest.mark.parametrize(
    ("args", "kwargs", "why"),
    [
        ([], {}, "TypeError: add() missing 1 required positional argument: 'y'"),
        ([1, 2], {}, "TypeError: add() takes 2 positional arguments but 3 were given"),
        ([1], {"z": 1}, "TypeError: add() got an unexpected keyword argument 'z'"),
        ([1], {}, None),
    ],
)
@pytest.mark.parametrize("is_checked", [True, False])
def test_arguments_that_celery_does_not_send_are_no_work(
    args: list[Any], kwargs: dict[str, Any], why: str | None, is_checked: bool
) -> None:
    app = application({"it": {**SOUND, "task": "add", "args": args, "kwargs": kwargs}})

    @app.task(name="add", bind=True, typing=is_checked, shared=False)
    def add(_task: Any, y: int) -> None: ...

    (found,) = moved(app).values()

    is_refused = is_checked and why is not None
    assert found.kind == ("cannot" if is_refused else "same")
    assert found.why == (f"beat cannot send it: {why}" if is_refused else "")


def test_a_name_that_no_action_can_have_refuses_its_entry_alone() -> None:
    found = moved(application({"a" * 500: SOUND, 5: SOUND, "sound": SOUND}))

    assert [one.kind for one in found.values()] == ["cannot", "same", "same"]


def test_an_entry_of_beat_itself_is_read() -> None:
    entry = ScheduleEntry("it", "tasks.it", schedule=schedule(60), args=("Paris",))
    (found,) = moved(application({"it": entry})).values()

    assert found.document is not None
    assert found.document["operations"]["celery_task"]["args"] == ["Paris"]


class Once(Task[Any, Any]):
    """A task that keeps its runs apart when it is sent, as celery-once and celery-singleton do."""

    def apply_async(self, *args: Any, **kwargs: Any) -> Any:
        return super().apply_async(*args, **kwargs)


class InContext(Task[Any, Any]):
    """A task that runs within something of the application, as Flask's page shows it."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.run(*args, **kwargs)


class Mixed(InContext, Once):
    """A task with two such parents."""


class Eager(Task[Any, Any]):
    def apply(self, *args: Any, **kwargs: Any) -> Any:
        return super().apply(*args, **kwargs)


def not_called(owner: str) -> str:
    return (
        f"its class {__name__}.{owner} overrides apply_async, which Minutebook does not call: if"
        ' that keeps its runs apart, write "policy": {"overlap": "skip"}'
    )


def within(owner: str, methods: str = "__call__") -> str:
    return (
        f"its class {__name__}.{owner} overrides {methods}: a worker that follows claims the run"
        " within it"
    )


@pytest.mark.parametrize(
    ("base", "remarks"),
    [
        pytest.param(Task, (), id="of_celery"),
        pytest.param(Once, (not_called("Once"),), id="once"),
        pytest.param(Mixed, (not_called("InContext"),), id="of_two_parents"),
        pytest.param(InContext, (within("InContext"),), id="in_a_context"),
        pytest.param(Eager, (within("Eager", "apply"),), id="runs_here"),
    ],
)
def test_classes_that_override_methods_are_remarked(base: Any, remarks: tuple[str, ...]) -> None:
    app: Any = application({"it": SOUND})
    app.task(name="tasks.it", shared=False, base=base)(local)

    assert moved(app)["it"].remarks == remarks


def local() -> None: ...


def test_receivers_that_may_change_messages_are_remarked() -> None:
    def receive(**_rest: Any) -> None: ...

    before_task_publish.connect(receive)
    try:
        found = moved(application({"it": SOUND}))
    finally:
        before_task_publish.disconnect(receive)

    assert (found["it"].kind, found["it"].remarks) == ("differs", (SIGNAL,))


def test_nothing_is_changed_in_the_application_that_is_asked() -> None:
    app = application({"it": SOUND}, task_always_eager=True, task_protocol=1)
    ran: list[int] = []

    @app.task(name="tasks.it", shared=False)
    def it() -> None:
        ran.append(1)

    schedule_of(app)

    assert (app.conf.task_always_eager, app.conf.task_protocol, ran) == (True, 1, [])
    its: Any = app.tasks["tasks.it"].apply_async
    assert its.__func__ is Task.apply_async
