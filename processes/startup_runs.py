"""Run every active action once when a process starts: `--run-now`."""

import sqlalchemy as sa

from models.errors import SchedulerError
from runtime.logs.events import EventLog
from scheduler.on_demand import manual

logger = EventLog("minutebook.start")


def run_all(engine: sa.Engine, actor: str) -> None:
    """Run every active action of all small apps once; only log an error."""
    try:
        asked, _ = manual.run_all(engine, actor)
    except (SchedulerError, sa.exc.SQLAlchemyError) as error:
        logger.error(
            "startup_runs_failed", "not all actions could be run at the start: {error}", error
        )
        return
    for one in asked:
        if one.operation_id is None:
            logger.warning("startup_run_refused", "not run at the start: {reason}", one.refused)
    logger.info(
        "startup_runs",
        "{actions} actions run now",
        sum(one.operation_id is not None for one in asked),
    )
