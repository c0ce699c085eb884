"""Column types for JSON that the database takes but that may lack a meaning.

A hand or another release may have written it. A plan is then read as `UnreadablePlan`, which
quarantines its action; an entry of a list is left out. Other rows are not affected.
"""

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any
from uuid import UUID

import sqlalchemy as sa
from sqlalchemy.engine import Dialect
from sqlalchemy.types import TypeDecorator

from models.column_types import Json, JsonText, shown
from models.trust import Trust, stored_trust
from runtime.database import read_stored

if TYPE_CHECKING:
    from models.action.plan import Plan, UnreadablePlan


class StoredPlan(TypeDecorator["Plan | UnreadablePlan"]):
    """A plan's text; read as a `Plan`, or as `UnreadablePlan` with the reason.

    The grammar of documents is loaded when the first plan is read: most commands read none.
    """

    impl = sa.Text
    cache_ok = True
    checks = JsonText.checks

    def process_bind_param(self, value: Any, dialect: Dialect) -> str | None:
        """Return the value to store: a plan as its JSON, a text unchanged."""
        return value if value is None or isinstance(value, str) else value.to_json()

    def process_result_value(self, value: Any, dialect: Dialect) -> "Plan | UnreadablePlan | None":
        """Return the plan of the stored text."""
        if value is None:
            return None
        from models.action.plan import read_plan

        return read_plan(value)


class StoredList(Json):
    """A JSON list of objects that have these texts; entries of another shape are left out.

    Every text of an entry is stored as one visible line.
    """

    cache_ok = True

    def __init__(self, *texts: str) -> None:
        super().__init__(list)
        self.texts = texts

    def process_bind_param(self, value: Any, dialect: Dialect) -> Any:
        """Return the entries with their texts escaped."""
        return None if value is None else [_shown_in(one) for one in value]

    def process_result_value(self, value: Any, dialect: Dialect) -> Any:
        """Return the entries with these texts."""
        return value and [one for one in value if isinstance(one, dict) and self._has_texts(one)]

    def _has_texts(self, one: dict[str, Any]) -> bool:
        return all(isinstance(one.get(text), str) for text in self.texts)


class StoredSteps(StoredList):
    """The steps of an operation, each stored as a list: the same facts in a third of the bytes.

    The list holds name, state, start, how long it ran (both in microseconds), and an object of the
    rest, if there is any.
    """

    cache_ok = True

    def __init__(self) -> None:
        super().__init__("name", "state")

    def process_bind_param(self, value: Any, dialect: Dialect) -> Any:
        """Return the steps as lists, with their texts escaped."""
        shown = super().process_bind_param(value, dialect)
        return shown and [_packed(**one) for one in shown]

    def process_result_value(self, value: Any, dialect: Dialect) -> Any:
        """Return the steps."""
        return value and super().process_result_value([*map(_unpacked, value)], dialect)


class StoredTexts(Json):
    """A JSON list of texts; other entries are left out."""

    cache_ok = True

    def __init__(self) -> None:
        super().__init__(list)

    def process_result_value(self, value: Any, dialect: Dialect) -> Any:
        """Return the texts."""
        return value and [one for one in value if isinstance(one, str)]


class StoredTrust(TypeDecorator[Trust]):
    """How far a small app is trusted; null is a trusted one, what cannot be read allows nothing."""

    impl = Json(dict)
    cache_ok = True
    checks = Json(dict).checks

    def process_bind_param(self, value: Any, dialect: Dialect) -> Any:
        """Return the value to store."""
        return None if value is None else value.stored

    def process_result_value(self, value: Any, dialect: Dialect) -> Trust:
        """Return the trust of a stored value."""
        return stored_trust(value)


def _shown_in(entry: dict[str, Any]) -> dict[str, Any]:
    return {key: shown(one) if isinstance(one, str) else one for key, one in entry.items()}


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def _packed(
    name: str | None = None,
    state: str | None = None,
    started_at: str | None = None,
    finished_at: str | None = None,
    **rest: Any,
) -> list[Any]:
    began, ended = map(instant_in, (started_at, finished_at))
    start = began and (began - _EPOCH) // _MICROSECOND
    lasted = ended and (ended - (began or _EPOCH)) // _MICROSECOND
    return [name, state, start, lasted, *([rest] if rest else [])]


def _unpacked(stored: Any) -> dict[str, Any] | None:
    """Return a step; None for a value of another shape."""
    try:
        name, state, start, lasted, *rest = stored
        began = None if start is None else _EPOCH + start * _MICROSECOND
        ended = None if lasted is None else (began or _EPOCH) + lasted * _MICROSECOND
        instants = {"started_at": began, "finished_at": ended}
        known = {key: at.isoformat() for key, at in instants.items() if at is not None}
        return {"name": name, "state": state, **known, **dict(*rest)}
    except (TypeError, ValueError, OverflowError):
        return None


def document_in(text: str) -> dict[str, Any]:
    """Return a stored document; one that is nested too deep for Python is empty."""
    value = read_stored(text)
    return value if isinstance(value, dict) else {}


def uuid_in(text: object) -> UUID | None:
    """Return an id that is stored or written; None if it cannot be read."""
    try:
        return text if isinstance(text, UUID) else UUID(str(text))
    except ValueError:
        return None


def instant_in(text: object) -> datetime | None:
    """Return the aware instant of a stored text, in UTC; None for an unreadable one."""
    try:
        at = datetime.fromisoformat(text) if isinstance(text, str) else None
        return None if at is None or at.tzinfo is None else at.astimezone(UTC)
    except (ValueError, OverflowError):
        return None
