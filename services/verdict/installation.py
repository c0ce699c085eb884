"""Findings about the installation: its daemon, broker, workers, clocks and disk. Pure."""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from models.notices import BROKERS
from models.store.installation_facts import DAY, Known
from models.store.ticks import CLOCK_WAS_WRONG
from models.values import counted
from models.values.durations import lasting
from models.worker_kinds import HTTP, OURS
from runtime.config import Settings
from runtime.skew import MAX_SKEW_S
from services.daemon import Daemon
from services.doctor.disk import MAKE_ROOM, NO_SPACE, Disk, nearly_full
from services.verdict.facts import MOST_DUE, Facts
from services.verdict.finding import Finding, Kind, Severity, found
from services.verdict.queues import findings_of_followers, findings_of_queues, runs_wait
from services.words import instant

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


def findings_of(facts: Facts, settings: Settings, disk: Disk | None) -> Iterator[Finding]:
    """Yield the findings about an installation, the worst kinds first.

    Without a disk, what only the whole installation may know is left out.
    """
    yield from _read_only(facts)
    yield from _daemon(facts)
    yield from _older_release(facts)
    for kind in UNNAMED:
        yield from _unreachable(facts, settings, kind, is_named=disk is not None)
    yield from findings_of_queues(facts, settings.alert.overdue)
    yield from _clock(facts)
    if disk is not None:
        yield from _machines(facts)
        yield from _went_back(facts.known)
        yield from _disk(disk, settings.home)
        yield from _locked(facts)
        yield from findings_of_followers(facts, settings.alert.overdue)
        yield from _steps(facts.readers.live)
        yield from _notices(facts.known.notices_failed)
        yield from _mail(facts, settings)


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
    yield found(Kind.NO_DAEMON, _BROKEN, text + _due(facts.due), START_DAEMON, since)


def _due(count: int) -> str:
    """Return the clause about actions that are due meanwhile."""
    number = f"{MOST_DUE:,} actions or more" if count >= MOST_DUE else counted(count, "action")
    return f"; {number} {'is' if count == 1 else 'are'} due" if count else ""


def _read_only(facts: Facts) -> Iterator[Finding]:
    if facts.known.read_only is not None:
        why, remedy = READ_ONLY[facts.known.read_only]
        text = f"the database takes no changes: {why}"
        since = None if facts.daemon is None else facts.daemon.last_tick_at
        yield found(Kind.READ_ONLY, _BROKEN, text, remedy, since)


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
        yield found(Kind.OLDER_RELEASE, severity, text, remedy, facts.daemon.last_tick_at)


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
    text = f"{error if is_named else UNNAMED[kind]}{runs_wait(its)}"
    remedy = how_to_mend(kind, settings)
    yield found(kind, _BROKEN, text, remedy, since)


def how_to_mend(kind: str, settings: Settings) -> str:
    """Return what to do about a broker that does not work."""
    if kind == Kind.BROKER_DOWN and settings.uses_embedded_broker:
        return "restart `minutebook up`, or name another broker in SCHED_BROKER_URL"
    return BROKERS[kind]


def _is_of(kind: Kind, queue: str) -> bool:
    """Return whether a broker carries what waits in a queue: jobs are asked for over HTTP."""
    is_ours = queue.startswith(OURS.prefix)
    return is_ours == (kind is Kind.BROKER_DOWN) and not queue.startswith(HTTP.prefix)


def _report(daemon: Daemon) -> Mapping[str, Any]:
    return daemon.report if isinstance(daemon.report, dict) else {}


def _clock(facts: Facts) -> Iterator[Finding]:
    last_now, now = facts.known.last_now, facts.known.now
    if last_now is not None and last_now - now > CLOCK_WAS_WRONG:
        text = f"the last tick's now lies {lasting(last_now - now)} ahead of the database's clock"
        remedy = "set the database's clock right; the next tick mends the rest"
        yield found(Kind.CLOCK, _BROKEN, text, remedy)
    elif facts.known.set_back is not None and now - facts.known.set_back[0] < DAY:
        at, by = facts.known.set_back
        text = f"the database's clock was {lasting(by)} ahead until {instant(at)}"
        remedy = "find what set it: the audit trail on the page Health says when it was set right"
        yield found(Kind.CLOCK, _ATTENTION, text, remedy, at)


def _machines(facts: Facts) -> Iterator[Finding]:
    machines = [(f"worker {one['name']}", one["skew_s"]) for one in facts.readers.live]
    if facts.daemon is not None and facts.daemon.is_ticking:
        machines.append((f"daemon {facts.daemon.name}", facts.daemon.clock_skew_s))
    for name, skew_s in machines:
        if abs(skew_s or 0.0) > MAX_SKEW_S:
            text = f"the machine of {name} is {skew_s:+.1f} s off the database"
            yield found(Kind.CLOCK, _ATTENTION, text, "set its clock right (NTP)")


def _went_back(known: Known) -> Iterator[Finding]:
    if known.went_back is None or known.now - known.went_back[0] >= DAY:
        return
    at, what = known.went_back
    text = f"the database went back, and lost what was committed: {what}"
    remedy = "compare what ran with what is recorded; let a standby confirm each commit"
    yield found(Kind.DATABASE_WENT_BACK, _ATTENTION, text, remedy, at)


def _disk(disk: Disk, home: Path) -> Iterator[Finding]:
    if disk.is_nearly_full:
        severity = _BROKEN if disk.free < NO_SPACE else _ATTENTION
        yield found(Kind.DISK, severity, nearly_full(disk, home), MAKE_ROOM)


def _locked(facts: Facts) -> Iterator[Finding]:
    if facts.daemon is None or not facts.daemon.is_ticking:
        return
    holder = _report(facts.daemon).get("locked")
    if holder:
        text = f"the last tick waited for rows that another session keeps locked: {holder}"
        remedy = "end that transaction; the actions behind it are decided then"
        yield found(Kind.LOCKED, _ATTENTION, text, remedy, facts.daemon.last_tick_at)


def _steps(live: Iterable[Mapping[str, Any]]) -> Iterator[Finding]:
    for one in live:
        for module, error in (one["step_failures"] or {}).items():
            text = f"worker {one['name']} could not import {module}: {error}"
            remedy = f"correct {module}, then restart the worker"
            yield found(Kind.STEP_FAILED, _BROKEN, text, remedy)


def _notices(failed: int) -> Iterator[Finding]:
    if failed:
        text = f"{counted(failed, 'notice')} of the last 24 hours could not be delivered"
        remedy = "see the workers' log for the answer of the mail server or webhook"
        yield found(Kind.NOTICE_REFUSED, _ATTENTION, text, remedy)


def _mail(facts: Facts, settings: Settings) -> Iterator[Finding]:
    wants = facts.known.wants_mail or bool(settings.alert.mail)
    if settings.smtp_url.get_secret_value() or not wants:
        return
    # On a laptop, mail in a folder is what one expects.
    severity = _ATTENTION if settings.database_url.get_secret_value() else _NOTE
    text = f"actions want to send mail, and it is written to {settings.home / 'mail'}"
    yield found(Kind.MAIL_UNSET, severity, text, "set SCHED_SMTP_URL to send it")
