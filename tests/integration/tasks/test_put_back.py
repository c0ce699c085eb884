"""A message of the user's own task that goes back to its queue, whatever the task's class does."""

from typing import Any

import pytest
from celery import Celery, Task
from celery.exceptions import Ignore

from minutebook.celery_worker import Follower, _put_back
from minutebook.followed import HEADER
from minutebook.reporter import Reporter
from minutebook.server import Server

ID = "1dd03b83-7b34-516e-8a7c-7ff8626a8a85"


class Refusing(Task):  # type: ignore[type-arg]
    """A class as celery-once's and celery-singleton's: it sends each task once at most."""

    def apply_async(self, *_args: Any, **_options: Any) -> Any:
        raise RuntimeError("the task is queued already")


@pytest.mark.parametrize("base", [Task, Refusing], ids=["plain", "with_a_lock"])
def test_a_message_goes_back_under_its_id_with_a_delay(base: type[Any]) -> None:
    app = Celery("shop", broker="memory://put-back", set_as_current=False)

    @app.task(base=base, shared=False, name="shop.close")
    def close(*_args: Any, **_kwargs: Any) -> None: ...

    reporter = Reporter(Server("/nowhere/web.sock"), {})
    follower = Follower(reporter, None)
    message = {"operation": ID, "attempt": 1}
    close.push_request(
        id=ID, args=["Paris"], kwargs={"till": 3}, retries=0, called_directly=False,
        delivery_info={"exchange": "", "routing_key": "tills"}, headers={HEADER: message},
    )  # fmt: skip
    try:
        with pytest.raises(Ignore, match="cannot be taken now: the server is away"):
            _put_back(close, message, follower, "the server is away")
    finally:
        close.pop_request()
        reporter.close()

    with app.connection() as connection, connection.SimpleQueue("tills") as queue:
        sent = queue.get(timeout=5)
        args, kwargs, _ = sent.payload
        assert (sent.headers["id"], args, kwargs) == (ID, ["Paris"], {"till": 3})
        headers: Any = sent.headers
        assert headers[HEADER]["put_back"] == 1
        assert sent.headers["eta"] is not None
        sent.ack()
    app.close()
