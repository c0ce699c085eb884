"""Pause and resume what is sent to a queue, to a Celery application, or of a small app."""

from dataclasses import replace

import sqlalchemy as sa
from pydantic import Field

from broker.names import DEFAULT, HEAVY, QUICK
from models.carriers import AT_APPLICATION, OURS, carrier_of
from models.errors import Refused
from models.sql import dicts, read_clock
from models.store import holds, presence
from models.store.conditions import IS_UNSTARTED
from models.store.holds import WITHOUT_END, Hold, HoldKind
from models.tables import operations
from models.values import format_instant
from runtime.database import reading
from views.finding import find_app
from views.installation import Installation
from views.status.quiet import end_of
from views.verbs import OPERATE, READ, Verb
from views.view import Instant, Listing, View

LONGEST_NAME = 300


class Pause(View):
    """What is paused, or was until now."""

    kind: HoldKind = Field(description="`queue`, `application` or `small app`.")
    name: str = Field(description="Its name; a queue's is as in `queue list`.")
    until: Instant | None = Field(
        description="When the pause ends by itself; null if somebody must end it, or it has ended."
    )
    is_paused: bool = Field(description="Whether it is paused now.")
    was_paused: bool = Field(description="Whether it was paused before this change.")
    waiting: int = Field(description="Operations that waited for the end until this change.")


class QueueRow(View):
    """A queue, an application or a small app that is paused, or a queue that is in use."""

    name: str = Field(description="Its name; `@crm` stands for all queues of application crm.")
    kind: HoldKind = Field(description="`queue`, `application` or `small app`.")
    waiting: int | None = Field(description="Operations of a queue that have not started.")
    is_read: bool | None = Field(description="Whether a live worker of ours reads the queue.")
    is_paused: bool = Field(description="Whether it is paused.")
    until: Instant | None = Field(description="When the pause ends by itself, if it does.")
    since: Instant | None = Field(description="Since when it is paused.")
    by: str | None = Field(description="Who paused it.")


class Queues(Listing[QueueRow]):
    """What is paused, then the other queues in use, by name."""


class Pauses(View):
    """The quiet period, and what else is paused."""

    quiet_until: Instant | None = Field(None, description="The end of the quiet period, if one is.")
    held: tuple[QueueRow, ...] = Field((), description="What is paused.")


@Verb("pause_queue", "POST /api/queues:pause", OPERATE, is_of_installation=True)
def pause(installation: Installation, name: str, until: str | None = None) -> Pause:
    """Send nothing to a queue, or to the queues of an application (`@crm`), until an end.

    Raises Refused for an end that is not after now, or more than 30 days away.
    """
    return _pause(installation, *_named(name), until)


@Verb("resume_queue", "POST /api/queues:resume", OPERATE, is_of_installation=True)
def resume(installation: Installation, name: str) -> Pause:
    """Send to a queue, or to the queues of an application, again, with what waited."""
    return _resume(installation, *_named(name))


@Verb("list_queues", "GET /api/queues", READ, is_of_installation=True)
def list_queues(installation: Installation) -> Queues:
    """List what is paused, and the queues that have operations or workers."""
    with reading(installation.engine) as connection:
        _, held = holds.in_force(connection)
        read = presence.listened_queues(connection, installation.settings.worker.lease)
        waiting = _waiting(connection)
    paused = {one.name: one for one in held if one.kind is HoldKind.QUEUE}
    rows = [_row(one) for one in held if one.kind is not HoldKind.QUEUE]
    for name in sorted({*paused, *read, *waiting}, key=lambda name: (name not in paused, name)):
        row = _row(paused[name]) if name in paused else _unpaused(name)
        rows.append(
            row.model_copy(update={"waiting": waiting.get(name, 0), "is_read": name in read})
        )
    return Queues(tuple(rows))


@Verb("pause_app", "POST /api/apps/{app=name}:pause", OPERATE)
def pause_app(installation: Installation, name: str, until: str | None = None) -> Pause:
    """Send nothing of a small app until an end or a resume; its actions stay as they are.

    Raises NotFound and Refused.
    """
    return _pause(installation, HoldKind.SMALL_APP, name, until)


