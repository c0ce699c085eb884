"""Log lines to stderr: text for people, JSON for machines. Secrets never reach a log call."""

import json
import logging
import sys
from datetime import UTC, datetime

from runtime.config import LogSettings

STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


class JsonFormatter(logging.Formatter):
    """One JSON object per line: at, level, logger, message, and the keys of `extra`."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the record as one line of JSON."""
        line: dict[str, object] = {
            "at": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
        }
        line.update((key, value) for key, value in vars(record).items() if key not in STANDARD)
        if record.exc_info:
            line["error"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str)


def set_up_logs(settings: LogSettings, name: str) -> None:
    """Send all log lines of this process to stderr; `name` identifies it among those of `up`."""
    handler = logging.StreamHandler(sys.stderr)
    if settings.format == "json":
        handler.setFormatter(JsonFormatter())
    else:
        handler.setFormatter(
            logging.Formatter(f"%(asctime)s {name:<9} %(levelname)-7s %(message)s", "%H:%M:%S")
        )
    handler.setLevel(settings.level)
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(settings.level)
    for noisy in ("httpx", "httpcore", "alembic", "kombu", "celery", "amqp"):
        logging.getLogger(noisy).setLevel(max(logging.WARNING, root.level))
