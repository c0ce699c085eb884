"""`minutebook job …`: jobs for workers in any language."""

from pathlib import Path
from typing import Annotated

import typer

from cli.arguments import backend
from cli.render import show
from cli.tree import group
from cli.verbs import offer
from services import jobs
from services.files import read_documents

commands = group("Jobs for workers in any language.")
offer(commands, add=jobs.add, list=jobs.list_jobs, delete=jobs.delete)


@commands.command("import")
def import_jobs(
    context: typer.Context,
    file: Annotated[Path, typer.Option(help="JSON list of url, interval_s, meta and more.")],
) -> None:
    """Store the jobs of a file, all or none; first runs are spread over each interval."""
    documents = read_documents(file, jobs.LONGEST_IMPORT)
    show(context, backend(context).call(jobs.import_jobs, documents))
