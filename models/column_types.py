"""The columns' types on PostgreSQL and SQLite, and what the database refuses in each of them."""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, ClassVar
from uuid import UUID

import sqlalchemy as sa
from sqlalchemy.engine import Dialect
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.types import TypeDecorator

from runtime.visible import visible_line

# What a column of a type may hold, beyond what the store itself refuses: `{0}` is the column.
Checks = Mapping[str, str]
# The form in which SQLAlchemy and `database_now` write instants, so that texts sort as they do.
_FORM = f"{'[0-9]' * 4}-[0-9][0-9]-[0-9][0-9] [0-9][0-9]:[0-9][0-9]:[0-9][0-9].{'[0-9]' * 6}"
_UUID = "-".join("[0-9a-f]" * digits for digits in (8, 4, 4, 4, 12))
# A day less than Python has at either end: no time zone leads beyond.
_FIRST, _LAST = "0001-01-02 00:00:00", "9999-12-30 00:00:00"
DIALECTS = ("sqlite", "postgresql")
_LARGEST = "1.7976931348623157e308"


def _in_utc(value: datetime | None) -> datetime | None:
    return None if value is None else value.astimezone(UTC)


class UTCDateTime(TypeDecorator[datetime]):
    """An aware UTC instant on both stores; a naive one is refused."""

    impl = sa.DateTime(timezone=True)
    cache_ok = True
    checks: ClassVar[Checks] = {
        "sqlite": f"{{0}} GLOB '{_FORM}' AND datetime(substr({{0}}, 1, 19)) IS substr({{0}}, 1, 19)"
        f" AND {{0}} BETWEEN '{_FIRST}' AND '{_LAST}'"
    }

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Return the value as the driver wants it."""
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError(f"naive instant {value!r}")
        value = value.astimezone(UTC)
        return value.replace(tzinfo=None) if dialect.name == "sqlite" else value

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Return the stored value, aware."""
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)

    def result_processor(self, dialect: Dialect, coltype: object) -> Any:
        """Return what is called for each value: on PostgreSQL the only step, as a tick has many."""
        if dialect.name == "postgresql":
            return _in_utc
        return super().result_processor(dialect, coltype)


class LargeNumber(TypeDecorator[int]):
    """A whole number of 64 bits."""

    impl = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
    cache_ok = True


class Number(TypeDecorator[float]):
    """A number from `least` to `most`, by default any finite one."""

    impl = sa.Float().with_variant(sa.REAL(), "sqlite")
    cache_ok = True

    def __init__(self, least: str = f"-{_LARGEST}", most: str = _LARGEST) -> None:
        super().__init__()
        self.least, self.most = least, most

    @property
    def checks(self) -> Checks:
        """Return the condition of the range."""
        return dict.fromkeys(DIALECTS, f"{{0}} BETWEEN {self.least} AND {self.most}")


class Switch(TypeDecorator[bool]):
    """True or false."""

    impl = sa.Boolean
    cache_ok = True
    checks: ClassVar[Checks] = {"sqlite": "{0} IN (0, 1)"}


def _json_of(shape: str, value: str) -> Checks:
    """Return the condition of a JSON value, which is `value` on PostgreSQL."""
    return {
        "sqlite": f"{{0}} IS NULL OR json_valid({{0}}) AND json_type({{0}}) = '{shape}'",
        "postgresql": f"json_typeof({value}) = '{shape}'",
    }


class Json(TypeDecorator[Any]):
    """A JSON value of one shape, `dict` or `list`; None is SQL's null.

    One that is nested too deep for Python, which no store refuses, is None, or empty if `required`.
    """

    impl = sa.JSON(none_as_null=True)
    cache_ok = True

    def __init__(
        self, shape: type[dict[str, Any]] | type[list[Any]], *, required: bool = False
    ) -> None:
        super().__init__()
        self.shape, self.required = shape, required

    def process_result_value(self, value: Any, dialect: Dialect) -> Any:
        """Return the stored value."""
        return self.shape() if value is None and self.required else value

    @property
    def checks(self) -> Checks:
        """Return the condition of the shape."""
        return _json_of("array" if self.shape is list else "object", "{0}")


