"""Follow: one line in a user's worker lets Minutehand know what becomes of its tasks."""

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from celery import Celery


def follow(
    app: "Celery", *, home: str | os.PathLike[str] | None = None, wait_s: float = 30.0
) -> None:
    """Let the workers of `app` claim what Minutehand sends them, and tell how it ended.

    To be called where the application is made. Each worker then starts an agent beside it, with
    the settings SCHED_… of the worker's environment and of the home folder `home` (default:
    SCHED_HOME, else `.minutehand` where the worker stands). Tasks that anybody else sends, calls
    directly or eagerly run as they always did.

    While the database is away, the message of a task goes back on its queue, for a while that grows
    up to 30 seconds: other tasks of the worker go on. An agent that is away is waited for, for
    `wait_s` seconds; then the message goes back too.
    """
    from minutehand.celery_worker import connect

    connect(app, home, wait_s)
