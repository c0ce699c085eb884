"""Log lines to stderr, as text or JSON. Secrets never reach a log call."""

import logging
import sys
from typing import TYPE_CHECKING

from runtime.logs.lines import JsonFormatter, LineFormatter

if TYPE_CHECKING:
    from runtime.sections.processes import LogSettings


def set_up_logs(settings: "LogSettings", name: str) -> None:
    """Send all log lines of this process to stderr; `name` identifies it among those of `up`."""
    handler = logging.StreamHandler(sys.stderr)
    if settings.format == "json":
        handler.setFormatter(JsonFormatter())
    else:
        handler.setFormatter(
            LineFormatter(f"%(asctime)s {name:<9} %(levelname)-7s %(message)s", "%H:%M:%S")
        )
    handler.setLevel(settings.level)
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(settings.level)
    for noisy in ("httpx", "httpcore", "alembic", "kombu", "celery", "amqp"):
        logging.getLogger(noisy).setLevel(max(logging.WARNING, root.level))
