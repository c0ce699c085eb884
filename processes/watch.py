"""Tell the admins what is broken, from web processes and workers: the daemon may be down.

Each watches the verdict by a thread of its own, and delivers without the broker what the workers do
not get. A process that cannot reach the database tells that by itself, once.
"""

import socket
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any
from uuid import uuid4

import sqlalchemy as sa

from models.notices import NoticeKind, quiet_until, shown_target
from models.store.notices import Notice, Owed, findings, sendable_anywhere
from models.store.notices.alerting import alert_targets
from models.values import format_instant
from runtime.clock import monotonic, utc_now
from runtime.config import Settings
from runtime.database import DATABASE_AWAY, make_engine, reading, reason_of
from runtime.logs.events import EventLog
from services.verdict import Snapshot, assess
from services.verdict.alarms import broken, is_due, is_over
from tasks.notices import deliver, hand_over
from tasks.outgoing.failures import Undelivered

logger = EventLog("minutebook.watch")

LONGEST_PAUSE_S = 60.0
START_DATABASE = "check SCHED_DATABASE_URL, and whether the database runs"


def start(settings: Settings) -> None:
    """Watch in a thread of this process."""
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
        owed = list(self._judge()) if alert_targets(self.settings.alert) else []
        with reading(self.engine) as connection:
            owed += sendable_anywhere(connection)
        for one in owed:
            deliver(self.engine, self.settings, (one.id, one.tries + 1))

    def _is_quiet(self, now: datetime) -> bool:
        alert = self.settings.alert
        return quiet_until(now, alert.quiet, alert.timezone) is not None

    def _judge(self) -> Iterator[Owed]:
        """Begin and end the findings about the installation; yield notices of those that last."""
        with reading(self.engine) as connection:
            # Before the look: what begins meanwhile is not over.
            known = findings.of_installation(connection)
            seen = assess(connection, self.settings)
        if not self._is_quiet(seen.now):
            with self.engine.begin() as connection:
                yield from self._change(connection, known, seen)

    def _change(
        self, connection: sa.Connection, known: Sequence[Any], seen: Snapshot
    ) -> Iterator[Owed]:
        """Change the rows; of several processes, the one that changes a row tells of it."""
        machine, now, alert = socket.gethostname(), seen.now, self.settings.alert
        found, causes = (broken(its, machine) for its in (seen.findings, seen.verdict.findings))
        rows = {row.id: row for row in known}
        for id in sorted(found.keys() - rows.keys()):
            one, since = found[id]
            for row in findings.begin(connection, one, min(since or now, now)):
                rows[id] = row
        after = timedelta(seconds=alert.broken_after_s)
        due = [id for id, row in rows.items() if is_due(row, causes, now, after)]
        over = [id for id, row in rows.items() if is_over(row, found, machine)]
        told = [row for row in findings.end(connection, over) if row.told_at is not None]
        changes = {
            NoticeKind.FINDING_BEGAN: findings.mark_told(connection, due),
            NoticeKind.FINDING_ENDED: told,
        }
        for kind, its in changes.items():
            yield from findings.tell_admins(connection, kind, its, alert_targets(alert))

    def _database_away(self, error: Exception) -> None:
        self._away_since = self._away_since or monotonic()
        lasts_s = monotonic() - self._away_since
        if self._is_told_away or lasts_s <= self.settings.alert.broken_after_s:
            return
        text = f"{socket.gethostname()} cannot reach the database: {reason_of(error)}"
        self._is_told_away = self._tell_directly(NoticeKind.FINDING_BEGAN, text)

    def _database_back(self) -> None:
        if self._is_told_away:
            text = f"{socket.gethostname()} reaches the database again"
            self._is_told_away = not self._tell_directly(NoticeKind.FINDING_ENDED, text)
        self._away_since = None

    def _tell_directly(self, kind: NoticeKind, text: str) -> bool:
        """Send a notice that no database keeps; return False to try again at the next look."""
        now = utc_now()
        if self._is_quiet(now):
            return False
        shown = {"kind": "database", "text": text, "remedy": START_DATABASE}
        payload = {"kind": kind, "findings": [{**shown, "since": format_instant(now)}]}
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
