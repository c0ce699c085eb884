"""Findings as rows: what is wrong, since when and until when; and the notices of both."""

from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any
from uuid import NAMESPACE_OID, UUID, uuid5

import sqlalchemy as sa

from models.notices import FindingKind, NoticeKind, Target, quiet_until
from models.sql import database_now, insert_ignoring, insert_into
from models.store import notices
from models.store.notices import Origin, Owed
from models.tables import findings
from models.values import format_instant
from runtime.sections import AlertSettings

IS_OPEN = findings.c.ended_at.is_(None)


def open_of(uid: sa.ColumnElement[Any]) -> sa.Label[str | None]:
    """Return the kinds of the open findings about an action, as one text `open_findings`."""
    kinds = sa.select(sa.func.aggregate_strings(findings.c.kind, " "))
    its = kinds.where(findings.c.action_uid == uid, IS_OPEN)
    return its.correlate_except(findings).scalar_subquery().label("open_findings")


@dataclass(frozen=True, slots=True)
class Found:
    """Something that is wrong; its kind and `about` tell it from others."""

    kind: str
    about: str
    text: str
    remedy: str
    action_uid: UUID | None = None

    @property
    def id(self) -> UUID:
        """The id of its row."""
        return id_of(self.kind, self.about)


def id_of(kind: str, about: object) -> UUID:
    """Return the id of the finding of that kind about something."""
    return uuid5(NAMESPACE_OID, f"{kind} | {about}")


def note(connection: sa.Connection, found: Sequence[Found]) -> None:
    """Begin findings that never began before, to be told once."""
    if found:
        first = insert_ignoring(connection, findings).values(began_at=database_now())
        connection.execute(first, [{**asdict(one), "id": one.id} for one in found])


def begin(
    connection: sa.Connection, one: Found, since: object = None, *, or_ahead: bool = False
) -> Sequence[sa.Row[Any]]:
    """Begin a finding, by default now; return its row, none if it has begun before.

    With `or_ahead`, one that began ahead of the clock begins again.
    """
    since = database_now() if since is None else since
    values = {**asdict(one), "began_at": since, "ended_at": None, "told_at": None}
    new = insert_into(connection.dialect.name, findings).values(id=one.id, **values)
    is_ahead = findings.c.began_at > database_now() if or_ahead else sa.false()
    is_over = findings.c.ended_at.is_not(None) | is_ahead
    begun = new.on_conflict_do_update(index_elements=["id"], set_=values, where=is_over)
    found: Sequence[sa.Row[Any]] = connection.execute(begun.returning(findings)).all()
    return found


def end(connection: sa.Connection, ids: Collection[UUID]) -> Sequence[sa.Row[Any]]:
    """End findings; return the rows of those that another process has not ended before."""
    ended = sa.update(findings).where(findings.c.id.in_(ids), IS_OPEN)
    return connection.execute(ended.values(ended_at=database_now()).returning(findings)).all()


def of_installation(connection: sa.Connection) -> Sequence[sa.Row[Any]]:
    """Return the open findings about the installation itself."""
    its = (IS_OPEN, findings.c.action_uid.is_(None), findings.c.kind != FindingKind.MISSED)
    return connection.execute(sa.select(findings).where(*its)).all()


def mark_told(connection: sa.Connection, ids: Collection[UUID]) -> Sequence[sa.Row[Any]]:
    """Note that open findings are told; return the rows that no other process tells."""
    its = (findings.c.id.in_(ids), findings.c.told_at.is_(None), IS_OPEN)
    told = sa.update(findings).where(*its).values(told_at=database_now())
    return connection.execute(told.returning(findings)).all()


def tell(
    connection: sa.Connection,
    row: sa.Row[Any],
    targets: Sequence[Target],
    told: dict[str, Any],
    alerts: AlertSettings,
) -> list[Owed]:
    """Enqueue the notices that a finding about an action began or ended, with what is `told` of it.

    An alert waits for the end of the quiet hours. What is not delivered of the opposite is
    withdrawn; whoever has not heard of that hears nothing.
    """
    kind = NoticeKind.FINDING_BEGAN if row.ended_at is None else NoticeKind.FINDING_ENDED
    # Of single failures, each is told at once.
    hours = None if row.kind == FindingKind.FAILING else alerts.quiet
    until = quiet_until(row.ended_at or row.began_at, hours, alerts.timezone)
    held = notices.withdraw(connection, row.id, kind.opposite, is_quiet=until is not None)
    operation_id = told.get("operation_id")
    origin = Origin(
        told["small_app_id"], row.action_uid, operation_id and UUID(operation_id), row.id, until
    )
    payload = {**payload_of(kind, [row]), **told}
    to = [one for one in targets if one not in held]
    return notices.enqueue(connection, origin, row.began_at, to, payload)


def payload_of(kind: NoticeKind, rows: Sequence[Any], text: str = "") -> dict[str, Any]:
    """Return what a notice says of findings; `text` in place of that of the row."""
    shown = [
        {
            "kind": one.kind,
            "since": format_instant(one.began_at),
            "text": text or one.text,
            "remedy": one.remedy,
        }
        for one in rows
    ]
    return {"kind": kind, "findings": shown}


def tell_admins(
    connection: sa.Connection,
    kind: NoticeKind,
    rows: Sequence[sa.Row[Any]],
    targets: Sequence[Target],
    not_before: datetime | None = None,
) -> list[Owed]:
    """Enqueue one notice of findings about the installation that began or ended."""
    if not rows:
        return []
    origin, payload = Origin(None, None, None, rows[0].id, not_before), payload_of(kind, rows)
    return notices.enqueue(connection, origin, rows[0].began_at, targets, payload)
