"""Run the migrations on the connection of `models.store.schema`."""

from alembic import context

attributes = context.config.attributes
context.configure(
    connection=attributes["connection"],
    version_table=attributes["version_table"],
    render_as_batch=True,
    transactional_ddl=True,
)
context.run_migrations()
