"""Applications of the shapes that users have, and what Celery's own beat sends for them.

    python beat_shapes.py URL FOLDER

For each shape it prints a line of JSON: what is exported, and each message that the application's
own scheduler published at the broker, as it arrived. It needs nothing but Celery and the client.
"""

import json
import sys
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta, timezone
from importlib import import_module
from pathlib import Path
from typing import Any

from celery import Celery
from celery.beat import BeatLazyFunc, ScheduleEntry, Scheduler
from celery.schedules import crontab
from kombu import Queue
from kombu.serialization import register

from minutebook.beat import schedule_of
from minutebook.beat.stores import scheduler_of

Shape = Callable[[Celery], dict[str, Any]]
SHAPES: dict[str, Shape] = {}
# Python 3.10 has no other name for it.
UTC = timezone(timedelta())
DAILY = crontab("5", "0")


def shape(function: Shape) -> Shape:
    """Add a shape: a function that sets an application up and returns its entries."""
    SHAPES[function.__name__] = function
    return function


def run(*_args: Any, **_kwargs: Any) -> None: ...


def tasks(app: Celery, **options: Any) -> None:
    for name in ("run", "close", "report"):
        made: Any = app.task(name=f"shop.{name}", shared=False, **options)
        made(run)


def entry(task: str = "shop.run", schedule: Any = DAILY, **rest: Any) -> dict[str, Any]:
    return {"task": task, "schedule": schedule, **rest}


@shape
def plain(app: Celery) -> dict[str, Any]:
    tasks(app)
    app.conf.task_routes = {"shop.report": {"queue": "reports", "priority": 4}}
    return {
        "crontab": entry(),
        "interval": entry(schedule=60.0, args=("Paris", 1.5, None, True)),
        "timedelta": entry(schedule=timedelta(hours=2), kwargs={"a": {"b": [1]}}),
        "routed": entry("shop.report"),
        "priority": entry("shop.report", options={"priority": 1}),
        "headers": entry(options={"headers": {"tenant": "a"}}),
        "expires": entry(options={"expires": 90}),
        "elsewhere": entry("other.run", options={"queue": "others"}),
        "no number of seconds": entry(schedule=0.5),
        "nothing": entry(schedule=0),
    }


class OwnEntry(ScheduleEntry):
    """An entry that decides itself what is sent where."""

    def __init__(self, name: Any = None, task: Any = None, **rest: Any) -> None:
        super().__init__(name, f"shop.{task}", **rest)
        self.args: Any = ["of the entry", *(self.args or ())]
        self.options = {**(self.options or {}), "queue": "of_the_entry", "headers": {"by": name}}


class OwnScheduler(Scheduler):
    Entry = OwnEntry


@shape
def own_entry(app: Celery) -> dict[str, Any]:
    app.conf.beat_scheduler = f"{__name__}:OwnScheduler"
    return {
        "short name": entry("run", args=["Paris"]),
        "with a queue": entry("run", schedule=60.0, options={"queue": "lost"}),
    }


class Impatient(ScheduleEntry):
    """An entry that is due as it likes."""

    def is_due(self) -> Any:
        due, wait_s = super().is_due()
        return due and self.default_now().weekday() != 6, wait_s


class ImpatientScheduler(Scheduler):
    Entry = Impatient


@shape
def own_instants(app: Celery) -> dict[str, Any]:
    app.conf.beat_scheduler = f"{__name__}:ImpatientScheduler"
    return {"not on sundays": entry()}


class FromCode(Scheduler):
    """A scheduler that makes its entries itself."""

    def setup_schedule(self) -> None:
        """Add an entry for each shop."""
        shops = ("Paris", "Rome")
        self.update_from_dict({f"close {one}": entry("shop.close", args=[one]) for one in shops})


@shape
def own_schedule_of_a_scheduler(app: Celery) -> dict[str, Any]:
    app.conf.beat_scheduler = f"{__name__}:FromCode"
    return {"not asked for": entry()}


class Stamping(Scheduler):
    """A scheduler that changes each message."""

    def apply_async(self, entry: Any, *args: Any, **rest: Any) -> Any:
        entry.options["headers"] = {"sent_by": "us"}
        return super().apply_async(entry, *args, **rest)


