"""Findings about the installation: its daemon, broker, workers, clocks and disk. Pure."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from models.notices import BROKERS
from models.problems import listed
from models.store.installation_facts import DAY, Known, Waiting
from models.store.pauses import Pause, PauseKind
from models.store.ticks import CLOCK_WAS_WRONG
from models.store.workers import Readers
from models.values import counted
from models.values.durations import lasting
from models.worker_kinds import HTTP, OURS
from runtime.config import Settings
from runtime.skew import MAX_SKEW_S
from services.daemon import Daemon
from services.doctor.disk import MAKE_ROOM, NO_SPACE, Disk, nearly_full
from services.verdict.finding import Finding, Kind, Severity
from services.words import instant

# Of actions that are due while no daemon ticks, so many are counted.
MOST_DUE = 1_000
# Why a database takes no changes, and what to do.
READ_ONLY: Mapping[str, tuple[str, str]] = {
    "standby": ("it is a standby", "name its primary in SCHED_DATABASE_URL, or promote it"),
    "setting": (
        "default_transaction_read_only is on",
        "reset it for the database (`ALTER DATABASE … RESET`) and our role (`ALTER ROLE … RESET`)",
    ),
    "file": ("we may only read its file", "let this account write to the file and its folder"),
}
# What the report of a tick calls the error of a broker.
REPORTED: Mapping[Kind, str] = {
    Kind.BROKER_DOWN: "broker_error",
    Kind.APPLICATION_BROKER_DOWN: "application_broker_error",
}
# What a small app hears of a broker: not its address.
UNNAMED: Mapping[Kind, str] = {
    Kind.BROKER_DOWN: "the broker does not work",
    Kind.APPLICATION_BROKER_DOWN: "the broker of the Celery application does not work",
}
START_DAEMON = "start `minutebook up`, or `minutebook daemon`"
_BROKEN, _ATTENTION, _NOTE = Severity.BROKEN, Severity.ATTENTION, Severity.NOTE


@dataclass(frozen=True)
class Facts:
    """What the database knows of an installation."""

    known: Known
    daemon: Daemon | None
    # The reports of the last ticks with their instants, in order.
    ticks: Sequence[Mapping[str, Any]]
    readers: Readers
    waiting: Sequence[Waiting]
    # Actions that are due while no daemon ticks, at most MOST_DUE.
    due: int = 0
    # The pauses in force, and how many runs wait for the end of each.
    paused: Sequence[tuple[Pause, int]] = ()


def findings_of(facts: Facts, settings: Settings, disk: Disk | None) -> Iterator[Finding]:
    """Yield the findings about an installation, the worst kinds first.

    Without a disk, what only the whole installation may know is left out.
    """
    yield from _read_only(facts)
    yield from _daemon(facts)
    yield from _older_release(facts)
    for kind in UNNAMED:
        yield from _unreachable(facts, settings, kind, is_named=disk is not None)
    yield from _workers(facts)
    yield from _clock(facts)
    if disk is not None:
        yield from _machines(facts)
        yield from _went_back(facts.known)
        yield from _disk(disk, settings.home)
        yield from _locked(facts)
        yield from _lost(facts.readers)
        yield from _unread(facts, settings.alert.overdue)
        yield from _steps(facts.readers.live)
        yield from _notices(facts.known.notices_failed)
        yield from _mail(facts, settings)
    yield from _behind(facts, settings.alert.overdue)
    yield from _paused(facts)


def _daemon(facts: Facts) -> Iterator[Finding]:
    daemon = facts.daemon
    if daemon is None:
        text, since = "no daemon has ticked yet", None
    elif daemon.stopped_at is not None:
        text, since = f"no daemon ticks: {daemon.name} was stopped", daemon.stopped_at
    elif not daemon.is_ticking:
        text = f"no daemon ticks: the last tick was by {daemon.name}"
        since = daemon.last_tick_at
    else:
        return
    yield _found(Kind.NO_DAEMON, _BROKEN, text + _due(facts.due), START_DAEMON, since)


def _due(count: int) -> str:
    """Return the clause about actions that are due meanwhile."""
    number = f"{MOST_DUE:,} actions or more" if count >= MOST_DUE else counted(count, "action")
    return f"; {number} {'is' if count == 1 else 'are'} due" if count else ""


def _read_only(facts: Facts) -> Iterator[Finding]:
    if facts.known.read_only is not None:
        why, remedy = READ_ONLY[facts.known.read_only]
        text = f"the database takes no changes: {why}"
        since = None if facts.daemon is None else facts.daemon.last_tick_at
        yield _found(Kind.READ_ONLY, _BROKEN, text, remedy, since)


def _older_release(facts: Facts) -> Iterator[Finding]:
    """Yield a finding if the last tick stepped back: broken, unless a newer daemon ticks too."""
    if facts.daemon is None or not facts.daemon.is_ticking:
        return
    error = _report(facts.daemon).get("older_release")
    if error:
        has_other = any(not one["report"].get("older_release") for one in facts.ticks[-2:])
        text = f"daemon {facts.daemon.name} decides nothing: {error}"
        remedy = "upgrade it, or stop it where a newer one runs"
        severity = _ATTENTION if has_other else _BROKEN
        yield _found(Kind.OLDER_RELEASE, severity, text, remedy, facts.daemon.last_tick_at)


def _unreachable(
    facts: Facts, settings: Settings, kind: Kind, *, is_named: bool
) -> Iterator[Finding]:
    """Yield a finding if the last tick could not reach a broker, since the first that could not.

    Without a tick, nothing is known of it. `is_named`: it says at which address.
    """
    if facts.daemon is None or not facts.daemon.is_ticking:
        return
    key = REPORTED[kind]
    error = _report(facts.daemon).get(key)
    if not error:
        return
    since = facts.daemon.last_tick_at
    for tick in reversed(facts.ticks):
        if not tick["report"].get(key):
            break
        since = tick["finished_at"]
    its = [one for one in facts.waiting if _is_of(kind, one.queue)]
    text = f"{error if is_named else UNNAMED[kind]}{_waits(its)}"
    remedy = how_to_mend(kind, settings)
    yield _found(kind, _BROKEN, text, remedy, since)


def how_to_mend(kind: str, settings: Settings) -> str:
    """Return what to do about a broker that does not work."""
    if kind == Kind.BROKER_DOWN and settings.uses_embedded_broker:
        return "restart `minutebook up`, or name another broker in SCHED_BROKER_URL"
    return BROKERS[kind]


def _is_of(kind: Kind, queue: str) -> bool:
    """Return whether a broker carries what waits in a queue: jobs are asked for over HTTP."""
    is_ours = queue.startswith(OURS.prefix)
    return is_ours == (kind is Kind.BROKER_DOWN) and not queue.startswith(HTTP.prefix)


def _waits(waiting: Iterable[Waiting]) -> str:
    return _wait(sum(one.count for one in waiting))


def _wait(count: int) -> str:
    """Return the clause about runs that wait meanwhile."""
    return f"; {counted(count, 'run')} {'waits' if count == 1 else 'wait'}" if count else ""


def _report(daemon: Daemon) -> Mapping[str, Any]:
    return daemon.report if isinstance(daemon.report, dict) else {}


def _workers(facts: Facts) -> Iterator[Finding]:
    """Yield a finding for each queue with operations that no live worker reads."""
    for queue, waiting in _by_queue(facts.waiting):
        if queue in facts.readers.queues or not all(one.is_known for one in waiting):
            continue
        text = f"no live worker reads queue {shown_queue(queue)}{_waits(waiting)}"
        since = min(one.since for one in waiting)
        yield _found(Kind.NO_WORKER, _BROKEN, text, how_to_read(queue), since, queue=queue)


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
        yield _found(Kind.WORKERS_LOST, _ATTENTION, text, remedy, max(lost.values()))


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
        yield _found(Kind.QUEUE_UNREAD, severity, text, remedy, since, queue=queue)


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
            yield _found(Kind.QUEUE_BEHIND, _ATTENTION, text, remedy, since, queue=queue)


def _clock(facts: Facts) -> Iterator[Finding]:
    last_now, now = facts.known.last_now, facts.known.now
    if last_now is not None and last_now - now > CLOCK_WAS_WRONG:
        text = f"the last tick's now lies {lasting(last_now - now)} ahead of the database's clock"
        remedy = "set the database's clock right; the next tick mends the rest"
        yield _found(Kind.CLOCK, _BROKEN, text, remedy)
    elif facts.known.set_back is not None and now - facts.known.set_back[0] < DAY:
        at, by = facts.known.set_back
        text = f"the database's clock was {lasting(by)} ahead until {instant(at)}"
        remedy = "find what set it; `minutebook audit` has when it was set right"
        yield _found(Kind.CLOCK, _ATTENTION, text, remedy, at)


def _machines(facts: Facts) -> Iterator[Finding]:
    machines = [(f"worker {one['name']}", one["skew_s"]) for one in facts.readers.live]
    if facts.daemon is not None and facts.daemon.is_ticking:
        machines.append((f"daemon {facts.daemon.name}", facts.daemon.clock_skew_s))
    for name, skew_s in machines:
        if abs(skew_s or 0.0) > MAX_SKEW_S:
            text = f"the machine of {name} is {skew_s:+.1f} s off the database"
            yield _found(Kind.CLOCK, _ATTENTION, text, "set its clock right (NTP)")


def _went_back(known: Known) -> Iterator[Finding]:
    if known.went_back is None or known.now - known.went_back[0] >= DAY:
        return
    at, what = known.went_back
    text = f"the database went back, and lost what was committed: {what}"
    remedy = "compare what ran with what is recorded; let a standby confirm each commit"
    yield _found(Kind.DATABASE_WENT_BACK, _ATTENTION, text, remedy, at)


def _disk(disk: Disk, home: Path) -> Iterator[Finding]:
    if disk.is_nearly_full:
        severity = _BROKEN if disk.free < NO_SPACE else _ATTENTION
        yield _found(Kind.DISK, severity, nearly_full(disk, home), MAKE_ROOM)


def _locked(facts: Facts) -> Iterator[Finding]:
    if facts.daemon is None or not facts.daemon.is_ticking:
        return
    holder = _report(facts.daemon).get("locked")
    if holder:
        text = f"the last tick waited for rows that another session keeps locked: {holder}"
        remedy = "end that transaction; the actions behind it are decided then"
        yield _found(Kind.LOCKED, _ATTENTION, text, remedy, facts.daemon.last_tick_at)


def _steps(live: Iterable[Mapping[str, Any]]) -> Iterator[Finding]:
    for one in live:
        for module, error in (one["step_failures"] or {}).items():
            text = f"worker {one['name']} could not import {module}: {error}"
            remedy = f"correct {module}, then restart the worker"
            yield _found(Kind.STEP_FAILED, _BROKEN, text, remedy)


def _notices(failed: int) -> Iterator[Finding]:
    if failed:
        text = f"{counted(failed, 'notice')} of the last 24 hours could not be delivered"
        remedy = "see the workers' log for the answer of the mail server or webhook"
        yield _found(Kind.NOTICE_REFUSED, _ATTENTION, text, remedy)


def _mail(facts: Facts, settings: Settings) -> Iterator[Finding]:
    wants = facts.known.wants_mail or bool(settings.alert.mail)
    if settings.smtp_url.get_secret_value() or not wants:
        return
    # On a laptop, mail in a folder is what one expects.
    severity = _ATTENTION if settings.database_url.get_secret_value() else _NOTE
    text = f"actions want to send mail, and it is written to {settings.home / 'mail'}"
    yield _found(Kind.MAIL_UNSET, severity, text, "set SCHED_SMTP_URL to send it")


def _paused(facts: Facts) -> Iterator[Finding]:
    for one, waiting in facts.paused:
        end = "" if one.until is None else f" until {instant(one.until)}"
        text = f"{one.target.words} is paused{end}{_wait(waiting)}"
        option = "--all" if one.kind is PauseKind.ALL else f"--{one.kind} {one.name}"
        remedy = f"`minutebook resume {option}` ends it now"
        covers = {} if one.kind is PauseKind.ALL else {str(one.kind): one.name}
        yield _found(Kind.PAUSED, _ATTENTION, text, remedy, one.began_at, **covers)


def _found(
    kind: Kind,
    severity: Severity,
    text: str,
    remedy: str,
    since: datetime | None = None,
    **covers: str,
) -> Finding:
    return Finding(kind=kind, severity=severity, text=text, remedy=remedy, since=since, **covers)
