"""What the data product keeps of small apps: domains, templates, documents in staging."""

from collections.abc import Mapping
from typing import Any

import sqlalchemy as sa

from data.small_app.document import data_in
from data.small_app.sources import stored_source
from data.small_app.staged import KINDS, written
from data.store.tables import app_documents, deliveries, domains, snapshots, templates
from models.sql import database_now, dicts, upsert
from models.store.tenants.ceilings import DAY
from models.tables import operations
from models.tenant.document import SmallAppModel


def store(connection: sa.Connection, small_app_id: int, model: SmallAppModel) -> None:
    """Make a small app's domains and templates match its document, and stage its documents.

    What the document leaves out is removed; the next maintenance keeps the newest of its snapshots.
    """
    app = data_in(model)
    sources = {name: written(stored_source(domain)) for name, domain in app.domains.items()}
    rows = {name: {"source": source} for name, source in sources.items()}
    _replace(connection, domains, small_app_id, rows)
    texts = {name: template.model_dump() for name, template in app.templates.items()}
    _replace(connection, templates, small_app_id, texts)
    _stage(connection, small_app_id, {"design": app.design, "permissions": app.permissions})


def _replace(
    connection: sa.Connection,
    table: sa.Table,
    small_app_id: int,
    values: Mapping[str, dict[str, Any]],
) -> None:
    """Make the small app's rows of a table exactly these, by name."""
    of_app = table.c.small_app_id == small_app_id
    connection.execute(sa.delete(table).where(of_app, table.c.name.not_in(list(values))))
    key = {"small_app_id": small_app_id}
    upsert(connection, table, [{**key, "name": name, **one} for name, one in values.items()])


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
        for name, document in documents[kind].items()
    ]
    upsert(connection, app_documents, rows)
    gone = app_documents.c.staging.is_(None) & app_documents.c.production.is_(None)
    connection.execute(sa.delete(app_documents).where(of_app, gone))


def names_in(connection: sa.Connection, small_app_id: int) -> dict[str, list[str]]:
    """Return the names of a small app's domains, templates and documents, by kind."""
    kinds = {"domains": domains, "templates": templates}
    columns = [(sa.literal(kind), table) for kind, table in kinds.items()]
    parts = [
        sa.select(kind.label("kind"), table.c.name).where(table.c.small_app_id == small_app_id)
        for kind, table in (*columns, (app_documents.c.kind, app_documents))
    ]
    found: dict[str, list[str]] = {kind: [] for kind in (*kinds, *KINDS)}
    for row in connection.execute(sa.union_all(*parts).order_by("name")):
        found[row.kind].append(row.name)
    return found


def domains_of(connection: sa.Connection, small_app_id: int) -> list[dict[str, Any]]:
    """Return the small app's domains, by name, with what is staged and published of each."""
    staged, published = snapshots.alias("staged"), snapshots.alias("published")
    query = (
        sa.select(
            domains.c.name,
            staged.c.row_count.label("staged_rows"),
            domains.c.refreshed_at,
            published.c.row_count.label("published_rows"),
            domains.c.published_at,
        )
        .outerjoin(staged, staged.c.id == domains.c.staging_id)
        .outerjoin(published, published.c.id == domains.c.production_id)
        .where(domains.c.small_app_id == small_app_id)
        .order_by(domains.c.name)
    )
    return dicts(connection, query)


def templates_of(
    connection: sa.Connection,
    small_app_id: int,
    after: str | None = None,
    limit: int | None = None,
) -> dict[str, dict[str, Any]]:
    """Return the small app's templates by name, each as `{"subject", "text", "html"}`.

    Up to `limit` of them, all for None; those after the name `after`.
    """
    query = sa.select(templates).where(templates.c.small_app_id == small_app_id)
    if after is not None:
        query = query.where(templates.c.name > after)
    rows = connection.execute(query.order_by(templates.c.name).limit(limit))
    return {row.name: {"subject": row.subject, "text": row.text, "html": row.html} for row in rows}


def stored_bytes(connection: sa.Connection, small_app_id: int) -> int:
    """Return how many bytes the snapshots of a small app take, old ones included."""
    # As a float: a hand may have written more than an integer of the database holds.
    size = sa.func.sum(sa.cast(snapshots.c.byte_count, sa.Float))
    query = sa.select(size).where(snapshots.c.small_app_id == small_app_id)
    return int(connection.execute(query).scalar_one() or 0)


def mails_of_steps(small_app_id: int) -> sa.Select[Any]:
    """Return the query of the mails that a small app's steps sent within 24 hours."""
    return (
        sa.select(deliveries.c.recipient)
        .join(operations, operations.c.id == deliveries.c.operation_id)
        .where(operations.c.small_app_id == small_app_id)
        .where(deliveries.c.updated_at > database_now(-DAY), deliveries.c.state != "failed")
    )
