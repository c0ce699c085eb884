"""Pause and resume what is sent: everything, a small app, or a queue; and list the queues."""

from collections.abc import Collection
from datetime import datetime, timedelta
from typing import Annotated

import sqlalchemy as sa
from pydantic import Field

from broker.names import OURS_BY_NAME
from models.celery_task import DEFAULT_QUEUE
from models.errors import NotFound, Refused
from models.hints import nearest
from models.sql import read_clock
from models.store import overview, pauses, workers
from models.store.pauses import Pause, PauseKind, Target
from models.tables import small_apps
from models.values import format_instant, parse_instant
from models.values.durations import parse_span
from models.worker_kinds import OURS
from runtime.database import reading
from services.installation import Installation
from services.lookup import refusing
from services.verbs import OPERATE, READ, Verb
from services.view import Instant, Listing, View

# A forgotten pause with an end is over by then.
LONGEST = timedelta(days=30)
LONGEST_REASON = 300
# Of the pauses that a list shows.
MOST = 100
# Workers seen within this span are known, and so are their queues.
KNOWN_FOR = timedelta(days=30)
OfQueue = Annotated[
    str | None,
    Field(
        description="A queue, as `GET /api/queues` names it. Without it and `everything` it is the"
        " small app of `?app=`, or of the token."
    ),
]
Everything = Annotated[bool, Field(description="Whether it is all that is sent.")]


class PauseRow(View):
    """A pause: what is due of what it covers is recorded, and sent when it ends."""

    kind: PauseKind = Field(description="`all`, `app` or `queue`.")
    name: str = Field(description="Of the app, or of the queue as in `queue list`; else empty.")
    words: str = Field(description="What is paused, in words.")
    since: Instant = Field(description="When it began.")
    until: Instant | None = Field(description="When it ends by itself; null if a person ends it.")
    by: str = Field(description="Who paused it.")
    reason: str | None = Field(description="Why, as that person wrote.")
    ended_at: Instant | None = Field(description="When it ended; null while it is in force.")
    ended_by: str | None = Field(description="Who ended it; null if its end came by itself.")


class Pauses(Listing[PauseRow]):
    """The pauses, the newest first."""


class PauseChange(View):
    """What was paused or resumed."""

    kind: PauseKind = Field(description="`all`, `app` or `queue`.")
    name: str = Field(description="Of the app, or of the queue as in `queue list`; else empty.")
    words: str = Field(description="What it is, in words.")
    is_paused: bool = Field(description="Whether it is paused now.")
    was_paused: bool = Field(description="Whether it was paused before this change.")
    until: Instant | None = Field(description="When the pause ends by itself, if it does.")
    waiting: int = Field(description="Operations of it that have not started.")


class QueueRow(View):
    """A queue that has operations or workers, or is paused."""

    name: str = Field(description="As in the broker; of jobs and of ours with a prefix.")
    waiting: int = Field(description="Operations that have not started.")
    running: int = Field(description="Operations that run.")
    oldest_at: Instant | None = Field(description="When the longest waiting one was recorded.")
    beaten_at: Instant | None = Field(description="The oldest heartbeat of a running one.")
    is_read: bool = Field(description="Whether a live worker reads it, as far as is known.")
    is_paused: bool = Field(description="Whether it is paused itself.")
    until: Instant | None = Field(description="When the pause ends by itself, if it does.")


class Queues(Listing[QueueRow]):
    """The queues, paused ones first."""


@Verb("pause", "POST /api/pauses", OPERATE, body=("queue", "everything", "until", "reason"))
def pause(
    installation: Installation,
    queue: OfQueue = None,
    everything: Everything = False,
    until: Annotated[
        str | None, Field(description="Its end: an instant, or a span such as `PT1H`.")
    ] = None,
    reason: Annotated[str | None, Field(description="Why, for those who find it paused.")] = None,
) -> PauseChange:
    """Send nothing of a queue, of the small app that the request names, or at all, until an end.

    A take of what was sent before is put back. An instant without an offset is read in the zone of
    the request's small app. Raises NotFound for an unknown queue, and Refused for an end that is
    not after now, or more than 30 days away.
    """
    if reason is not None and len(reason) > LONGEST_REASON:
        raise Refused(f"reason has {len(reason)} characters; write at most {LONGEST_REASON}")
    with installation.engine.begin() as connection:
        target = _target(connection, installation, queue, everything)
        now = read_clock(connection)
        ends_at = None if until is None else _end(until, now, installation.small_app.zone)
        was = pauses.begin(connection, target, ends_at, installation.actor, reason)
        details = {"until": None if ends_at is None else format_instant(ends_at), "reason": reason}
        _audit(connection, installation, target, "pause", details)
        return _change(connection, target, is_paused=True, was_paused=was, until=ends_at)


