"""What beat would send, compared with what Celery's own beat sends to a broker in memory."""

from collections.abc import Callable, Mapping
from typing import Any

import pytest
from celery import Celery
from celery.beat import ScheduleEntry, Scheduler
from celery.schedules import schedule
from kombu import Exchange, Queue

from minutebook.beat.messages import Unsendable, message_of_entry

MEDIA = Exchange("media", type="topic")
MAIL = Exchange("mail", type="direct")
NEWS = Exchange("news", type="fanout")
QUEUES = (
    Queue("celery"),
    Queue("video", MEDIA, routing_key="video.#"),
    Queue("audio", MEDIA, routing_key="audio.*"),
    Queue("all audio", MEDIA, routing_key="audio.#"),
    Queue("letters", MAIL, routing_key="letter"),
    Queue("readers", NEWS),
)
DECLARED = {"task_queues": QUEUES}


def by_hand(name: str, *_: object, **__: object) -> dict[str, Any] | None:
    return {"queue": "video", "priority": 4} if name == "tasks.it" else None


PRIOR = {"task_routes": {"tasks.*": {"queue": "orders", "priority": 7}}}
HD, MP3 = ({"exchange": "media", "routing_key": key} for key in ("video.hd", "audio.mp3"))
LOST = {"exchange": "mail", "routing_key": "lost"}
ROUTED_KEY = {"tasks.it": {"queue": "video", "routing_key": "audio.a.b"}}
TOPIC = {
    "task_default_exchange": "events", "task_default_exchange_type": "topic",
    "task_default_routing_key": "shop.all", "task_default_queue": "shop",
}  # fmt: skip
# The settings of an application, the options of an entry, and the options of its message.
CASES: dict[str, tuple[Any, Any, Any]] = {
    "nothing": ({}, {}, {"queue": "celery"}),
    "queue_of_an_entry": ({}, {"queue": "orders"}, {"queue": "orders"}),
    "priority_of_a_route": (PRIOR, {}, {"queue": "orders", "priority": 7}),
    "priority_of_the_entry": (PRIOR, {"priority": 2}, {"queue": "orders", "priority": 2}),
    "function": ({**DECLARED, "task_routes": by_hand}, {}, {"queue": "video", "priority": 4}),
    "exchange_that_is_not_declared": ({**DECLARED, "task_routes": {"tasks.it": HD}}, {}, HD),
    "key_of_a_route": ({**DECLARED, "task_routes": ROUTED_KEY}, {}, {"queue": "all audio"}),
    "two_queues_of_a_topic": (DECLARED, MP3, MP3),
    "object": (DECLARED, {"exchange": MAIL, "routing_key": "letter"}, {"queue": "letters"}),
    "no_queue": (DECLARED, LOST, LOST),
    "exchange": (DECLARED, {"queue": "letters", "exchange": "media"}, {"queue": "letters"}),
    "default_topic": (TOPIC, {}, {"queue": "shop"}),
    "fanout": (DECLARED, {"queue": "readers"}, {"exchange": "news", "routing_key": "celery"}),
}


@pytest.mark.parametrize(("settings", "options", "expected"), CASES.values(), ids=CASES)
def test_a_message_arrives_where_beat_sends_it(
    settings: Mapping[str, Any], options: Mapping[str, Any], expected: Mapping[str, Any]
) -> None:
    app = application(settings)
    found = message_options(app, options)
    entry, scheduler = entry_of(app, options), Scheduler(app, lazy=True)

    routed, properties = arrived(app, lambda: scheduler.apply_async(entry, advance=False))

    assert found == expected
    assert routed == ({found["queue"]} if "queue" in found else reached(app, found))
    assert not routed or properties["priority"] == found.get("priority", 0)


def application(settings: Mapping[str, Any]) -> Celery:
    app = Celery("shop", broker="memory://", set_as_current=False)
    app.conf.update(settings, broker_transport_options={"polling_interval": 0.01})
    return app


def entry_of(app: Celery, options: Mapping[str, Any], task: str = "tasks.it") -> ScheduleEntry:
    return ScheduleEntry("it", task, schedule=schedule(60), options=dict(options), app=app)


def message_options(app: Celery, options: Mapping[str, Any], task: str = "tasks.it") -> Any:
    return message_of_entry(app, entry_of(app, options, task))["options"]


def reached(app: Celery, place: Mapping[str, str]) -> set[str]:
    def send() -> None:
        with app.connection_for_write() as connection:
            producer = app.amqp.Producer(connection)
            producer.publish({}, place["routing_key"], exchange=place["exchange"])

    return arrived(app, send)[0]


def arrived(app: Celery, send: Callable[[], object]) -> tuple[set[str], Any]:
    """Return the queues that get what is sent, and the properties of the message."""
    names, properties = set[str](), None
    with app.connection_for_write() as connection:
        bound = [one(connection.default_channel) for one in app.amqp.queues.values()]
        for queue in bound:
            queue.declare()
            queue.purge()
        send()
        for queue in bound:
            if (message := queue.get(no_ack=True)) is not None:
                names.add(queue.name)
                properties = message.properties
    return names, properties


def test_rabbitmq_itself_routes_what_goes_to_an_exchange() -> None:
    app = Celery("shop", broker="amqp://", set_as_current=False)
    app.conf.update(DECLARED)
    route = {"exchange": "media", "routing_key": "video.hd"}

    assert message_options(app, route) == route


def test_what_a_registered_task_says_is_added() -> None:
    app = application({"task_default_priority": 5})

    @app.task(name="tasks.it", shared=False, expires=60, time_limit=9)
    def it() -> None: ...

    app.finalize()

    assert message_options(app, {}) == {"queue": "celery", "priority": 5, "expires": 60}
    # Celery adds the default priority to tasks that it knows.
    assert message_options(app, {}, "tasks.other") == {"queue": "celery"}


def test_a_message_without_a_routing_key_is_refused() -> None:
    app = application(DECLARED)

    with pytest.raises(Unsendable, match="the exchange 'media' has no routing key"):
        message_options(app, {"queue": "video", "exchange": "media"})


def test_the_name_that_django_celery_beat_gave_as_an_option_is_a_header() -> None:
    app = application({})

    found = message_options(app, {"periodic_task_name": "it"})

    assert found == {"queue": "celery", "headers": {"periodic_task_name": "it"}}