class JsonText(TypeDecorator[str]):
    """The text of a JSON object, which is read row by row: see `document_in`."""

    impl = sa.Text
    cache_ok = True
    checks = _json_of("object", "CAST({0} AS json)")


def storable(text: str) -> str:
    """Return `text` in a form that every store and log takes: NUL and lone surrogates are shown."""
    shown = text.replace("\0", "�") if "\0" in text else text
    return shown if shown.isascii() else shown.encode("utf-8", "backslashreplace").decode()


def shown(text: str) -> str:
    """Return `text` as one line in a storable form; characters that hide or break are escaped."""
    return storable(visible_line(text))


class StorableText(TypeDecorator[str]):
    """Text that every store takes: NUL and lone surrogates, which PostgreSQL refuses, are shown.

    Errors and messages come from any step; none may prevent the write of an end.
    """

    impl = sa.Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        """Return the value in the form that is stored."""
        return None if value is None else self.written(value)

    def written(self, text: str) -> str:
        """Return the text as it is stored."""
        return storable(text)


class ShownText(StorableText):
    """One visible line that may hold text from outside: what hides or breaks is escaped.

    The one place where errors and messages are escaped, whatever code writes or prints them.
    """

    cache_ok = True

    def written(self, text: str) -> str:
        """Return the text as one visible line."""
        return shown(text)


class HyphenatedUuid(TypeDecorator[UUID]):
    """A UUID: native on PostgreSQL, lower case with hyphens on SQLite, readable in plain SQL."""

    impl = sa.Uuid().with_variant(sa.Text(), "sqlite")
    cache_ok = True
    checks: ClassVar[Checks] = {"sqlite": f"{{0}} GLOB '{_UUID}'"}

    def process_bind_param(self, value: UUID | None, dialect: Dialect) -> UUID | str | None:
        """Return the value as the driver wants it."""
        return value if value is None or dialect.name == "postgresql" else str(value)

    def process_result_value(self, value: UUID | str | None, dialect: Dialect) -> UUID | None:
        """Return the stored value as a UUID."""
        return UUID(value) if isinstance(value, str) else value

    def result_processor(self, dialect: Dialect, coltype: object) -> Any:
        """Return nothing on PostgreSQL, whose driver makes UUIDs."""
        return None if dialect.name == "postgresql" else super().result_processor(dialect, coltype)


# The names that strict tables of SQLite know. Types of SQLAlchemy's dialect would load it where the
# database is PostgreSQL.
@compiles(UTCDateTime, "sqlite")
@compiles(Json, "sqlite")
def _written_text(_kind: object, _compiler: object, **_kw: object) -> str:
    return "TEXT"


@compiles(Switch, "sqlite")
def _written_integer(_kind: object, _compiler: object, **_kw: object) -> str:
    return "INTEGER"


def guard(metadata: sa.MetaData) -> None:
    """Let the database refuse what a column's type does not hold: strict tables, and checks.

    Partial indexes get their condition. That loads both dialects.
    """
    for table in metadata.tables.values():
        table.dialect_kwargs["sqlite_strict"] = True
        for index in table.indexes:
            if "where" in index.info:
                only = sa.text(index.info["where"])
                index.dialect_kwargs.update({f"{dialect}_where": only for dialect in DIALECTS})
        for name, dialect, condition in [*_checks_of(table)]:
            check = sa.CheckConstraint(condition, name=name, info={"only": dialect})
            table.append_constraint(check.ddl_if(dialect=dialect))


def _checks_of(table: sa.Table) -> Iterator[tuple[str, str, str]]:
    """Yield the name, the dialect and the condition of each check."""
    for column in table.columns:
        for dialect, condition in getattr(column.type, "checks", {}).items():
            yield f"{column.name}_form", dialect, condition.format(f'"{column.name}"')
    instants = [f'"{one.name}"' for one in table.columns if isinstance(one.type, UTCDateTime)]
    if instants:
        # One check: PostgreSQL reads each of them again for each statement.
        all_of = ", ".join(instants)
        in_range = f"least({all_of}) >= '{_FIRST}+00' AND greatest({all_of}) <= '{_LAST}+00'"
        yield "instants", "postgresql", in_range
