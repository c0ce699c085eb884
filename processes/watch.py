"""Tell the admins what is broken, from web processes and workers: the daemon may be down.

Each watches the verdict by a thread of its own. One claims a change in the database, so that it is
told once, and delivers its notice without the broker. A process that cannot reach the database
tells that by itself, once.
"""

import json
import socket
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any
from uuid import uuid4

import sqlalchemy as sa

from models.notices import NoticeKind, quiet_until, shown_target
from models.store import key_values
from models.store.notices import Notice, Owed
from models.store.notices import installation as notices
from models.store.notices.alerting import alert_targets
from models.stored import document_in
from models.values import format_instant
from runtime.clock import monotonic, utc_now
from runtime.config import Settings
from runtime.database import DATABASE_AWAY, make_engine, reading, reason_of
from runtime.logs.events import EventLog
from tasks.notices import deliver, hand_over
from tasks.notices.undelivered import Undelivered
from views.verdict import look
from views.verdict.alarms import Alarm, Change, alarms_in, changed

logger = EventLog("minutebook.watch")

# The fact that holds what is broken, and whether it was told.
BROKEN = "broken"
LONGEST_PAUSE_S = 60.0
START_DATABASE = "check SCHED_DATABASE_URL, and whether the database runs"


def start(settings: Settings) -> None:
    """Watch in a thread of this process, if the installation has somebody to tell."""
    if alert_targets(settings.alert):
        threading.Thread(target=Watcher(settings).watch, name="watch", daemon=True).start()


@dataclass
class Watcher:
    """Looks at the verdict again and again."""

    settings: Settings
    engine: sa.Engine = field(init=False)
    # Since when the database has not answered, by the monotonic clock; whether that was told.
    _away_since: float | None = None
    _is_told_away: bool = False

    def __post_init__(self) -> None:
        self.engine = make_engine(self.settings, connections=1)

    def watch(self) -> None:
        """Look each minute, or more often if what is broken is told sooner."""
        pause = threading.Event()
        while True:
            pause.wait(min(LONGEST_PAUSE_S, self.settings.alert.broken_after_s))
            self.look()

    def look(self) -> None:
        """Look once; no error ends the watch."""
        try:
            self._look()
        except DATABASE_AWAY as error:
            self._database_away(error)
        except Exception:
            logger.exception(
                "watch_failed", "this look at the verdict failed; the next one tries again"
            )
        else:
            self._database_back()
        # No connection stays open for a look a minute.
        self.engine.dispose()

    def _look(self) -> None:
        with reading(self.engine) as connection:
            seen = look(connection, self.settings)
            text = key_values.value(connection, BROKEN)
            owed = notices.sendable(connection)
        if self._is_quiet(seen.now):
            return
        known = alarms_in(document_in(text or "") or {})
        after = timedelta(seconds=self.settings.alert.broken_after_s)
        findings = seen.verdict.findings
        change = changed(known, findings, socket.gethostname(), seen.now, after)
        if change.alarms != known:
            owed = [*owed, *self._claim(text, change, seen.now)]
        for one in owed:
            deliver(self.engine, self.settings, (one.id, one.tries + 1))

    def _is_quiet(self, now: datetime) -> bool:
        alert = self.settings.alert
        return quiet_until(now, alert.quiet, alert.timezone) is not None

    def _claim(self, seen: str | None, change: Change, now: datetime) -> Sequence[Owed]:
        """Store a change with its notices, and return these; none if another process was first."""
        stored = json.dumps({key: alarm.as_json() for key, alarm in change.alarms.items()})
        owed: list[Owed] = []
        with self.engine.begin() as connection:
            if not key_values.move_value(connection, BROKEN, seen, stored):
                return []
            for kind, alarms in _told(change):
                its = (kind, now.isoformat(), _payload(kind, alarms))
                owed += notices.enqueue(connection, *its, self.settings.alert)
        return owed

    def _database_away(self, error: Exception) -> None:
        self._away_since = self._away_since or monotonic()
        lasts_s = monotonic() - self._away_since
        if self._is_told_away or lasts_s <= self.settings.alert.broken_after_s:
            return
        text = f"{socket.gethostname()} cannot reach the database: {reason_of(error)}"
        self._is_told_away = self._tell_directly(NoticeKind.BROKEN, text)

    def _database_back(self) -> None:
        if self._is_told_away:
            text = f"{socket.gethostname()} reaches the database again"
            self._is_told_away = not self._tell_directly(NoticeKind.MENDED, text)
        self._away_since = None

    def _tell_directly(self, kind: NoticeKind, text: str) -> bool:
        """Send a notice that no database keeps; return False to try again at the next look."""
        now = utc_now()
        if self._is_quiet(now):
            return False
        payload = _payload(kind, [Alarm("database", now, text, START_DATABASE)])
        is_sent = False
        for target in alert_targets(self.settings.alert):
            notice = Notice(uuid4(), 1, kind, target, payload, now)
            try:
                hand_over(notice, self.settings)
                is_sent = True
            except Undelivered as error:
                where = f"{kind} to {shown_target(target)}"
                logger.warning(
                    "notice_put_off",
                    "notice {notice}: {target} not delivered yet: {error}",
                    notice.id,
                    where,
                    error,
                )
        return is_sent


def _told(change: Change) -> Iterator[tuple[NoticeKind, Sequence[Alarm]]]:
    if change.begun:
        yield NoticeKind.BROKEN, change.begun
    if change.over:
        yield NoticeKind.MENDED, change.over


def _payload(kind: NoticeKind, alarms: Sequence[Alarm]) -> dict[str, Any]:
    more = f" and {len(alarms) - 1:,} more" if len(alarms) > 1 else ""
    return {
        "kind": kind,
        "reason": f"{alarms[0].text}{more}",
        "findings": [
            {
                "kind": one.kind,
                "since": format_instant(one.since),
                "text": one.text,
                "remedy": one.remedy,
            }
            for one in alarms
        ],
    }
