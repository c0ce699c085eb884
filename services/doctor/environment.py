"""Run all checks of doctor, including those of settings, home, broker, mail and steps."""

import os
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from tempfile import NamedTemporaryFile

from broker import probe
from broker.names import DEFAULT, HEAVY, QUICK
from minutebook.steps import registered_steps
from models.errors import BrokerUnavailable
from models.notices import FindingKind
from runtime.config import InvalidSetting, Settings, unknown_variables
from runtime.database import make_engine
from runtime.extras import HOW_TO_INSTALL
from runtime.folders import fault_of
from services.doctor.celery import check_broker
from services.doctor.database import check_database
from services.doctor.disk import check_disk
from services.doctor.report import Check, Checked, Report, fault, look, ok, warning
from services.installation import Installation
from services.verbs import ADMINISTER, Verb
from services.verdict.installation import how_to_mend
from tasks.outgoing.failures import MailServerFailed
from tasks.outgoing.mail import transport
from tasks.registry import Registry

# For all checks, which run in parallel; connecting to PostgreSQL may take five seconds.
WITHIN_S = 12.0
MAIL_WITHIN_S = 5.0
MANY_MESSAGES = 10_000


@Verb("run_doctor", "GET /api/doctor", ADMINISTER, is_of_installation=True)
def examine(installation: Installation) -> Report:
    """Check everything that Minutebook needs; change nothing."""
    try:
        settings = installation.settings
    except InvalidSetting as error:
        remedy = "correct the setting; see docs/reference/settings/README.md"
        lines = str(error).splitlines()
        return Report(tuple(fault("settings", line, remedy) for line in lines))
    return Report(tuple(look(_checks(settings), WITHIN_S)))


def _checks(settings: Settings) -> dict[str, Check]:
    # Before the other checks, because importing modules redirects stdout.
    registry = Registry(settings.step_modules, packages=True)
    return {
        "settings": _check_settings,
        "home": lambda: _check_home(settings.home),
        "disk": lambda: check_disk(settings),
        "database": lambda: _check_database(settings),
        "broker": lambda: _check_broker(settings),
        "celery broker": lambda: check_broker(settings),
        "mail": lambda: _check_mail(settings),
        "channels": lambda: _check_channels(settings),
        "steps": lambda: _check_steps(registry, settings),
    }


def _check_settings() -> Iterator[Checked]:
    unknown = unknown_variables(os.environ)
    for one in unknown:
        yield warning("settings", one, "correct or remove it; it has no effect")
    if not unknown:
        yield ok("settings", "all known")


def _check_home(home: Path) -> Iterator[Checked]:
    if not home.is_dir():
        yield fault("home", f"{home} does not exist", "run `minutebook up`, or name it with --home")
        return
    try:
        with NamedTemporaryFile(dir=home, prefix=".doctor"):
            pass
    except OSError as error:
        yield fault(
            "home", f"{home} cannot be written: {error.strerror}", "let this account write to it"
        )
        return
    unsafe = fault_of(home)
    if unsafe is not None:
        yield warning("home", f"{home} {unsafe}", f"chmod 700 {home}")
    else:
        yield ok("home", str(home))


def _check_database(settings: Settings) -> Iterator[Checked]:
    engine = make_engine(settings)
    try:
        yield from check_database(engine, settings)
    finally:
        engine.dispose()


def _check_broker(settings: Settings) -> Iterator[Checked]:
    try:
        found = probe.probe(settings, (QUICK, HEAVY, DEFAULT))
    except BrokerUnavailable as error:
        yield fault("broker", str(error), how_to_mend(FindingKind.BROKER_DOWN, settings))
        return
    if found.evicts is not None:
        text = f"Redis removes messages when its memory is full (maxmemory-policy {found.evicts})"
        yield warning("broker", text, "set maxmemory-policy noeviction; it then refuses new ones")
    for name in found.taken:
        text = f"{name} cannot be read: a key of another type has the name of this queue in Redis"
        yield fault("broker", text, "delete or rename that key; the workers go on by themselves")
    depths = ", ".join(f"{count} in {queue}" for queue, count in found.depths.items())
    if max(found.depths.values()) > MANY_MESSAGES:
        yield warning("broker", depths, "start more workers")
    else:
        yield ok("broker", f"accepts and delivers messages; {depths}")


def _check_mail(settings: Settings) -> Iterator[Checked]:
    try:
        yield ok("mail", transport.probe(settings, MAIL_WITHIN_S))
    except MailServerFailed as error:
        yield fault("mail", str(error), "check SCHED_SMTP_URL, and whether the server runs")


def _check_channels(settings: Settings) -> Iterator[Checked]:
    names = ", ".join(sorted(settings.notify))
    if names and find_spec("apprise") is None:
        remedy = f"add the extra notify as {HOW_TO_INSTALL} shows, for the workers"
        yield warning("channels", f"the extra 'notify' is not installed, needed by {names}", remedy)
    elif names:
        yield ok("channels", f"{names}; `minutebook notify test NAME` sends a test")


def _check_steps(registry: Registry, settings: Settings) -> Iterator[Checked]:
    for text in registry.failures:
        yield fault("steps", text, "correct or remove it, here and for the workers; then restart")
    lacking = registry.steps_beside(settings.worker.extras).lacking
    for extra in sorted(lacking):
        names = ", ".join(name for name, one in registry.steps.items() if one.extra == extra)
        remedy = (
            f"add it as {HOW_TO_INSTALL} shows, or set SCHED_WORKER_EXTRAS if the workers have it"
        )
        yield warning("steps", f"the extra {extra!r} is not installed, needed by {names}", remedy)
    if not registry.failures and not lacking:
        yield ok("steps", f"{len(registered_steps())} of your own")
