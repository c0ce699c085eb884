"""The form of a log line: text for people, JSON for machines."""

import json
import logging
from datetime import UTC, datetime

from runtime.logs.events import STEP_LINE, STEP_LOGGER, Line
from runtime.visible import visible, visible_line

STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


class LineFormatter(logging.Formatter):
    """A line for people: what a message holds can neither begin a new line nor hide a part."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the record as one line, with a traceback below it."""
        record.message = visible_line(record.getMessage())
        if self.usesTime():
            record.asctime = self.formatTime(record, self.datefmt)
        line = self.formatMessage(record)
        below = [self.formatException(record.exc_info)] if record.exc_info else []
        return "\n".join([line, *map(visible, below)])


class JsonFormatter(logging.Formatter):
    """One JSON object per line: at, level, logger, message, event, its fields, those of `extra`."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the record as one line of JSON."""
        line: dict[str, object] = {
            "at": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
            **_described(record),
        }
        line.update((key, value) for key, value in vars(record).items() if key not in STANDARD)
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str)


def _described(record: logging.LogRecord) -> dict[str, object]:
    """Return the event and its values by name; nothing for a line of another library."""
    if record.name == STEP_LOGGER:
        return {"event": STEP_LINE}
    line: object = record.msg
    return {"event": line.event, **line.values} if isinstance(line, Line) else {}
