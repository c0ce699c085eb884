"""Checks of the database: schema, clocks, daemon, workers, actions."""

import re
from collections.abc import Iterable, Iterator
from datetime import timedelta
from pathlib import Path

import sqlalchemy as sa

from broker.names import QUICK
from cron import tz_release
from models.column_types import StorableText
from models.store import actions, key_values
from models.store.clocks import read_both
from models.store.conditions import IS_LIVE
from models.store.key_values import TZ_RELEASE
from models.store.schema import (
    UTF8,
    UnfitSchema,
    check_schema,
    encoding_of,
)
from models.tables import actions as table
from models.tables import installation
from models.values.references import is_reference
from models.worker_kinds import OURS
from runtime.config import Settings
from runtime.database import READ_ONLY, is_made, is_refusal, reason_of
from runtime.references import OF_SETTINGS, SecretMissing, resolved
from runtime.sections import SecretSettings
from runtime.skew import MAX_SKEW_S
from services.doctor.celery import check_tasks
from services.doctor.report import Checked, Level, fault, ok, warning
from services.verdict import Kind, Severity, Snapshot, Verdict, assess
from services.verdict.finding import OF_ACTIONS
from services.verdict.queues import how_to_read

SYSTEM_TZ = Path("/usr/share/zoneinfo/tzdata.zi")
# A sample of this size shows the same in less time.
MOST_PLANS = 10_000
_TARGET = re.compile(r'"(?:webhook|url)":"((?:env|file):(?:[^"\\]|\\.)+)"')
REFERENCE_HINT = "set it where workers run; this is what the command sees in its own environment"
ALERT_HINT = "see `minutebook action list --standing troubled --all-apps`"


def check_database(engine: sa.Engine, settings: Settings) -> Iterator[Checked]:
    """Yield the findings about the database and its contents."""
    if not is_made(engine):
        yield fault("database", "there is none yet", "run `minutebook up`, or check --home")
        return
    try:
        with engine.connect() as connection:
            check_schema(connection)
            encoding = encoding_of(connection)
    except (sa.exc.DBAPIError, UnfitSchema) as error:
        yield _unusable(error)
        return
    yield ok("schema", "is this release's")
    yield _writable(engine)
    if encoding != UTF8:
        text = f"it stores text as {encoding}, which lacks characters of names and texts"
        yield warning("database", text, f"dump it, and restore it to one with ENCODING '{UTF8}'")
    with engine.connect().execution_options(**READ_ONLY) as connection:
        yield from _all_stored(connection, settings)


def _unusable(error: sa.exc.DBAPIError | UnfitSchema) -> Checked:
    if isinstance(error, UnfitSchema):
        return fault("schema", str(error), error.remedy)
    if is_refusal(error):
        return fault("database", reason_of(error), "let our role own the database and its tables")
    return fault(
        "database", reason_of(error), "check SCHED_DATABASE_URL, and whether the server runs"
    )


def _writable(engine: sa.Engine) -> Checked:
    try:
        with engine.connect() as connection:
            # Rolled back: it only shows that a row can be written.
            connection.execute(sa.insert(installation).values(key="doctor", value="looks"))
            connection.rollback()
    except sa.exc.DBAPIError as error:
        remedy = "make room on its disk, and let our role write to it"
        return fault("database", f"it cannot be written: {reason_of(error)}", remedy)
    return ok("database", f"{engine.dialect.name}, reachable and writable")


def _all_stored(connection: sa.Connection, settings: Settings) -> Iterator[Checked]:
    seen, (_, skew_s) = assess(connection, settings), read_both(connection)
    yield from _judged(seen.verdict)
    yield from _clock(seen.verdict, skew_s)
    yield from _tz(connection)
    yield from _daemon(seen)
    yield from _workers(seen)
    plans = _active_plans(connection)
    yield from _hooks(settings, plans)
    yield from check_tasks(connection, settings, plans)
    yield _retention(connection, settings)
    yield from _actions(connection, seen.verdict)


def _judged(verdict: Verdict) -> Iterator[Checked]:
    """Yield what the verdict found, but for single actions that are not quarantined."""
    for one in verdict.findings:
        if one.kind not in OF_ACTIONS - {Kind.QUARANTINED}:
            yield Checked(
                what=one.kind,
                level=Level.FAULT if one.severity is Severity.BROKEN else Level.WARNING,
                text=one.text,
                remedy=one.remedy,
                since=one.since,
                consequences=tuple(each.text for each in one.consequences),
            )


