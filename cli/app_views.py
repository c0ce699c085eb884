"""What commands print of small apps."""

import json
from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa

from cli.output import instant, print_line, print_table
from minutehand.steps import SmallApp
from models.store import operations
from small_apps.store import app_overview, app_status, small_apps
from small_apps.store.app_apply import AppliedApp

RECENT = 5
DOMAIN_COLUMNS = {
    "name": "DOMAIN",
    "staged_rows": "STAGED",
    "refreshed_at": "REFRESHED",
    "published_rows": "PUBLISHED",
    "published_at": "AT",
}


def shown(connection: sa.Connection, app: SmallApp) -> dict[str, Any]:
    """Return a small app as JSON: its document, how it stands, its last operations."""
    recent = operations.recent(connection, RECENT, small_app_id=app.id)
    return {
        "name": app.name,
        "zone": app.zone,
        "document": small_apps.document_of(connection, app.id),
        **app_overview.overview(connection, app.id),
        "data": app_status.status_of(connection, app.id),
        "operations": [
            {key: row[key] for key in ("id", "action_name", "occurrence_at", "state", "error")}
            for row in recent
        ],
    }


def print_app(app: dict[str, Any]) -> None:
    """Print a small app for people."""
    print_line(f"{app['name']}, zone {app['zone']}")
    counts = app["actions"]
    told = f"{counts['total']}, {counts['active']} active"
    print_line(f"actions     {told}, {app['running']} operations running")
    if app["next"] is not None:
        print_line(f"next        {instant(app['next']['at'])}  {app['next']['action']}")
    print_line(f"people      {app['users']} users, {app['groups']} groups")
    if app["domains"]:
        print_line(f"data        {_data_in_words(app['data'])}")
        print_table(app["domains"], DOMAIN_COLUMNS)
    for one in app["operations"]:
        told = f"{instant(one['occurrence_at'])}  {one['state']:<9} {one['id']}"
        print_line(f"{told}  {one['action_name']}")
    print_line(json.dumps(app["document"], indent=2, ensure_ascii=False))


def _data_in_words(data: dict[str, Any]) -> str:
    told = [data["status"]]
    if data["phase"]:
        told.append(": ".join(filter(None, (data["phase"], data["message"]))))
    if data["eta"] is not None:
        told.append(f"done by {instant(data['eta'])}")
    if data["last_error"]:
        told.append(f"last error: {data['last_error']}")
    return ", ".join(told)


def applied_as_json(one: AppliedApp, warnings: Sequence[str]) -> dict[str, Any]:
    """Return what became of a small app, with what its admin should look at."""
    return {
        "name": one.app.name,
        "zone": one.app.zone,
        "change": one.change,
        "changes": list(one.changes),
        "warnings": list(warnings),
    }


def print_applied(told: dict[str, Any]) -> None:
    """Print what became of a small app, what changed, and the warnings."""
    print_line(f"{told['change']} small app {told['name']}, zone {told['zone']}")
    for change in told["changes"]:
        print_line(f"  {change}")
    for warning in told["warnings"]:
        print_line(f"  warning: {warning}")
