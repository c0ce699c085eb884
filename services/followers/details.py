"""What an operation keeps of a followed task's end: its traceback or return value, redacted."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from runtime.clock import utc_now
from runtime.sections.celery import HIDDEN, CelerySettings

MOST_LINES = 100
LONGEST_LINE = 1_000
_SAID = ("traceback", "returned")


@dataclass(frozen=True, slots=True)
class Details:
    """What is hidden in these."""

    hidden: re.Pattern[str] | None = None

    @classmethod
    def by(cls, settings: CelerySettings) -> "Details":
        """Return what the settings say."""
        return cls(settings.secret)

    def in_lines(self, report: Mapping[str, Any]) -> dict[str, Any]:
        """Return a report with log lines in place of what the task said of its end."""
        kept = {key: value for key, value in report.items() if key not in (*_SAID, "lines")}
        lines = [*self._lines(report)]
        return {**kept, "lines": lines} if lines else kept

    def _lines(self, report: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        at = utc_now().isoformat()
        given = report.get("traceback")
        for line in given[-MOST_LINES:] if isinstance(given, list) else ():
            yield {"at": at, "level": "ERROR", "message": self._shown(line)}
        if isinstance(report.get("returned"), str):
            text = self._shown(f"returned {report['returned']}")
            yield {"at": at, "level": "INFO", "message": text}

    def _shown(self, line: object) -> str:
        text = str(line)[:LONGEST_LINE]
        return text if self.hidden is None else self.hidden.sub(HIDDEN, text)
