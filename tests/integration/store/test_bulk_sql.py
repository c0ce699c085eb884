"""Many given rows are written as they are, whatever is in them, on both stores."""

from datetime import UTC, datetime

import sqlalchemy as sa

from models.bulk_sql import insert_all
from models.tables import revisions
from tests.factories import make_action
from tests.transactions import act, fetched

NOON = datetime(2026, 11, 26, 12, tzinfo=UTC)
SINCE = {"effective_from": sa.literal(NOON, revisions.c.effective_from.type)}
# Each of these breaks a text that is written by hand.
DOCUMENT = '{"name": "\\"é\\\\ \\u2028", "note": "' + "x" * 100_000 + '"}'


def test_long_documents_are_stored_as_they_are(engine: sa.Engine) -> None:
    uid = make_action(engine).uid
    plan = fetched(engine, sa.select(revisions.c.plan)).scalar_one()
    same = {"action_uid": uid, "document": DOCUMENT, "plan": plan, "author": "tests"}
    rows = [same | {"number": number} for number in (2, 3)]

    act(engine, insert_all, revisions, rows, SINCE)

    query = sa.select(revisions.c.document, revisions.c.effective_from)
    found = fetched(engine, query.where(revisions.c.number > 1)).all()
    assert [tuple(row) for row in found] == [(DOCUMENT, NOON)] * 2
