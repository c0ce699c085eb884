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

    A task that cannot be claimed, for the agent or the database is away, waits for `wait_s`
    seconds; then its message goes back on its queue.
    """
    from minutehand.celery_worker import connect

    connect(app, home, wait_s)
