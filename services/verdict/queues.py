"""Findings about queues: what waits in them, and the workers that should read them. Pure."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import timedelta
from shlex import quote

from models.hints import listed
from models.store.installation_facts import Waiting
from models.store.pauses import PauseKind
from models.store.workers import Readers
from models.values import counted
from models.values.durations import lasting
from models.worker_kinds import HTTP, OURS
from services.verdict.facts import Facts
from services.verdict.finding import Finding, Kind, Severity, found
from services.words import instant

_BROKEN, _ATTENTION = Severity.BROKEN, Severity.ATTENTION


def findings_of_queues(facts: Facts, late: timedelta) -> Iterator[Finding]:
    """Yield the findings about queues that wait for a worker, or for the end of a pause."""
    yield from _workers(facts)
    yield from _behind(facts, late)
    yield from _paused(facts)


def findings_of_followers(facts: Facts, late: timedelta) -> Iterator[Finding]:
    """Yield the findings about the workers and queues of the Celery application."""
    yield from _lost(facts.readers)
    yield from _unread(facts, late)


def runs_wait(waiting: Iterable[Waiting]) -> str:
    """Return the clause about runs that wait meanwhile."""
    return _wait(sum(one.count for one in waiting))


def _wait(count: int) -> str:
    return f"; {counted(count, 'run')} {'waits' if count == 1 else 'wait'}" if count else ""


def _workers(facts: Facts) -> Iterator[Finding]:
    """Yield a finding for each queue with operations that no live worker reads.

    One that waits is soon overtaken, and the newer one has not waited for long.
    """
    for queue, waiting in _by_queue([*facts.waiting, *facts.overtaken]):
        if queue in facts.readers.queues or not all(one.is_known for one in waiting):
            continue
        text = f"no live worker reads queue {shown_queue(queue)}{runs_wait(waiting)}"
        first = min(one.since for one in waiting)
        since = min(first, facts.readers.left_at(queue) or first)
        yield found(Kind.NO_WORKER, _BROKEN, text, how_to_read(queue), since, queue=queue)


def shown_queue(queue: str) -> str:
    """Return a queue of the broker as people name it: ours without its prefix."""
    return queue.removeprefix(OURS.prefix)


def how_to_read(queue: str) -> str:
    """Return how to start a reader of a queue: of ours, of jobs, or of an application."""
    name = shown_queue(queue)
    if queue.startswith(HTTP.prefix):
        return "start a worker that asks for jobs over HTTP"
    if name == queue:
        return f"start a worker of your application for queue {queue}"
    return f"start `minutebook worker --queues {name}`"


def _by_queue(waiting: Sequence[Waiting]) -> Iterator[tuple[str, list[Waiting]]]:
    for queue in sorted({one.queue for one in waiting}):
        yield queue, [one for one in waiting if one.queue == queue]


def _lost(readers: Readers) -> Iterator[Finding]:
    lost = readers.lost
    if lost:
        text = f"no live worker follows {listed(sorted(lost))} any more"
        remedy = "start the workers of that application; their runs end as handed_over meanwhile"
        yield found(Kind.WORKERS_LOST, _ATTENTION, text, remedy, max(lost.values()))


def _unread(facts: Facts, late: timedelta) -> Iterator[Finding]:
    """Yield a finding for each queue of the application that grows and that nothing reads.

    A broker that counts no readers only shows that a queue has grown, for so long, and never
    shrank.
    """
    if facts.daemon is None or not facts.daemon.is_ticking:
        return
    known = facts.readers.queues | {one.queue for one in facts.waiting if one.is_known}
    for queue, its in sorted(facts.known.celery_queues.items()):
        since, is_counted = its.grows_since, its.readers is not None
        if since is None or queue in known or not (is_counted or facts.known.now - since > late):
            continue
        wait = "1 task waits" if its.length == 1 else f"{its.length:,} tasks wait"
        who = "no worker reads" if is_counted else "no worker seems to read"
        text = f"{who} queue {queue} of your application; {wait}"
        severity = _BROKEN if is_counted else _ATTENTION
        remedy = how_to_read(queue)
        yield found(Kind.QUEUE_UNREAD, severity, text, remedy, since, queue=queue)


def _behind(facts: Facts, late: timedelta) -> Iterator[Finding]:
    """Yield a finding for each queue whose readers are slower than what comes."""
    for queue, waiting in _by_queue(facts.waiting):
        since = min(one.since for one in waiting)
        if queue in facts.readers.queues and facts.known.now - since > late:
            count = counted(sum(one.count for one in waiting), "run")
            text = (
                f"queue {shown_queue(queue)} is behind: {count} to start, "
                f"the first for over {lasting(late)}"
            )
            remedy = "start more workers, or find what holds them: `minutebook run list`"
            yield found(Kind.QUEUE_BEHIND, _ATTENTION, text, remedy, since, queue=queue)


def _paused(facts: Facts) -> Iterator[Finding]:
    for one, waiting in facts.paused:
        end = "" if one.until is None else f" until {instant(one.until)}"
        text = f"{one.target.words} is paused{end}{_wait(waiting)}"
        option = "--all" if one.kind is PauseKind.ALL else f"--{one.kind} {quote(one.name)}"
        remedy = f"`minutebook resume {option}` ends it now"
        covers = {} if one.kind is PauseKind.ALL else {str(one.kind): one.name}
        yield found(Kind.PAUSED, _ATTENTION, text, remedy, one.began_at, **covers)
