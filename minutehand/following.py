"""Record the results of a Celery application's tasks as those of their operations."""

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from celery import Celery


def follow(
    app: "Celery", *, home: str | os.PathLike[str] | None = None, wait_s: float = 30.0
) -> None:
    """Let the workers of `app` claim the tasks that Minutehand sends, and report how they end.

    Call it where the application is made. Each worker then starts an agent process, with the
    SCHED_… settings of the worker's environment and of the home folder `home` (default: SCHED_HOME,
    else `.minutehand` in the worker's directory). Other tasks are not affected.

    While the database is unavailable, a task's message goes back to its queue with a delay that
    grows up to 30 seconds, and other tasks go on. If the agent does not answer within `wait_s`
    seconds, the message goes back too.
    """
    from minutehand.celery_worker import connect

    connect(app, home, wait_s)
