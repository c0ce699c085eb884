"""Workers of a Celery application that follow: they take, keep and end operations."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import partial
from operator import attrgetter
from threading import Lock
from typing import Any, TypeVar
from uuid import UUID, uuid4

import sqlalchemy as sa

from broker.sending import send_started
from minutebook.error_text import bounded
from minutebook.lease import CANCELLED
from models.celery_task import SETTING
from models.errors import DatabaseWentBack, LeaseLost, NotFound
from models.operation import AttemptKey
from models.store import workers
from models.store.operations import external_worker, heartbeat
from models.store.operations.external_worker import key_of, lease_of
from models.store.operations.start_checks import TAKEN, NotStarted, OperationFacts
from models.store.operations.take import Claim, ClaimRequest, recorded_of
from models.store.workers import Heartbeat
from models.trust import not_for_restricted
from models.worker_kinds import CELERY, OWN_TASKS
from runtime.database import each_committed, reading
from runtime.db_retry import Begin, start
from runtime.logs.events import EventLog
from services.followers import attempts
from services.followers.documents import (
    Beat,
    BeatAnswer,
    BeatAnswers,
    Beats,
    Discarded,
    EndReport,
    LiveWorker,
    NotReady,
    NotTaken,
    TakenOperation,
    TakeRequest,
    TimeLimits,
)
from services.installation import Installation
from services.jobs.claim import send

logger = EventLog("minutebook.followers")

T = TypeVar("T")
Take = Callable[[sa.Connection, OperationFacts, ClaimRequest], Claim | NotStarted | None]

# What is known of attempts that were taken here, by their leases, until they end: the last ones.
MOST_KNOWN = 1_000
_known: dict[str, OperationFacts] = {}
_knowing = Lock()


@dataclass(frozen=True, slots=True)
class Follower:
    """A worker's request: its installation, and the patterns of the tasks that it may follow."""

    opened: Installation
    tasks: tuple[str, ...]

    def allows(self, task: str) -> bool:
        """Return whether it may follow a task: by its token, and by the setting of the server."""
        of_server = self.opened.settings.celery.tasks or ("*",)
        both = all(any(fnmatchcase(task, one) for one in some) for some in (self.tasks, of_server))
        return both and task not in OWN_TASKS

    def why_not(self, recorded: OperationFacts) -> str | None:
        """Return why it may not act on an operation, None if it may."""
        if recorded.worker_kind is not CELERY:
            return "it is not of the step celery_task"
        if not self.allows(recorded.task):
            return f"the token or {SETTING} of the server does not allow {recorded.task!r}"
        if not recorded.trust.allows_task(recorded.task):
            why = not_for_restricted(recorded.app_name, f"--tasks {recorded.task}")
            return f"{recorded.task!r} {why}"
        return None


def take(follower: Follower, id: str, asked: TakeRequest) -> TakenOperation:
    """Take an operation for a task that is about to run; 409 if it must not run."""
    opened, wanted = follower.opened, _wanted(id, asked.attempt, asked.worker, asked.delivery)
    found = start(wanted.id, lambda: _taken(follower, wanted, asked.repeatable), TAKEN)
    if isinstance(found, NotStarted):
        logger.info(
            "operation_not_started",
            "operation {operation} attempt {attempt}: not started, {reason}",
            wanted.id,
            wanted.attempt,
            found.why,
        )
        send(opened, found.ended)
        raise (NotReady if found is attempts.EARLY else NotTaken)(found.why)
    claim, known = found
    logger.info(
        "operation_started",
        "{triggerer}: operation {operation} started (attempt {attempt})",
        claim.triggerer,
        wanted.id,
        wanted.attempt,
    )
    if claim.owed:
        opened.publish()
        send_started(opened.engine, claim.owed)
    limits = opened.settings.worker.limits(claim.plan.time_limit)
    lease = lease_of(claim.key)
    with _knowing:
        _known[lease] = claim
        if len(_known) > MOST_KNOWN:
            del _known[next(iter(_known))]
    return TakenOperation.of(
        claim,
        lease=lease,
        limits=TimeLimits.of(limits),
        operation_id=claim.id,
        run_number=known.run_number + 1,
        last_success_at=known.last_success_at,
    )


def _wanted(id: str, attempt: int, worker: str, delivery: str) -> ClaimRequest:
    try:
        return ClaimRequest(UUID(id), attempt, worker, delivery)
    except ValueError:
        raise NotFound(f"no run has the id {id!r}") from None


def _unknown(id: UUID) -> NotFound:
    """Return the error of an operation that was pruned, or belongs to another installation."""
    return NotFound(f"this server has no run {id}; check MINUTEBOOK_URL")


def _taken(
    follower: Follower, wanted: ClaimRequest, repeatable: bool
) -> tuple[Claim, heartbeat.RunHistory] | NotStarted:
    alerts = follower.opened.settings.alert
    take_free = partial(attempts.take_free, repeatable=repeatable)
    take = partial(attempts.take, repeatable=repeatable, alerts=alerts)
    found = _taken_by(follower, wanted, each_committed, take_free)
    return found or _taken_by(follower, wanted, sa.Engine.begin, take) or TAKEN