@Verb("resume_app", "POST /api/apps/{app=name}:resume", OPERATE)
def resume_app(installation: Installation, name: str) -> Pause:
    """Send what is due of a small app again; the next tick sends what waited.

    Raises NotFound.
    """
    return _resume(installation, HoldKind.SMALL_APP, name)


def pauses_of(installation: Installation) -> Pauses:
    """Return what the request may know of what is paused; a small app knows its own alone."""
    with reading(installation.engine) as connection:
        until, held = holds.in_force(connection)
    scope = installation.scope.small_app_id
    seen = [one for one in held if scope in {None, one.small_app_id}]
    return Pauses(quiet_until=until, held=tuple(map(_row, seen)))


def _named(name: str) -> tuple[HoldKind, str]:
    """Return what a name of a queue stands for; ours may be named without their prefix."""
    if not name.strip() or len(name) > LONGEST_NAME:
        raise Refused(f"queue {name!r} is no name; write one as `minutebook queue list` shows")
    if name.startswith(AT_APPLICATION):
        return HoldKind.APPLICATION, name.removeprefix(AT_APPLICATION)
    if name in {QUICK, HEAVY, DEFAULT}:
        return HoldKind.QUEUE, OURS.listed(name)
    return HoldKind.QUEUE, name


def _pause(installation: Installation, kind: HoldKind, name: str, until: str | None) -> Pause:
    with installation.engine.begin() as connection:
        hold = _hold(connection, installation, kind, name)
        if until is not None:
            end_at = end_of(until, hold.since, installation.small_app.zone)
            hold = replace(hold, until=end_at)
        before = holds.begin(connection, hold)
        end = None if hold.ends_at is None else format_instant(hold.ends_at)
        _audit(connection, installation, hold, "pause", {"until": end})
        waiting = holds.waiting(connection, hold)
    return Pause(
        kind=kind,
        name=hold.named,
        until=hold.ends_at,
        is_paused=True,
        was_paused=before is not None,
        waiting=waiting,
    )


def _resume(installation: Installation, kind: HoldKind, name: str) -> Pause:
    with installation.engine.begin() as connection:
        hold = _hold(connection, installation, kind, name)
        lasting = next((one for one in holds.in_force(connection)[1] if one.key == hold.key), None)
        waiting = 0 if lasting is None else holds.waiting(connection, lasting)
        was_paused = holds.end(connection, hold) is not None
        if was_paused:
            _audit(connection, installation, hold, "resume", None)
    return Pause(
        kind=kind,
        name=hold.named,
        until=None,
        is_paused=False,
        was_paused=was_paused,
        waiting=waiting,
    )


def _hold(connection: sa.Connection, installation: Installation, kind: HoldKind, name: str) -> Hold:
    app = find_app(connection, installation, name).id if kind is HoldKind.SMALL_APP else None
    now = read_clock(connection).replace(microsecond=0)
    return Hold(kind, name, now, WITHOUT_END, installation.actor, app)


def _audit(
    connection: sa.Connection,
    installation: Installation,
    hold: Hold,
    verb: str,
    details: dict[str, str | None] | None,
) -> None:
    of = "app" if hold.kind is HoldKind.SMALL_APP else "queue"
    installation.audit(connection, hold.small_app_id, f"{of}.{verb}", {hold.named: details})


def _waiting(connection: sa.Connection) -> dict[str, int]:
    """Return how many operations of each queue have not started, by its name in lists."""
    its = (operations.c.queue, operations.c.task)
    query = sa.select(*its, sa.func.count().label("count")).where(IS_UNSTARTED).group_by(*its)
    found: dict[str, int] = {}
    for row in dicts(connection, query):
        name = carrier_of(row["task"]).listed(row["queue"])
        found[name] = found.get(name, 0) + row["count"]
    return found


def _row(hold: Hold) -> QueueRow:
    return QueueRow(
        name=hold.named,
        kind=hold.kind,
        waiting=None,
        is_read=None,
        is_paused=True,
        until=hold.ends_at,
        since=hold.since,
        by=hold.by,
    )


def _unpaused(name: str) -> QueueRow:
    return QueueRow(
        name=name,
        kind=HoldKind.QUEUE,
        waiting=None,
        is_read=None,
        is_paused=False,
        until=None,
        since=None,
        by=None,
    )
