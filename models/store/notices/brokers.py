"""The findings that a broker does not answer: rows that begin and end with a tick."""

from collections.abc import Mapping

import sqlalchemy as sa

from models.notices import BROKERS, FindingKind, NoticeKind, quiet_until
from models.sql import read_clock
from models.store import notices
from models.store.notices import findings
from models.store.notices.alerting import alert_targets
from models.store.notices.findings import Found
from runtime.sections import AlertSettings


def note(
    connection: sa.Connection, errors: Mapping[FindingKind, str | None], alerts: AlertSettings
) -> None:
    """Begin the findings of brokers with an error, and end those of the others.

    Web processes and workers tell the admins that one lasts; this, that it is over.
    """
    for kind, error in errors.items():
        name, remedy = BROKERS[kind]
        if error:
            its = Found(kind, "", f"{name} does not answer: {error}", remedy)
            findings.begin(connection, its)
    well = [findings.id_of(kind, "") for kind, error in errors.items() if not error]
    over = [row for row in findings.end(connection, well) if row.told_at is not None]
    until = quiet_until(read_clock(connection), alerts.quiet, alerts.timezone)
    to = alert_targets(alerts)
    owed = findings.tell_admins(connection, NoticeKind.FINDING_ENDED, over, to, until)
    notices.send_soon(connection, owed)