def _clock(verdict: Verdict, skew_s: float) -> Iterator[Checked]:
    if abs(skew_s) > MAX_SKEW_S:
        text = f"this machine is {skew_s:+.1f} s off the database"
        yield warning("clock", text, "set it right (NTP); the database's clock alone decides")
    elif Kind.CLOCK not in verdict.counts:
        yield ok("clock", f"this machine is {abs(skew_s):.1f} s off the database")


def _daemon(seen: Snapshot) -> Iterator[Checked]:
    daemon = seen.daemon
    if daemon is not None and daemon.is_ticking:
        age_s = max(0.0, (seen.now - daemon.last_tick_at).total_seconds())
        yield ok("daemon", f"{daemon.name} ticks, last {age_s:.0f} s ago")


def _actions(connection: sa.Connection, verdict: Verdict) -> Iterator[Checked]:
    if verdict.unhealthy:
        yield warning("actions", f"{verdict.unhealthy:,} unhealthy", ALERT_HINT)
        return
    total, active = actions.count(connection)
    yield ok("actions", f"{total}, {active} active, none unhealthy")


def _tz(connection: sa.Connection) -> Iterator[Checked]:
    ours, stored = tz_release(), key_values.value(connection, TZ_RELEASE)
    if stored is not None and stored > ours:
        text = f"release {ours} is older than {stored}, which this database was used with"
        yield fault("time zones", text, "upgrade the package tzdata here")
        return
    yield ok("time zones", f"release {ours}" + ("" if stored else ", not used yet"))
    system = _system_release()
    if system is not None and system > ours:
        text = f"the system has {system}, newer than our {ours}"
        yield warning("time zones", text, "upgrade the package tzdata in our environment")


def _system_release() -> str | None:
    try:
        with SYSTEM_TZ.open(encoding="ascii", errors="replace") as file:
            found = re.match(r"# version (\d{4}[a-z]+)", file.readline())
    except OSError:
        return None
    return found and found[1]


def _active_plans(connection: sa.Connection) -> list[str]:
    """Return the plans of active actions, as text."""
    plans = sa.select(sa.type_coerce(table.c.plan, StorableText)).where(IS_LIVE)
    return list(connection.execute(plans.limit(MOST_PLANS)).scalars())


def _workers(seen: Snapshot) -> Iterator[Checked]:
    """Yield a fault without a live worker of ours; the verdict finds a queue that needs one."""
    of_ours = [row for row in seen.facts.readers.live if row["follows"] is None]
    if not of_ours:
        yield fault("workers", "no worker is live", how_to_read(OURS.listed(QUICK)))
    elif Kind.NO_WORKER not in seen.verdict.counts:
        queues = sorted({queue for row in of_ours for queue in row["queues"].split(",")})
        yield ok("workers", f"{len(of_ours)} for {', '.join(queues)}")


def _hooks(settings: Settings, plans: list[str]) -> Iterator[Checked]:
    alerts = settings.alert.webhook.get_secret_value()
    has_webhooks = bool(alerts) or any('"webhook":' in plan for plan in plans)
    if has_webhooks and not settings.hook.secret.get_secret_value():
        yield warning("hooks", "webhooks are not signed", "set SCHED_HOOK_SECRET")
    yield from _unresolved_settings(settings)
    yield from _unresolved(_references_in(plans), settings.secrets)


def _references_in(plans: Iterable[str]) -> set[str]:
    """Return the references of the hooks of these plans."""
    return {found for plan in plans for found in _TARGET.findall(plan)}


def _unresolved(
    references: Iterable[str], allowed: SecretSettings, prefix: str = ""
) -> Iterator[Checked]:
    """Yield a warning for each reference that cannot be read here; the secret is not shown."""
    for reference in sorted(set(references)):
        try:
            resolved(reference, allowed)
        except SecretMissing as error:
            yield warning("hooks", f"{prefix}{error}", REFERENCE_HINT)


def _unresolved_settings(settings: Settings) -> Iterator[Checked]:
    """Yield a warning for each setting whose secret cannot be read here."""
    values = {
        "SCHED_HOOK_SECRET": settings.hook.secret.get_secret_value(),
        "SCHED_ALERT_WEBHOOK": settings.alert.webhook.get_secret_value(),
    }
    for name, value in values.items():
        if is_reference(value):
            yield from _unresolved([value], OF_SETTINGS, f"{name}: ")


def _retention(connection: sa.Connection, settings: Settings) -> Checked:
    days = settings.retention.operations_days
    found = actions.longest_look_back(connection, timedelta(days=days, seconds=-1))
    if found is not None:
        text = f"{days} days, and an action looks back {found[1].days} days"
        return warning("retention", text, "raise SCHED_RETENTION_OPERATIONS_DAYS")
    return ok("retention", f"{days} days")
