"""`minutebook up`: broker, daemon, workers and HTTP API as children of one process."""

import os
import signal
import sys
from contextlib import ExitStack, suppress
from pathlib import Path

from broker.names import DEFAULT, HEAVY, QUICK
from models.errors import Refused, SchedulerError
from models.roles import Role
from processes.listening import listening
from processes.startup_runs import run_all
from runtime.clock import wait_for
from runtime.config import Settings
from runtime.embedded import broker_answers, broker_command, stop_orphan
from runtime.logs import set_up_logs
from runtime.logs.events import EventLog
from runtime.plug_ins import added, plug_ins
from runtime.scratch import hold, sweep
from runtime.stopping import Stop
from runtime.supervisor import Child, folder_lock, lock_holder, own_command, stop_all
from services import tokens
from services.installation import Installation, migrate
from services.tokens import sessions

logger = EventLog("minutebook.up")

BROKER_START_S = 20.0
WATCH_S = 0.5
# How long a worker may take to stop beyond the grace of its running steps.
STOP_MARGIN_S = 10.0
BROKER_STOP_S = 10.0
SCHEDULER_SERVER = Path(__file__).resolve().parent.parent / "scheduler_server.py"


def up(installation: Installation, *, load_demo: bool, run_now: bool) -> None:
    """Run broker, daemon, workers and API as children of this process until a signal.

    `load_demo` loads the demo small app first; `run_now` runs every active action once.
    """
    settings = installation.settings
    set_up_logs(settings.log, "up")
    stop = Stop()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    with ExitStack() as stack:
        stack.enter_context(folder_lock(settings.home))
        # Before it prints a link that would lead to whoever has the port.
        listening(settings.web.host, settings.web.port).close()
        sweep()
        migrate(installation)
        if load_demo:
            _load_demo(installation)
        broker = _start_broker(settings, stack)
        _print_first_token(installation)
        children = _children(settings)
        stack.callback(stop_all, children, settings.worker.stop_grace_s + STOP_MARGIN_S)
        for child in children:
            child.start()
        _log_places(settings)
        print_link(installation)
        if run_now:
            _run_all(installation)
        # From here on only the children ask the database.
        installation.engine.dispose()
        while not stop.wait(WATCH_S):
            for child in (*broker, *children):
                child.keep_alive()
        logger.info("stopping", "stopping; what runs is put back and continues at the next start")


def _load_demo(installation: Installation) -> None:
    loads = [*added("demo")]
    if not loads:
        raise Refused("the demo needs the plug-in `data`, which is not installed")
    for load in loads:
        load(installation)


def _start_broker(settings: Settings, stack: ExitStack) -> list[Child]:
    """Start the embedded broker, to be stopped last; return it, or nothing for another broker."""
    if not settings.uses_embedded_broker:
        return []
    if stop_orphan(settings.socket_path):
        logger.warning("broker_left_behind", "stopped a broker that an earlier start left behind")
        wait_for(lambda: not broker_answers(settings.socket_path), BROKER_STOP_S)
    if settings.socket_path.parent != settings.home:
        hold(settings.socket_path.parent)
        stack.callback(_remove_if_empty, settings.socket_path.parent)
    broker = Child("broker", broker_command(settings), is_foreign=True)
    broker.start()
    stack.callback(stop_all, [broker], BROKER_STOP_S)
    if not wait_for(lambda: broker_answers(settings.socket_path), BROKER_START_S):
        raise SchedulerError(
            f"the embedded broker does not answer at {settings.socket_path}; "
            "set SCHED_BROKER_URL to use another"
        )
    return [broker]


def _remove_if_empty(folder: Path) -> None:
    with suppress(OSError):
        folder.rmdir()


def down(settings: Settings) -> int | None:
    """Stop what `up` started for this home folder; return its pid, None if nothing runs.

    Raises SchedulerError if it runs elsewhere, or does not stop in time.
    """
    holder = lock_holder(settings.home)
    if holder is None:
        return None
    if holder.is_elsewhere:
        raise SchedulerError(f"minutebook up runs with {holder}; run `minutebook down` there")
    pid = holder.pid
    try:
        os.kill(pid, signal.SIGTERM)
    except ProcessLookupError:
        pass  # It ended by itself in between.
    except PermissionError:
        raise SchedulerError(f"pid {pid} is another account's: run this as that account") from None
    within_s = settings.worker.stop_grace_s + STOP_MARGIN_S + BROKER_STOP_S + STOP_MARGIN_S
    if not wait_for(lambda: lock_holder(settings.home) != holder, within_s):
        raise SchedulerError(
            f"minutebook up with pid {pid} did not stop within {within_s:.0f} s; "
            f"`kill -9 {pid}` ends it; no recorded data is lost"
        )
    return pid


def _children(settings: Settings) -> list[Child]:
    home = ("--home", str(settings.home))
    scheduler = [own_command()[0], str(SCHEDULER_SERVER), *home]
    return [
        Child("scheduler", scheduler),
        *(
            Child(queue, own_command("worker", "--queues", queue, *home))
            for queue in (QUICK, HEAVY, DEFAULT)
        ),
        Child("web", own_command("web", *home)),
    ]


def _print_first_token(installation: Installation) -> None:
    """Print a token of the API if there never was one."""
    made = tokens.create_first(installation)
    if made is not None:
        sys.stdout.write(f"the admin's token of the HTTP API, shown only this once: {made.token}\n")
        sys.stdout.flush()


def print_link(installation: Installation) -> None:
    """Print a link that signs the admin in to the dashboard once; go on without a reader."""
    if not any(one.signs_in for one in plug_ins()):
        return
    made = sessions.make_link(installation, Role.ADMIN)
    # A log on a full disk, or a reader that has left: `minutebook token link` makes another.
    with suppress(OSError):
        sys.stdout.write(
            f"link that signs in to the dashboard, once and within an hour: {made.url}\n"
        )
        sys.stdout.flush()


def _run_all(installation: Installation) -> None:
    installation.publish()
    run_all(installation.engine, installation.actor)


def _log_places(settings: Settings) -> None:
    logger.info(
        "home_folder",
        "all files are in {home}; Ctrl-C stops everything; no data is lost",
        settings.home,
    )
    if not settings.smtp_url.get_secret_value():
        logger.info(
            "mail_folder",
            "mail is written to {folder} (set SCHED_SMTP_URL to send it)",
            settings.home / "mail",
        )
