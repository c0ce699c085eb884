"""What a worker logs when it loses its connection to the broker. No operation is lost."""

import logging

from runtime.logs.events import EventLog

logger = EventLog("minutebook.worker")

UNACKNOWLEDGED = "Couldn't ack"
ADVICE = "CPendingDeprecationWarning"


def log_lost_connections_calmly() -> None:
    """Replace what Celery logs at each lost connection, in this process.

    Celery's text advises a setting that would cut off running operations. For each of them that
    ends later, Celery logs a critical error with a traceback.
    """
    logging.getLogger("py.warnings").addFilter(_is_no_advice)
    logging.getLogger("celery.worker.request").addFilter(_replace_unacknowledged)


def _is_no_advice(record: logging.LogRecord) -> bool:
    return ADVICE not in record.getMessage()


def _replace_unacknowledged(record: logging.LogRecord) -> bool:
    """Whether Celery's record is to be logged."""
    if not str(record.msg).startswith(UNACKNOWLEDGED):
        return True
    logger.info(
        "message_not_acknowledged",
        "a connection broke before its message was acknowledged: the broker repeats it",
    )
    return False
