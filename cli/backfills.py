import typer


def backfill(context: typer.Context) -> None:
    pass
