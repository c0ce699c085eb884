"""Record the results of a Celery application's tasks as those of their operations."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from celery import Celery


def follow(
    app: Celery,
    *,
    url: str | None = None,
    token: str | None = None,
    home: str | os.PathLike[str] | None = None,
) -> None:
    """Let the workers of `app` take the operations of tasks that Minutebook sends, and report them.

    Call it where the application is made. A worker asks the server at `url` (default:
    MINUTEBOOK_URL) with `token` (default: MINUTEBOOK_TOKEN, of `minutebook token create --role
    worker --tasks PATTERN`). Without a URL, it asks the server of the same account on this machine,
    by `web.sock` in the home folder `home` (default: SCHED_HOME, else `.minutebook` in the worker's
    directory). Other tasks are not affected.

    While the server is away, a task's message goes back to its queue with a delay that grows up to
    30 seconds, and other tasks go on; an end is repeated for ten minutes.
    """
    from minutebook.celery_worker import connect

    connect(app, url, token, home)
