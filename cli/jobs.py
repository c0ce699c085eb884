"""`minutebook job …`: jobs for workers in any language."""

from pathlib import Path
from typing import Annotated

import typer

from cli.arguments import door
from cli.render import show
from cli.tree import group
from cli.verbs import offer
from models.errors import Refused
from services import jobs
from services.files import read_documents
from services.jobs.documents import EVERY_S, new_job

commands = group("Jobs for workers in any language.")
offer(commands, list=jobs.list_jobs, delete=jobs.delete)


@commands.command("add")
def add(
    context: typer.Context,
    url: Annotated[str, typer.Option(help="URL of the work.")],
    interval: Annotated[int, typer.Option(help="Seconds between runs.")] = EVERY_S,
    *,
    from_end: Annotated[
        bool | None,
        typer.Option(
            "--from-end/--from-grid",
            help="Count the interval from the end of the last run, or keep a grid (default: as "
            "stored, or a grid).",
        ),
    ] = None,
    jitter: Annotated[
        int | None,
        typer.Option(help="Seconds within which its runs are moved (default: as stored, or 0)."),
    ] = None,
    jitter_each: Annotated[
        bool | None,
        typer.Option(
            "--jitter-each/--jitter-fixed",
            help="Draw the jitter for each run, or fix it for the job (default: as stored).",
        ),
    ] = None,
    meta: Annotated[
        list[str] | None, typer.Option(help="NAME=VALUE for its worker; may be repeated.")
    ] = None,
) -> None:
    """Store a job, or change the interval and meta of the job with the same URL."""
    document = {
        "url": url,
        "interval_s": interval,
        "from_end": from_end,
        "jitter_s": jitter,
        "jitter_each": jitter_each,
        "meta": _pairs(meta or []),
    }
    show(context, door(context).ask(jobs.add, new_job(document)))


@commands.command("import")
def import_jobs(
    context: typer.Context,
    file: Annotated[Path, typer.Option(help="JSON list of url, interval_s, meta and more.")],
) -> None:
    """Store the jobs of a file, all or none; first runs are spread over each interval."""
    documents = read_documents(file, jobs.LONGEST_IMPORT)
    show(context, door(context).ask(jobs.import_jobs, documents))


def _pairs(texts: list[str]) -> dict[str, str]:
    pairs = [text.partition("=") for text in texts]
    for name, equals, _ in pairs:
        if not (name and equals):
            raise Refused(f"--meta {name!r}: write NAME=VALUE")
    return {name: value for name, _, value in pairs}
