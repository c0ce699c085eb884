"""A finding: something about an installation, an app or an action that somebody should know."""

from datetime import datetime
from enum import StrEnum
from uuid import UUID

from pydantic import Field

from services.view import Instant, View


class Severity(StrEnum):
    """How bad a finding is."""

    # The installation, or a part of it, does not do its work.
    BROKEN = "broken"
    ATTENTION = "attention"
    # Worth knowing; all is well beside it.
    NOTE = "note"


class Kind(StrEnum):
    """What a finding is about."""

    NO_DAEMON = "no_daemon"
    OLDER_RELEASE = "older_release"
    BROKER_DOWN = "broker_down"
    APPLICATION_BROKER_DOWN = "application_broker_down"
    NO_WORKER = "no_worker"
    WORKERS_LOST = "workers_lost"
    QUEUE_BEHIND = "queue_behind"
    QUEUE_UNREAD = "queue_unread"
    CLOCK = "clock"
    DATABASE_WENT_BACK = "database_went_back"
    DISK = "disk"
    READ_ONLY = "database_read_only"
    LOCKED = "locked"
    PAUSED = "paused"
    RUN_SLOW = "run_slow"
    NOTICE_REFUSED = "notice_refused"
    STEP_FAILED = "step_failed"
    MAIL_UNSET = "mail_unset"
    QUARANTINED = "quarantined"
    ACTION_FAILED = "action_failed"
    ACTION_MISSED = "action_missed"
    ACTION_OVERDUE = "action_overdue"
    NEVER_RAN = "never_ran"


# Those of single actions, by their kind.
OF_ACTIONS = frozenset(
    {Kind.QUARANTINED, Kind.ACTION_FAILED, Kind.ACTION_MISSED, Kind.ACTION_OVERDUE, Kind.NEVER_RAN}
)


class Consequence(View):
    """What follows from a finding: it is over once that is mended."""

    kind: Kind = Field(description="What it is about.")
    severity: Severity = Field(description="As if it stood alone.")
    count: int = Field(description="How many findings it stands for.")
    text: str = Field(description="One clause.")


class Finding(View):
    """What was found, and what to do about it."""

    kind: Kind = Field(description="What is wrong: `broker_down`, `action_failed` and so on.")
    severity: Severity = Field(description="`broken`, `attention` or `note`.")
    since: Instant | None = Field(None, description="Since when, if that is known.")
    text: str = Field(description="What is wrong, and what waits for it, in a clause.")
    remedy: str = Field(description="What to do.")
    consequences: tuple[Consequence, ...] = Field((), description="What follows from it.")
    queue: str | None = Field(None, description="The queue, if it is about one.")
    app: str | None = Field(None, description="The small app that it is about, if it is about one.")
    action: str | None = Field(None, description="The action that it is about, if about one.")
    uid: UUID | None = Field(None, description="The uid of that action.")
    operation: UUID | None = Field(
        None, description="The action's last operation, if it did not go well."
    )
    reason: str | None = Field(None, description="Why that operation did not go well.")


def found(
    kind: Kind,
    severity: Severity,
    text: str,
    remedy: str,
    since: datetime | None = None,
    **covers: str,
) -> Finding:
    """Return a finding; `covers` are the queue or the app that it is about."""
    return Finding(kind=kind, severity=severity, text=text, remedy=remedy, since=since, **covers)
