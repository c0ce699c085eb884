"""Rubbish for every column, and how a hand writes it. The database refuses most of it."""

from typing import Any, NamedTuple

import sqlalchemy as sa

from models.column_types import (
    HyphenatedUuid,
    Json,
    JsonText,
    LargeNumber,
    Number,
    StorableText,
    Switch,
    UTCDateTime,
)
from models.stored import StoredPlan, StoredTrust
from models.tables import actions

# For texts and documents, and for instants and numbers.
RUBBISH: tuple[str | bytes | None, ...] = (
    "",
    None,
    '{"a": [1, {"b": null}], "triggers": 7, "since": 1}',
    "[" * 5_000,
    "9" * 5_000,
    "Mars/Olympus a\x00b\x1b[31m\u202e\n" + "x" * 9_000,
    '"\\ud800 \\u0000"',
    '[1, null, {"name": "publish"}, ["publish", "success", 1e300, null, {"state": 3}]]',
    "1e999",
    b"\xff\x00",
    "{}",
    "[]",
    '{"a": ' + "[" * 1_500 + "]" * 1_500 + "}",
    '[["publish", "success", 0, 0, {"details": ' + "[" * 1_500 + "]" * 1_500 + "}]]",
)
# A text that no reader parses has no use for more.
PLAIN = tuple(RUBBISH[number] for number in (0, 1, 2, 4, 5, 9))
NUMBERS: tuple[str | bytes | None, ...] = (
    "",
    None,
    "2026-13-45 99:00:00",
    "infinity",
    "-infinity",
    "NaN",
    "9" * 5_000,
    str(2**31 - 1),
    str(2**63 - 1),
    b"\xff\x00",
)
_CHECKED_TEXTS = (HyphenatedUuid, Json, JsonText, StoredPlan, StoredTrust)
_OF_NUMBERS = (UTCDateTime, LargeNumber, Number, Switch, sa.Integer)
# What edits by SQL may not change: see the trigger of `actions`.
GUARDED = (actions.c.document, actions.c.plan, actions.c.active)
PUT_BACK = sa.update(actions).values(revision=actions.c.revision - 1)
Key = dict[str, Any]


class Cell(NamedTuple):
    """A column, and what is written into it."""

    column: sa.Column[Any]
    rubbish: object

    def __str__(self) -> str:
        return f"{self.column} = {str(self.rubbish)[:20]!r}"


def cells_of(column: sa.Column[Any], dialect: str) -> list[Cell]:
    """Return all that is to be written into a column.

    A text reads the same from both databases: for PostgreSQL, which could only refuse a text within
    a statement, four kinds are enough.
    """
    if isinstance(column.type, _OF_NUMBERS):
        kinds = NUMBERS
    elif dialect == "postgresql" and isinstance(column.type, sa.Text | StorableText):
        kinds = RUBBISH[::4]
    else:
        kinds = RUBBISH if isinstance(column.type, _CHECKED_TEXTS) else PLAIN
    return [Cell(column, one) for one in kinds]


def refused_in(column: sa.Column[Any]) -> list[Cell]:
    """Return what a column does not hold, whatever the store: no hand may write it."""
    kind = column.type
    if isinstance(kind, sa.Integer | LargeNumber | Number):
        return [Cell(column, one) for one in NUMBERS if one is not None and not _is_short(one)]
    if isinstance(kind, _OF_NUMBERS):
        return [Cell(column, one) for one in NUMBERS if one is not None]
    if not isinstance(kind, _CHECKED_TEXTS):
        return []
    opening = "[" if isinstance(kind, Json) and kind.shape is list else "{"
    return [
        Cell(column, one)
        for one in RUBBISH
        if one is not None and not (isinstance(one, str) and one[:1] == opening and one[-1] in "]}")
    ]


def _is_short(number: str | bytes) -> bool:
    return number.isdigit() and len(number) < 20


def write(connection: sa.Connection, cell: Cell, key: Key) -> bool:
    """Write rubbish into the row of a key, all rows without one; return whether one was changed."""
    column, table = cell.column, cell.column.table
    kind = column.type.dialect_impl(connection.dialect).compile(connection.dialect)
    value = ":rubbish" if connection.dialect.name == "sqlite" else f"CAST(:rubbish AS {kind})"
    its = " AND ".join(f'"{name}" = :{name}' for name in key) or "true"
    # The number of the revision is put back below: a dump, or another release, may have it so.
    past = ", revision = revision + 1" if any(column is one for one in GUARDED) else ""
    written = sa.text(f'UPDATE {table.name} SET "{column.name}" = {value}{past} WHERE {its}')
    typed = [sa.bindparam(name, type_=table.c[name].type) for name in key]
    given = {**key, "rubbish": cell.rubbish}
    try:
        with connection.begin_nested():
            changed = connection.execute(written.bindparams(*typed), given).rowcount > 0
            if past:
                connection.execute(PUT_BACK.where(*(actions.c[name] == key[name] for name in key)))
            return changed
    except (sa.exc.DBAPIError, UnicodeError):
        return False