@Verb("resume", "POST /api/pauses:resume", OPERATE, body=("queue", "everything"))
def resume(
    installation: Installation, queue: OfQueue = None, everything: Everything = False
) -> PauseChange:
    """End a pause; the next tick sends what waited for its end."""
    with installation.engine.begin() as connection:
        target = _target(connection, installation, queue, everything)
        was = pauses.end(connection, target, installation.actor)
        if was:
            _audit(connection, installation, target, "resume", None)
        return _change(connection, target, is_paused=False, was_paused=was, until=None)


@Verb("list_pauses", "GET /api/pauses", READ)
def list_pauses(installation: Installation, ended: bool = False) -> Pauses:
    """List the pauses in force, with `ended` also the last that ended."""
    with reading(installation.engine) as connection:
        found = pauses.listed(connection, MOST) if ended else pauses.in_force(connection)
    scope = installation.scope.small_app_id
    return Pauses(tuple(_row(one) for one in found if one.concerns(scope)))


@Verb("list_queues", "GET /api/queues", READ, is_of_installation=True)
def list_queues(installation: Installation) -> Queues:
    """List the queues that are paused, and those that have runs or workers."""
    with reading(installation.engine) as connection:
        return queues_in(connection, installation.settings.worker.lease)


def queues_in(connection: sa.Connection, lease: timedelta) -> Queues:
    """Return the queues that are paused, and those that have operations or workers."""
    held, found = pauses.in_force(connection), overview.queues(connection)
    read = workers.listened_queues(connection, lease)
    ends = {one.name: one.until for one in held if one.kind is PauseKind.QUEUE}
    names = sorted({*ends, *read, *found}, key=lambda name: (name not in ends, name))
    nothing = {"waiting": 0, "running": 0, "oldest_at": None, "beaten_at": None}
    return Queues(
        tuple(
            QueueRow(
                name=name,
                **found.get(name, nothing),
                is_read=name in read,
                is_paused=name in ends,
                until=ends.get(name),
            )
            for name in names
        )
    )


def _target(
    connection: sa.Connection, installation: Installation, queue: str | None, everything: bool
) -> Target:
    """Return what a request names; a request that is bound to a small app names that one."""
    app = installation.small_app if installation.scope.small_app_id is not None else None
    if app is not None and queue is None and not everything:
        return Target(PauseKind.APP, app.name, app.id)
    if app is not None:
        raise Refused("a queue and everything are the installation's; leave out the small app")
    if (queue is None) is not everything:
        raise Refused("name a queue, a small app, or everything: one of them")
    return Target(PauseKind.ALL) if queue is None else _queue(connection, queue)


def _queue(connection: sa.Connection, name: str) -> Target:
    """Return a queue by its name in lists, or one of ours by its own; raises NotFound."""
    known = _known(connection)
    if name in known:
        return Target(PauseKind.QUEUE, name)
    listed = OURS_BY_NAME.get(name, OURS.listed(name))
    if listed in known:
        return Target(PauseKind.QUEUE, listed)
    near = nearest(name, [*known, *OURS_BY_NAME])
    hint = f"; did you mean {near!r}?" if near else ";"
    raise NotFound(f"no queue is named {name!r}{hint} `minutebook queue list` shows the queues")


def _known(connection: sa.Connection) -> Collection[str]:
    """Return the queues that workers, followers, operations, apps and open pauses name."""
    named = {*OURS_BY_NAME.values(), DEFAULT_QUEUE, *overview.queues(connection)}
    named |= workers.listened_queues(connection, KNOWN_FOR)
    for trust in connection.scalars(sa.select(small_apps.c.trust)):
        named |= {OURS.listed(queue) for queue in trust.queues}
    return named | {one.name for one in pauses.in_force(connection) if one.name}


def _end(text: str, now: datetime, zone: str) -> datetime:
    """Return the end that a user wrote, an instant or a duration; raises Refused."""
    with refusing("until", text):
        if text.startswith("P"):
            ends_at = now.replace(microsecond=0) + parse_span(text, most=LONGEST)
        else:
            ends_at = parse_instant(text, zone)
    if not now < ends_at <= now + LONGEST:
        last = format_instant(now + LONGEST)
        raise Refused(f"until {text!r} is not within the next 30 days; write one up to {last}")
    return ends_at


def _change(
    connection: sa.Connection,
    target: Target,
    *,
    is_paused: bool,
    was_paused: bool,
    until: datetime | None,
) -> PauseChange:
    return PauseChange.of(
        target,
        is_paused=is_paused,
        was_paused=was_paused,
        until=until,
        waiting=pauses.waiting(connection, [target])[0],
    )


def _audit(
    connection: sa.Connection,
    installation: Installation,
    target: Target,
    verb: str,
    details: dict[str, str | None] | None,
) -> None:
    kind = "installation" if target.kind is PauseKind.ALL else target.kind.value
    object = target.name or "sending"
    installation.audit(connection, target.small_app_id, f"{kind}.{verb}", {object: details})


def _row(one: Pause) -> PauseRow:
    return PauseRow.of(one, words=one.target.words, since=one.began_at)
