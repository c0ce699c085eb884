"""Alembic migrations: `NNNN_pre_…` run before the new code, `NNNN_post_…` after it."""