def _taken_by(
    follower: Follower, wanted: ClaimRequest, begin: Begin, take: Take
) -> tuple[Claim, heartbeat.RunHistory] | NotStarted | None:
    with begin(follower.opened.engine) as connection:
        recorded = recorded_of(connection, wanted.id, wanted.attempt)
        if recorded is None or not follower.opened.may_see(recorded.app_name):
            raise _unknown(wanted.id)
        why = follower.why_not(recorded)
        if why is not None:
            return NotStarted(why)
        found = take(connection, recorded, wanted)
        if not isinstance(found, Claim):
            return found
        # Read after the start: no other operation of the action can end any more.
        return found, heartbeat.memory(connection, found.action_uid, found.subject)


def beat(follower: Follower, id: str, said: Beat) -> BeatAnswer:
    """Renew a lease, and show progress; 409 if the lease is lost."""
    key = _key(id, said.lease)
    stop = _fenced(
        follower, key, lambda connection: external_worker.beat(connection, key, said.progress)
    )
    return BeatAnswer(stop=CANCELLED if stop else None)


def beat_many(follower: Follower, _id: str, said: Beats) -> BeatAnswers:
    """Renew several leases at once; those that are lost are named."""
    found: dict[str, BeatAnswer] = {}
    with follower.opened.engine.begin() as connection:
        # In the order of their ids, as all that lock several rows.
        for one in sorted(said.beats, key=attrgetter("lease")):
            try:
                stop = external_worker.beat(connection, key_of(one.lease), one.progress)
                found[one.lease] = BeatAnswer(stop=CANCELLED if stop else None)
            except (LeaseLost, NotFound):
                found[one.lease] = BeatAnswer(lost=True)
    return BeatAnswers(answers=tuple(found[one.lease] for one in said.beats))


def end(follower: Follower, id: str, said: EndReport) -> None:
    """Report how a task ended; the same report again changes nothing. 409 if the lease is lost."""
    opened, key = follower.opened, _key(id, said.lease)
    given = said.model_dump(exclude_defaults=True)
    report = attempts.in_lines(given, opened.settings.celery.secret)

    def act(connection: sa.Connection) -> Any:
        with _knowing:
            recorded = _known.pop(said.lease, None)
        # Other ends go by what may have changed since the take, such as a request to cancel.
        if recorded is None or said.outcome != "success":
            recorded = recorded_of(connection, key.id, key.attempt)
        if recorded is None or recorded.worker_kind is not CELERY:
            raise heartbeat.lease_lost(connection, key)
        if not opened.may_see(recorded.app_name):
            raise _unknown(key.id)
        return attempts.finish(connection, recorded, key, report, opened.settings.alert)

    try:
        ended = _fenced(follower, key, act)
    except LeaseLost:
        with reading(opened.engine) as connection:
            if external_worker.has_ended(connection, key):
                return
        raise
    logger.info(
        "attempt_ended",
        "operation {operation} attempt {attempt} ended: {state}",
        key.id,
        key.attempt,
        ended.state,
    )
    send(opened, ended)


def _key(id: str, lease: str) -> AttemptKey:
    key = key_of(lease)
    if str(key.id) != id.lower():
        raise NotFound("nothing was handed out under that lease")
    return key


def _fenced(follower: Follower, key: AttemptKey, act: Callable[[sa.Connection], T]) -> T:
    """Return the result of a write under a lease, in a transaction of its own; raises LeaseLost."""
    engine = follower.opened.engine
    try:
        with engine.begin() as connection:
            return act(connection)
    except DatabaseWentBack as error:
        with engine.begin() as connection:
            recorded = recorded_of(connection, key.id, key.attempt)
            if recorded is not None and follower.why_not(recorded) is None:
                heartbeat.note_went_back(connection, error)
        raise


def discard(follower: Follower, id: str, said: Discarded) -> None:
    """End an operation whose message Celery discarded; 409 to ask again in a moment."""
    opened, wanted = follower.opened, _wanted(id, said.attempt, said.worker, uuid4().hex)
    told: Mapping[str, str] = {"what": said.what, "reason": said.reason}
    try:
        with opened.engine.begin() as connection:
            recorded = recorded_of(connection, wanted.id, wanted.attempt)
            if recorded is None or not opened.may_see(recorded.app_name):
                raise _unknown(wanted.id)
            why = follower.why_not(recorded)
            if why is not None:
                raise NotTaken(why)
            alerts = opened.settings.alert
            ended = attempts.end_discarded(connection, recorded, wanted, told, alerts)
    except (attempts.JustBeingSent, sa.exc.IntegrityError):
        raise NotReady("its message is just being sent") from None
    if ended is not None:
        logger.info(
            "message_discarded",
            "operation {operation}: its message was discarded: {reason}",
            wanted.id,
            said.reason,
        )
    send(opened, ended)


def note_worker(follower: Follower, _id: str, said: LiveWorker) -> None:
    """Record that a worker lives or stops, and which tasks it follows."""
    with follower.opened.engine.begin() as connection:
        if said.stopping:
            workers.stopped(connection, said.name, is_follower=True)
            return
        follows = tuple(one for one in said.follows if follower.allows(one))
        seen = Heartbeat(said.name, ",".join(said.queues), said.pid, follows=follows)
        its = ((one, said.signatures.get(one)) for one in follows)
        known = bounded((one, texts) for one, texts in its if texts)
        workers.beat(connection, replace(seen, signatures=known))
