"""Commands that run processes: `up`, `daemon`, `worker`, `web`; and `migrate`."""

from pathlib import Path
from typing import Annotated

import typer

from cli.arguments import here
from cli.render import show
from services import installation as opened

RunNow = Annotated[
    bool, typer.Option("--run-now", help="Run every enabled action once after the start.")
]


def init(context: typer.Context) -> None:
    """Write a commented action into this folder, and settings into the home folder.

    No file is overwritten.
    """
    show(context, opened.start(here(context), Path()))


def up(
    context: typer.Context,
    load_demo: Annotated[
        bool, typer.Option("--demo", help="Load the demo small app first.")
    ] = False,
    run_now: RunNow = False,
) -> None:
    """Run broker, daemon, workers and the HTTP API as children of this process."""
    from processes.up import up as run

    run(here(context), load_demo=load_demo, run_now=run_now)


def down(context: typer.Context) -> None:
    """Stop what `up` started for this home folder, from another terminal."""
    from processes.up import down as stop

    settings = here(context).settings
    show(context, opened.StoppedUp(pid=stop(settings), home=settings.home))


def daemon(
    context: typer.Context,
    once: Annotated[bool, typer.Option("--once", help="Make one tick and exit.")] = False,
    at: Annotated[
        str | None,
        typer.Option(help="With --once: decide as of this instant: 2026-11-23T06:00:30Z."),
    ] = None,
    run_now: RunNow = False,
) -> None:
    """Run the daemon, which records and sends what is due, once a minute."""
    from processes.daemon import run

    raise typer.Exit(run(here(context).home, once=once, at=at, run_now=run_now))


def worker(
    context: typer.Context,
    queues: Annotated[str, typer.Option(help="Queues to consume, separated by commas.")] = "quick",
    concurrency: Annotated[
        int | None,
        typer.Option(min=1, help="Processes (default: worker.quick, .heavy or .default)."),
    ] = None,
) -> None:
    """Run a Celery worker that runs what is sent."""
    from processes.worker import run

    raise typer.Exit(run(here(context).settings, queues, concurrency))


def web(
    context: typer.Context,
    host: Annotated[
        str | None, typer.Option(help="Address to listen on (default: web.host).")
    ] = None,
    port: Annotated[
        int | None, typer.Option(min=0, max=65_535, help="Port (default: web.port); 0 for any.")
    ] = None,
    root_path: Annotated[
        str | None,
        typer.Option(help="Path below which a proxy serves it (default: web.root_path)."),
    ] = None,
) -> None:
    """Serve the HTTP API, and the pages of plug-ins."""
    from processes.web import serve

    serve(here(context), host, port, root_path)


def migrate(context: typer.Context) -> None:
    """Upgrade the database to this release, and add the maintenance action to each small app."""
    show(context, opened.migrate(here(context)))
