"""The columns' types on PostgreSQL and SQLite: an unreadable value is None, and stops nothing."""

from datetime import UTC, datetime
from math import isfinite
from typing import Any
from uuid import UUID

import sqlalchemy as sa
from sqlalchemy.dialects import sqlite
from sqlalchemy.engine import Dialect
from sqlalchemy.types import TypeDecorator, TypeEngine

from runtime.visible import visible_line


class _AnyText(sqlite.DATETIME):
    """SQLite's instants; an unreadable text is None."""

    def result_processor(self, dialect: Dialect, coltype: object) -> Any:
        """Return the function that reads a stored text."""
        read = super().result_processor(dialect, coltype)

        def lenient(value: Any) -> datetime | None:
            try:
                return read(value) if read else value
            except (ValueError, TypeError):
                return None

        return lenient


class _AnySwitch(sa.Boolean):
    """SQLite's booleans, as they are stored."""

    def result_processor(self, dialect: Dialect, coltype: object) -> Any:
        """Return no function: `Switch` reads the value."""
        return None


class UTCDateTime(TypeDecorator[datetime]):
    """An aware UTC instant on both stores; a naive one is refused, an unreadable one is None."""

    impl = sa.DateTime(timezone=True)
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        """Return a lenient type for SQLite; PostgreSQL checks values itself."""
        if dialect.name == "sqlite":
            return dialect.type_descriptor(_AnyText())  # type: ignore[no-untyped-call]
        return dialect.type_descriptor(sa.DateTime(timezone=True))

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


class WholeNumber(TypeDecorator[int]):
    """A whole number; None for the text or bytes that SQLite takes in its place."""

    impl = sa.Integer
    cache_ok = True

    def process_result_value(self, value: Any, dialect: Dialect) -> int | None:
        """Return the stored number."""
        return value if isinstance(value, int) else None


class Count(WholeNumber):
    """A count; 0 for an unreadable value, so that what is counted goes on."""

    cache_ok = True

    def process_result_value(self, value: Any, dialect: Dialect) -> int | None:
        """Return the stored count."""
        return value if value is None or isinstance(value, int) else 0


class LargeNumber(WholeNumber):
    """A whole number of 64 bits."""

    impl = sa.BigInteger
    cache_ok = True


class Number(TypeDecorator[float]):
    """A finite number; None for anything else."""

    impl = sa.Float
    cache_ok = True

    def process_result_value(self, value: Any, dialect: Dialect) -> float | None:
        """Return the stored number."""
        return value if isinstance(value, int | float) and isfinite(value) else None


class Switch(TypeDecorator[bool]):
    """True or false; false for an unreadable value."""

    impl = sa.Boolean
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        """Return the numbers that SQLite stores, as they are."""
        return dialect.type_descriptor(_AnySwitch() if dialect.name == "sqlite" else sa.Boolean())

    def process_result_value(self, value: Any, dialect: Dialect) -> bool | None:
        """Return the stored value."""
        return None if value is None else value == 1


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

    def process_result_value(self, value: Any, dialect: Dialect) -> str | None:
        """Return the stored text; bytes that were written by hand are shown."""
        return value.decode("utf-8", "backslashreplace") if isinstance(value, bytes) else value


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

    impl = sa.String(36)
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        """Return PostgreSQL's native type there, text elsewhere."""
        if dialect.name == "postgresql":
            return dialect.type_descriptor(sa.Uuid())
        return dialect.type_descriptor(sa.String(36))

    def process_bind_param(self, value: UUID | None, dialect: Dialect) -> UUID | str | None:
        """Return the value as the driver wants it."""
        return value if value is None or dialect.name == "postgresql" else str(value)

    def process_result_value(self, value: UUID | str | None, dialect: Dialect) -> UUID | None:
        """Return the stored value as a UUID; None for an unreadable one."""
        if not isinstance(value, str):
            return value if isinstance(value, UUID) else None
        try:
            return UUID(value)
        except ValueError:
            return None
