"""The commands that stand up processes: `up`, `worker`, `migrate`."""

import logging
import signal
from contextlib import ExitStack
from pathlib import Path
from threading import Event
from typing import Annotated

import sqlalchemy as sa
import typer

from broker.app import configure
from broker.names import DEFAULT, HEAVY, QUICK
from cli import demo_app
from cli.invocation import Invocation, of
from cli.output import print_json, print_line
from models.errors import Refused, SchedulerError
from runtime.clock import wait_for
from runtime.config import Settings
from runtime.database import make_engine
from runtime.embedded import broker_answers, broker_command, stop_orphan
from runtime.logs import set_up_logs
from runtime.supervisor import Child, end_with_parent, folder_lock, own_command, stop_all
from scheduler.changes import default_actions
from scheduler.on_demand import manual

logger = logging.getLogger("minutehand.up")

BROKER_START_S = 20.0
WATCH_S = 0.5
# Beyond the grace that running steps are given.
STOP_MARGIN_S = 10.0
BROKER_STOP_S = 10.0
SCHEDULER_SERVER = Path(__file__).resolve().parent.parent / "scheduler_server.py"


def up(
    context: typer.Context,
    load_demo: Annotated[
        bool, typer.Option("--demo", help="Load the demo small app of examples/ first.")
    ] = False,
    run_now: Annotated[
        bool, typer.Option("--run-now", help="Run every active action once, after the start.")
    ] = False,
) -> None:
    """Run everything here: broker, daemon, a worker for each queue, as children of this one."""
    invocation = of(context)
    settings = invocation.settings
    set_up_logs(settings.log, "up")
    stop = Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    with ExitStack() as stack:
        stack.enter_context(folder_lock(settings.home))
        default_actions.migrate(make_engine(settings))
        if load_demo:
            demo_app.load(invocation)
        broker = _start_broker(settings, stack)
        children = _children(settings)
        stack.callback(stop_all, children, settings.worker.stop_grace_s + STOP_MARGIN_S)
        for child in children:
            child.start()
        _say_where(settings)
        if run_now:
            _run_all(invocation)
        while not stop.wait(WATCH_S):
            for child in (*broker, *children):
                child.keep_alive()
        logger.info("stopping; what runs is given back and goes on at the next start")


def _start_broker(settings: Settings, stack: ExitStack) -> list[Child]:
    """Start the embedded broker, stopped last of all; return it, or nothing with another."""
    if not settings.uses_embedded_broker:
        return []
    if stop_orphan(settings.socket_path):
        logger.warning("stopped a broker that an earlier start left behind")
        wait_for(lambda: not broker_answers(settings.socket_path), BROKER_STOP_S)
    broker = Child("broker", broker_command(settings), is_foreign=True)
    broker.start()
    stack.callback(stop_all, [broker], BROKER_STOP_S)
    if not wait_for(lambda: broker_answers(settings.socket_path), BROKER_START_S):
        raise SchedulerError(
            f"the embedded broker does not answer at {settings.socket_path}; "
            "set SCHED_BROKER_URL to use another"
        )
    return [broker]


def _children(settings: Settings) -> list[Child]:
    home = ("--home", str(settings.home))
    scheduler = [own_command()[0], str(SCHEDULER_SERVER), *home]
    return [
        Child("scheduler", scheduler),
        *(
            Child(queue, own_command("worker", "--queues", queue, *home))
            for queue in (QUICK, HEAVY, DEFAULT)
        ),
    ]


def _run_all(invocation: Invocation) -> None:
    """Run every active action of all small apps once; what goes wrong ends nothing here."""
    configure(invocation.settings)
    try:
        asked, _ = manual.run_all(invocation.engine, invocation.actor)
    except (SchedulerError, sa.exc.SQLAlchemyError) as error:
        logger.error("not all actions could be run at the start: %s", error)
        return
    for one in asked:
        if one.operation_id is None:
            logger.warning("not run at the start: %s", one.refused)
    logger.info("%d actions run now", sum(one.operation_id is not None for one in asked))


def _say_where(settings: Settings) -> None:
    logger.info("all files are in %s; Ctrl-C stops everything and loses nothing", settings.home)
    if not settings.smtp_url.get_secret_value():
        logger.info("mail is written to %s (set SCHED_SMTP_URL to send it)", settings.home / "mail")


def worker(
    context: typer.Context,
    queues: Annotated[str, typer.Option(help="Queues to work for, by commas.")] = "quick",
    concurrency: Annotated[
        int | None,
        typer.Option(min=1, help="Processes (default: worker.quick, .heavy or .default)."),
    ] = None,
) -> None:
    """Run a Celery worker that executes operations."""
    from processes.worker import serve

    settings = of(context).settings
    queues = parse_queues(queues)
    name = queues.replace(",", "-")
    set_up_logs(settings.log, name)
    end_with_parent()
    own = {HEAVY: settings.worker.heavy, DEFAULT: settings.worker.default}
    processes = own.get(queues, settings.worker.quick)
    raise typer.Exit(serve(settings, queues, concurrency or processes, name))


def parse_queues(text: str) -> str:
    """Return queues as everybody compares them: by commas alone. Raises Refused for none."""
    names = [name.strip() for name in text.split(",")]
    if not all(names):
        raise Refused(f"--queues {text!r}: write names by commas, such as quick,heavy")
    return ",".join(dict.fromkeys(names))


def migrate(context: typer.Context) -> None:
    """Bring the database to this release's schema, and give each small app its maintenance."""
    invocation: Invocation = of(context)
    done = default_actions.migrate(make_engine(invocation.settings))
    if invocation.as_json:
        print_json({"before": done.before, "after": done.after, "maintained": done.maintained})
        return
    if done.before == done.after:
        print_line(f"the schema is up to date: {done.after}")
    else:
        print_line(f"the schema went from {done.before or 'empty'} to {done.after}")
    for name in done.maintained:
        print_line(f"small app {name} has an action maintenance now, daily at 04:00 in its zone")
