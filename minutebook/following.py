"""Record the results of a Celery application's tasks as those of their operations."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from celery import Celery


def follow(
    app: Celery,
    *,
    agent: str | os.PathLike[str] | None = None,
    home: str | os.PathLike[str] | None = None,
    wait_s: float = 30.0,
) -> None:
    """Let the workers of `app` claim the tasks that Minutebook sends, and report how they end.

    Call it where the application is made. The first worker then starts an agent process, with the
    SCHED_… settings of the worker's environment and of the home folder `home` (default: SCHED_HOME,
    else `.minutebook` in the worker's directory). All workers of this account with the same
    settings share it. Other tasks are not affected.

    `agent` (default: SCHED_AGENT) is the server's command in another environment, such as
    `/opt/minutebook/bin/minutebook`, or the socket of an agent that runs already, such as
    `unix:/run/minutebook/agent.sock`; that one has settings of its own. Without it, the server in
    this environment or on PATH is used. `own`, or `own:` and a command, starts an agent that no
    other worker shares.

    While the database is unavailable, a task's message goes back to its queue with a delay that
    grows up to 30 seconds, and other tasks go on; an end is kept until the database is back. If the
    agent does not answer within `wait_s` seconds, the message goes back too.
    """
    from minutebook.celery_worker import connect

    connect(app, agent, home, wait_s)
