"""The forms of columns in the first release, for its migrations. Frozen, as they are."""

import sqlalchemy as sa

# SQLite's strict tables know four types.
INSTANT = sa.DateTime(timezone=True).with_variant(sa.Text(), "sqlite")
UUID = sa.Uuid().with_variant(sa.Text(), "sqlite")
FLAG = sa.Boolean().with_variant(sa.Integer(), "sqlite")
FLOAT, FRACTION = (sa.Float().with_variant(sa.REAL(), "sqlite") for _ in range(2))
BIG = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
OBJECT, LIST = (sa.JSON().with_variant(sa.Text(), "sqlite") for _ in range(2))
DOCUMENT = sa.Text()

FORM = f"{'[0-9]' * 4}-[0-9][0-9]-[0-9][0-9] [0-9][0-9]:[0-9][0-9]:[0-9][0-9].{'[0-9]' * 6}"
HEX = "-".join("[0-9a-f]" * digits for digits in (8, 4, 4, 4, 12))
FIRST, LAST = "0001-01-02 00:00:00", "9999-12-30 00:00:00"
FINITE = "{0} BETWEEN -1.7976931348623157e308 AND 1.7976931348623157e308"
IS_JSON = "{0} IS NULL OR json_valid({0}) AND json_type({0})"
# What the type of a column does not refuse by itself.
CHECKS: dict[object, dict[str, str]] = {
    INSTANT: {
        "sqlite": f"{{0}} GLOB '{FORM}' AND datetime(substr({{0}}, 1, 19)) IS substr({{0}}, 1, 19)"
        f" AND {{0}} BETWEEN '{FIRST}' AND '{LAST}'"
    },
    UUID: {"sqlite": f"{{0}} GLOB '{HEX}'"},
    FLAG: {"sqlite": "{0} IN (0, 1)"},
    FLOAT: {"sqlite": FINITE, "postgresql": FINITE},
    FRACTION: {"sqlite": "{0} BETWEEN 0 AND 1", "postgresql": "{0} BETWEEN 0 AND 1"},
    OBJECT: {"sqlite": f"{IS_JSON} = 'object'", "postgresql": "json_typeof({0}) = 'object'"},
    LIST: {"sqlite": f"{IS_JSON} = 'array'", "postgresql": "json_typeof({0}) = 'array'"},
    DOCUMENT: {
        "sqlite": f"{IS_JSON} = 'object'",
        "postgresql": "json_typeof(CAST({0} AS json)) = 'object'",
    },
}
NAMING = {
    "pk": "%(table_name)s_pkey",
    "fk": "%(table_name)s_%(column_0_N_name)s_fkey",
    "uq": "%(table_name)s_%(column_0_N_name)s_key",
    "ck": "%(table_name)s_%(constraint_name)s_check",
}


def guard(metadata: sa.MetaData) -> None:
    """Let the database refuse what a column's type does not hold."""
    for table in metadata.tables.values():
        table.dialect_kwargs["sqlite_strict"] = True
        for column in table.columns:
            for dialect, condition in CHECKS.get(column.type, {}).items():
                _check(table, f"{column.name}_form", dialect, condition.format(f'"{column.name}"'))
        instants = ", ".join(f'"{one.name}"' for one in table.columns if one.type is INSTANT)
        if instants:
            in_range = f"least({instants}) >= '{FIRST}+00' AND greatest({instants}) <= '{LAST}+00'"
            _check(table, "instants", "postgresql", in_range)


def _check(table: sa.Table, name: str, dialect: str, condition: str) -> None:
    table.append_constraint(sa.CheckConstraint(condition, name=name).ddl_if(dialect=dialect))


def app() -> sa.Column[int]:
    """Return a column of the small app that a row belongs to."""
    return sa.Column("small_app_id", sa.ForeignKey("small_apps.id"), nullable=False)


def at(name: str, *, optional: bool = True) -> sa.Column[object]:
    """Return a column of an instant."""
    return sa.Column(name, INSTANT, nullable=optional)


def text(name: str, *, optional: bool = False, default: str | None = None) -> sa.Column[str]:
    """Return a column of text."""
    return sa.Column(name, sa.Text, nullable=optional, server_default=default)


def count(name: str) -> sa.Column[int]:
    """Return a column of a number that begins with 0."""
    return sa.Column(name, sa.Integer, nullable=False, server_default="0")


def flag(name: str) -> sa.Column[bool]:
    """Return a column that begins with false."""
    return sa.Column(name, FLAG, nullable=False, server_default=sa.false())


def partial(name: str, *columns: str, where: str, unique: bool = False) -> sa.Index:
    """Return an index of some rows."""
    only = sa.text(where)
    return sa.Index(name, *columns, unique=unique, sqlite_where=only, postgresql_where=only)


def one_of(column: str, values: tuple[str, ...]) -> sa.CheckConstraint:
    """Return the check that a column holds one of these values."""
    return sa.CheckConstraint(f"{column} IN ({', '.join(repr(v) for v in values)})", name=column)
