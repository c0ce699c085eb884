"""Store the documents of small apps."""

import json
from collections.abc import Mapping
from enum import StrEnum
from typing import Any

import sqlalchemy as sa

from minutebook.steps import SmallApp
from models.sql import database_now, insert_ignoring, upsert
from models.store.tenants import stored_named
from models.tables import app_documents, domains, small_apps, templates
from models.tenant.document import DEFAULT_APP, SmallAppModel, stored_small_app
from models.tenant.sources import stored_source
from models.tenant.staged import KINDS, written
from models.trust import RESTRICTED, TRUSTED

# The document of a small app that was added by its name alone.
NO_DOCUMENT: dict[str, Any] = {}
# The document of the small app of a new installation.
UNTOUCHED = stored_small_app(SmallAppModel(name=DEFAULT_APP, zone="UTC"))


class Applied(StrEnum):
    """The result of applying a document."""

    CREATED = "created"
    CHANGED = "changed"
    UNCHANGED = "unchanged"


def apply(connection: sa.Connection, model: SmallAppModel) -> tuple[SmallApp, Applied]:
    """Make the small app match `model`, except for its people; return it and the result.

    Domains and templates that the document leaves out are removed; the next maintenance keeps the
    newest of their snapshots. Design and permissions are staged. A deleted small app is restored.
    A change of the zone changes no action.
    """
    document = _written(stored_small_app(model))
    trust = TRUSTED if model.name == DEFAULT_APP else RESTRICTED
    created = insert_ignoring(connection, small_apps).values(
        name=model.name,
        zone=model.zone,
        document=document,
        created_at=database_now(),
        trust=trust,
    )
    is_new = connection.execute(created.returning(small_apps.c.id)).first() is not None
    row = connection.execute(
        # Without locking its key, so that a tick that records an operation need not wait.
        sa.select(small_apps).where(small_apps.c.name == model.name).with_for_update(key_share=True)
    ).one()
    app = SmallApp(row.id, model.name, model.zone)
    if not is_new and row.document == document and row.deleted_at is None:
        return app, Applied.UNCHANGED
    # A restored app gets its maintenance action anew, and the trust of a new one.
    anew = {"deleted_at": None, "maintained_at": None, "trust": trust}
    restored = {} if row.deleted_at is None else anew
    connection.execute(
        sa.update(small_apps)
        .where(small_apps.c.id == row.id)
        .values(zone=model.zone, document=document, **restored)
    )
    _replace_domains(connection, row.id, model)
    _replace_templates(connection, row.id, model)
    documents = {"design": model.design, "permissions": model.permissions}
    _stage(connection, row.id, documents)
    return app, Applied.CREATED if is_new else Applied.CHANGED


def _stage(
    connection: sa.Connection,
    small_app_id: int,
    documents: Mapping[str, Mapping[str, dict[str, Any]]],
) -> None:
    """Make staging hold exactly `documents` (by kind, then name); production does not change.

    A missing name is staged as a removal.
    """
    of_app = app_documents.c.small_app_id == small_app_id
    connection.execute(sa.update(app_documents).where(of_app).values(staging=None))
    rows = [
        {"small_app_id": small_app_id, "kind": kind, "name": name, "staging": written(document)}
        for kind in KINDS
        for name, document in documents.get(kind, {}).items()
    ]
    upsert(connection, app_documents, rows)
    gone = app_documents.c.staging.is_(None) & app_documents.c.production.is_(None)
    connection.execute(sa.delete(app_documents).where(of_app, gone))


def ensure(connection: sa.Connection, model: SmallAppModel) -> bool:
    """Create the small app of `model` without a document; return False if it exists."""
    if stored_named(connection, model.name) is not None:
        return False
    app, _ = apply(connection, model)
    its = sa.update(small_apps).where(small_apps.c.id == app.id)
    connection.execute(its.values(document=_written(NO_DOCUMENT)))
    return True


def has_document(connection: sa.Connection, name: str) -> bool:
    """Return whether the small app `name` was given a document."""
    document = stored_named(connection, name)
    return document is not None and document not in (NO_DOCUMENT, UNTOUCHED)


def _replace_domains(connection: sa.Connection, small_app_id: int, model: SmallAppModel) -> None:
    rows = [
        {
            "small_app_id": small_app_id,
            "name": name,
            "source": _written(stored_source(domain)),
        }
        for name, domain in model.domains.items()
    ]
    _replace(connection, domains, small_app_id, rows)


def _replace_templates(connection: sa.Connection, small_app_id: int, model: SmallAppModel) -> None:
    rows = [
        {"small_app_id": small_app_id, "name": name, **template.model_dump()}
        for name, template in model.templates.items()
    ]
    _replace(connection, templates, small_app_id, rows)


def _replace(
    connection: sa.Connection, table: sa.Table, small_app_id: int, rows: list[dict[str, Any]]
) -> None:
    kept = [row["name"] for row in rows]
    connection.execute(
        sa.delete(table).where(table.c.small_app_id == small_app_id, table.c.name.not_in(kept))
    )
    upsert(connection, table, rows)


def _written(value: dict[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True)
