"""Store the documents of small apps."""

import json
from enum import StrEnum
from typing import Any

import sqlalchemy as sa

from minutebook.steps import SmallApp
from models.sql import database_now, insert_ignoring
from models.store.tenants import stored_named
from models.tables import small_apps
from models.tenant.document import DEFAULT_APP, SmallAppModel, stored_small_app
from models.trust import RESTRICTED, TRUSTED
from runtime.plug_ins import added

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

    A deleted small app is restored. A change of the zone changes no action.
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
    for store in added("app_stored"):
        store(connection, row.id, model)
    return app, Applied.CREATED if is_new else Applied.CHANGED


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


def _written(value: dict[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True)