@shape
def own_sending(app: Celery) -> dict[str, Any]:
    app.conf.beat_scheduler = f"{__name__}:Stamping"
    return {"stamped": entry()}


def results(app: Celery) -> dict[str, Any]:
    """Return entries that say whether a result is stored, and one that does not."""
    return {
        f"{task} {said}": entry(f"shop.{task}", options=options)
        for task in ("run", "elsewhere")
        for said, options in (
            ("unsaid", {}),
            ("ignored", {"ignore_result": True}),
            ("stored", {"ignore_result": False}),
        )
    }


@shape
def results_of_a_task(app: Celery) -> dict[str, Any]:
    tasks(app, ignore_result=True)
    return results(app)


@shape
def results_kept(app: Celery) -> dict[str, Any]:
    tasks(app)
    return results(app)


@shape
def protocol_1(app: Celery) -> dict[str, Any]:
    app.conf.task_protocol = 1
    tasks(app)
    return {"old": entry(args=["Paris"])}


def by_arguments(
    name: str, args: Any, kwargs: Any, options: Any, task: Any = None, **_rest: Any
) -> Any:
    """Route a task by what it gets."""
    if kwargs.get("shop"):
        return {"queue": f"of_{kwargs['shop']}", "priority": len(kwargs["shop"])}
    if name == "shop.close":
        raise LookupError("no shop closes")
    return None


@shape
def routers(app: Celery) -> dict[str, Any]:
    app.conf.task_routes = by_arguments
    tasks(app)
    return {
        "paris": entry(kwargs={"shop": "paris"}),
        "close": entry("shop.close"),
    }


register("shopjson", json.dumps, json.loads, "application/x-shop", "utf-8")


@shape
def serializers(app: Celery) -> dict[str, Any]:
    app.conf.accept_content = ["json", "pickle", "yaml", "shopjson"]
    app.task(name="shop.pickled", serializer="pickle", shared=False)(run)
    kinds = ("pickle", "yaml", "shopjson", "json")
    found = {name: entry(args=[(1, 2)], options={"serializer": name}) for name in kinds}
    return {**found, "of its task": entry("shop.pickled")}


@shape
def no_json(app: Celery) -> dict[str, Any]:
    app.conf.update(task_serializer="pickle", accept_content=["pickle"])
    tasks(app)
    return {"pickled": entry()}


@shape
def lists_in_redis(app: Celery) -> dict[str, Any]:
    app.conf.broker_transport_options = {"sep": ":", "priority_steps": [0, 5, 9]}
    tasks(app)
    return {f"priority {number}": entry(options={"priority": number}) for number in (0, 3, 9)}


@shape
def local_time(app: Celery) -> dict[str, Any]:
    app.conf.enable_utc = False
    tasks(app)
    return {
        "daily": entry(),
        "interval": entry(schedule=3600),
        "expires": entry(options={"expires": 60}),
    }


def now() -> datetime:
    return datetime.now(UTC)  # noqa: TID251 - of an application


def naive_utc() -> datetime:
    """Return the time as some applications keep it."""
    return now().replace(tzinfo=None)


@shape
def naive_times(app: Celery) -> dict[str, Any]:
    tasks(app)
    return {
        "last run": entry(schedule=3600, last_run_at=naive_utc()),
        "own clock": entry(schedule=crontab("5", "0", nowfun=naive_utc)),
        "expires": entry(options={"expires": naive_utc() + timedelta(days=1)}),
    }


@shape
def other_options(app: Celery) -> dict[str, Any]:
    tasks(app)
    its: dict[str, Any] = {"time_limit": 9, "soft_time_limit": 5, "expires": 30, "priority": 2}
    limited: Any = app.task(name="shop.limited", shared=False, queue="limited", **its)
    limited(run)
    options: dict[str, dict[str, Any]] = {
        "countdown": {"countdown": 5},
        "eta": {"eta": datetime(2099, 1, 1, tzinfo=UTC)},
        "time limit": {"time_limit": 30},
        "transient": {"delivery_mode": 1},
        "persistent": {"delivery_mode": 2},
        "link": {"link": app.signature("shop.close")},
        "no retry": {"retry": False},
        "task id": {"task_id": "always the same"},
        "group": {"group_id": "g"},
        "expired": {"expires": -5},
        "expires never": {"expires": None},
        "at an instant": {"expires": datetime(2099, 1, 1, tzinfo=UTC)},
        "as a text": {"expires": "2099-01-01T00:00:00+00:00"},
        "as a span": {"expires": timedelta(minutes=1)},
        "unknown": {"made_up": 1},
    }
    against = {"time_limit": 60, "priority": 8, "queue": "celery"}
    return {
        **{name: entry(options=its) for name, its in options.items()},
        "of its task": entry("shop.limited"),
        "against its task": entry("shop.limited", options=against),
        "lazy": entry(args=[BeatLazyFunc(now)]),
    }


