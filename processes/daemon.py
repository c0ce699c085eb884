"""The daemon's own command line: `python scheduler_server.py`."""

import argparse
import os
import signal
import sys
from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial
from pathlib import Path

import sqlalchemy as sa

from broker.app import configure
from models.errors import Refused, SchedulerError
from models.store import ticks
from models.values import parse_instant
from processes.garbage import keep_what_is_loaded
from runtime.clock import use_pinned_zones
from runtime.config import InvalidSetting, load_settings
from runtime.database import make_engine, not_usable, reason_of
from runtime.folders import PRIVATE_UMASK, account_name, make_home
from runtime.logs import set_up_logs
from runtime.logs.events import EventLog
from runtime.supervisor import end_with_parent
from runtime.visible import visible
from scheduler.loop import Daemon
from scheduler.systemd_notify import STOPPING, notify
from tasks.built_in import built_in_steps

logger = EventLog("minutebook.daemon")


def main(arguments: Sequence[str]) -> int:
    """Run the daemon until SIGTERM or SIGINT, or for one tick; return the exit code."""
    options = _parser().parse_args(arguments)
    return run(options.home, once=options.once, at=options.at, run_now=options.run_now)


def run(home: Path | None, *, once: bool, at: str | None, run_now: bool = False) -> int:
    """Run the daemon until SIGTERM or SIGINT, or for one tick at `at`; return the exit code.

    `run_now` runs every active action once before the first tick.
    """
    os.umask(PRIVATE_UMASK)
    use_pinned_zones()
    try:
        now = _instant_of(at, once=once)
        settings = load_settings(home)
        set_up_logs(settings.log, "scheduler")
        make_home(settings.home)
        configure(settings)
        engine = make_engine(settings)
        daemon = Daemon(engine, settings, built_in_steps())
        if run_now:
            daemon.at_start = _runs(engine)
        return _serve(daemon, once=once, at=now)
    except (InvalidSetting, SchedulerError) as error:
        _report(str(error))
        return 2
    except sa.exc.SQLAlchemyError as error:
        text = not_usable(error)
        if text is None:
            raise
        _report(text)
        return 1


def _runs(engine: sa.Engine) -> Callable[[], None]:
    # Only then: it takes what a tick does not need.
    from processes.startup_runs import run_all

    return partial(run_all, engine, account_name())


def _report(text: str) -> None:
    for line in text.splitlines():
        sys.stderr.write(f"error: {visible(line)}\n")


def _serve(daemon: Daemon, *, once: bool, at: datetime | None) -> int:
    if once:
        daemon.prepare()
        daemon.at_start()
        daemon.tick_once(at)
        return 0
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: daemon.stop.set())
    end_with_parent()
    keep_what_is_loaded()
    logger.info(
        "daemon_started",
        "daemon {daemon} started on {database}",
        daemon.name,
        daemon.settings.shown_database_url,
    )
    daemon.run()
    notify(STOPPING)
    _note_stop(daemon)
    logger.info("daemon_stopped", "daemon {daemon} stopped", daemon.name)
    return 0


def _note_stop(daemon: Daemon) -> None:
    """Record the stop, so that `minutebook status` shows it as intended."""
    try:
        with daemon.engine.begin() as connection:
            ticks.daemon_stopped(connection, daemon.name)
    except sa.exc.SQLAlchemyError as error:
        logger.warning(
            "database_unavailable", "database unavailable while stopping: {error}", reason_of(error)
        )


def _instant_of(at: str | None, *, once: bool) -> datetime | None:
    """Return the instant of `--at`, read in UTC if it has no offset; raises Refused."""
    if at is None:
        return None
    if not once:
        raise Refused("--at needs --once: a daemon that runs on takes the database's clock")
    try:
        return parse_instant(at, "UTC", exact=True)
    except ValueError as error:
        raise Refused(f"--at {at!r}: {error}") from None


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="scheduler_server.py", description="Wake up every minute and send what is due."
    )
    parser.add_argument("--home", type=Path, help="folder of all files (SCHED_HOME, .minutebook)")
    parser.add_argument("--once", action="store_true", help="make one tick and exit")
    parser.add_argument(
        "--run-now", action="store_true", help="run every enabled action once, then go on"
    )
    parser.add_argument("--at", help="with --once: decide as of this instant: 2026-11-23T06:00:30Z")
    return parser
