"""Run the migrations on the connection of `models.store.schema`."""

from alembic import context

from models.tables import metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    render_as_batch=True,
    transactional_ddl=True,
)
context.run_migrations()
