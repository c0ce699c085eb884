"""`manage.py minutebook_sync`: what on_commit could not send is sent again."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import DEFAULT_DB_ALIAS

from minutebook.django.sending import rows_of, sync


class Command(BaseCommand):
    """Sends the schedules that the server has not got yet; fails if some remain."""

    help = "Send the schedules of objects that Minutebook has not got yet."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Add the options."""
        parser.add_argument("--database", default=DEFAULT_DB_ALIAS)
        parser.add_argument("--refused", action="store_true", help="Also those that it refused.")

    def handle(self, *_: Any, database: str, refused: bool, **__: Any) -> None:
        """Send them, and print how many stand how."""
        counted = sync(database, refused=refused)
        said = ", ".join(f"{counted[state]} {state}" for state in ("sent", "refused", "pending"))
        if not counted["refused"] and not counted["pending"]:
            self.stdout.write(said)
            return
        open_rows = rows_of(database).exclude(state="sent").exclude(detail="")
        why = open_rows.order_by("-changed_at").values_list("detail", flat=True).first()
        raise CommandError(f"{said}: {why or 'another process sends'}")