@shape
def eager(app: Celery) -> dict[str, Any]:
    app.conf.task_always_eager = True
    tasks(app)
    return {
        "here": entry(),
        "elsewhere": entry("other.run"),
    }


def made(name: str, url: str) -> Celery:
    app = Celery("shop", broker=url, set_as_current=False)
    app.conf.beat_schedule = SHAPES[name](app)
    if "amqp" in url:
        # Whoever asks after it was sent finds it.
        app.conf.broker_transport_options["confirm_publish"] = True
    app.finalize()
    return app


def sent(app: Celery) -> dict[str, Any]:
    """Return what the application's own scheduler publishes for each entry."""
    kind: Any = scheduler_of(app, None)
    is_own = not kind.__module__.startswith("celery.")
    scheduler: Any = (kind if is_own else Scheduler)(app, lazy=True)
    entries: dict[str, Any] = {}
    if is_own and "setup_schedule" in vars(kind):
        scheduler.setup_schedule()
        entries = dict(scheduler.schedule)
    else:
        for name, given in app.conf.beat_schedule.items():
            try:
                entries[name] = scheduler.Entry(**dict(given, name=name, app=app))
            except Exception as error:
                entries[name] = error
    return {name: published(app, scheduler, one) for name, one in entries.items()}


def published(app: Celery, scheduler: Any, entry: Any) -> Any:
    """Return the messages of one entry, each with its queue; a text if it could not be sent."""
    if isinstance(entry, Exception):
        return repr(entry)
    try:
        declare(app)
        scheduler.apply_async(entry, producer=scheduler.producer, advance=False)
    except Exception as error:
        return repr(error)
    with app.connection_for_read() as connection:
        return taken(connection, list(app.amqp.queues))


def declare(app: Celery) -> None:
    with app.connection_for_write() as connection:
        for queue in list(app.amqp.queues.values()):
            bound = queue(connection.default_channel)
            bound.declare()
            bound.purge()


def taken(connection: Any, names: Iterable[str]) -> list[dict[str, Any]]:
    """Take all messages out of queues."""
    found = []
    channel = connection.channel()
    for name in names:
        queue = Queue(name)(channel)
        while (message := queue.get(no_ack=True)) is not None:
            found.append(described(name, message))
    channel.close()
    return found


def described(queue: str, message: Any) -> dict[str, Any]:
    """Return a message as JSON holds it."""
    body = message.body if isinstance(message.body, str) else bytes(message.body).decode("latin-1")
    return {
        "queue": queue,
        "body": body,
        "content_type": message.content_type,
        "headers": message.headers,
        "priority": message.properties.get("priority") or 0,
        "delivery_mode": message.properties.get("delivery_mode"),
        "at": now().timestamp(),
    }


def main(url: str, folder: str) -> None:
    """Write what each shape exports and sends."""
    for name in SHAPES:
        messages = sent(made(name, url))
        app = made(name, url)
        own = {
            task: {
                "ignore_result": bool(one.ignore_result),
                "limits": [one.time_limit, one.soft_time_limit],
            }
            for task, one in app.tasks.items()
        }
        result = {
            "exported": schedule_of(app),
            "sent": messages,
            "own": own,
            "queues": [queue.name for queue in app.amqp.queues.values()],
            "options": dict(app.conf.broker_transport_options or {}),
        }
        text = json.dumps(result, default=repr)
        Path(folder, f"{name}.json").write_text(text)


if __name__ == "__main__":
    # Under its own name, by which schedulers are found.
    import_module("beat_shapes").main(*sys.argv[1:])
