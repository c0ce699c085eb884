"""`minutehand action explain`: why did it run, or not run, at an instant?"""

from typing import Annotated, Any
from uuid import UUID

import sqlalchemy as sa
import typer

from cli.invocation import Invocation, existing
from cli.output import in_zone, instant, plain, print_json, print_line
from cli.preview import zone_of
from models.errors import NotFound, Refused
from models.store import actions
from models.values import parse_instant
from runtime.database import reading
from scheduler.explain import Explanation
from scheduler.explain import explain as explained


def explain(
    context: typer.Context,
    action: Annotated[
        str, typer.Argument(help="Name or uid; of a deleted action, its uid.", metavar="ACTION")
    ],
    at: Annotated[
        str,
        typer.Argument(
            help="2026-11-23T06:00:00Z, or 2026-11-23T07:00:00 on the clock of the action's zone.",
            metavar="INSTANT",
        ),
    ],
    subject: Annotated[
        str | None, typer.Option(help="The user that an event action is about.")
    ] = None,
) -> None:
    """Say what became of an action at an instant, and why."""
    invocation = existing(context)
    with reading(invocation.engine) as connection:
        uid, zone = _found(connection, invocation, action)
        try:
            wanted = parse_instant(at, zone)
        except ValueError as error:
            raise Refused(f"INSTANT {at!r}: {error}") from None
        found = explained(uid, wanted, connection, invocation.settings, subject)
    if invocation.as_json:
        print_json({name: getattr(found, name) for name in found.__slots__} | {"zone": zone})
    else:
        _print(found, zone)


def _found(connection: sa.Connection, invocation: Invocation, action: str) -> tuple[UUID, str]:
    """Return an action's uid, deleted or not, and the zone in which its instants are read."""
    try:
        row: Any = actions.find(connection, invocation.small_app.id, action)
    except NotFound:
        try:
            return UUID(action), invocation.small_app.zone
        except ValueError:
            pass
        raise
    return row["uid"], zone_of(row["plan"], invocation.small_app.zone)


def _print(found: Explanation, zone: str) -> None:
    local = in_zone(found.instant, zone)
    print_line(f"{found.action} at {local} {zone} ({instant(found.instant)}): {found.verdict}")
    if found.text not in {one["text"] for one in found.operations}:
        print_line(f"  {found.text}")
    for one in found.operations:
        subject = f" for {one['subject']}" if one["subject"] else ""
        print_line(f"  {plain(one['triggerer'])}{subject}: {one['text']}")
        print_line(f"  operation {one['id']}")
