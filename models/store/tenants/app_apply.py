"""Application of small apps' documents, all or none."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from minutebook.steps import SmallApp
from models.action.plan import NOTHING_PLANNED, UnreadablePlan
from models.errors import InvalidDocument, Problem
from models.store import audit, tenants
from models.store.conditions import NOT_DELETED
from models.store.tenants import storing
from models.store.tenants.closing import NAMING
from models.store.tenants.storing import Applied
from models.tables import actions
from models.tenant.document import SmallAppModel, stored_small_app
from runtime.plug_ins import added


@dataclass(frozen=True, slots=True)
class AppliedApp:
    """A small app after its document was applied, with its changes in words."""

    app: SmallApp
    change: Applied
    changes: tuple[str, ...]


def apply_all(
    connection: sa.Connection, models: Sequence[tuple[str, SmallAppModel]], actor: str
) -> list[AppliedApp]:
    """Apply documents, each given with its place, in the caller's transaction.

    They are applied in the order of names, so that concurrent calls cannot deadlock. Raises
    InvalidDocument with the problems of all documents.
    """
    problems: list[Problem] = []
    done: dict[int, AppliedApp] = {}
    for number in sorted(range(len(models)), key=lambda number: models[number][1].name):
        where, model = models[number]
        try:
            done[number] = _apply(connection, model, actor)
        except InvalidDocument as error:
            problems += [Problem(f"{where}: {p.path}", p.value, p.remedy) for p in error.problems]
    if problems:
        raise InvalidDocument(problems)
    return [done[number] for number in range(len(models))]


def _apply(connection: sa.Connection, model: SmallAppModel, actor: str) -> AppliedApp:
    before = tenants.stored_named(connection, model.name, locked=True)
    app, applied = storing.apply(connection, model)
    gone = (before or {}).get("calendars", {}).keys() - model.calendars.keys()
    trust = tenants.trust_of(connection, app.id)
    refused = [problem for allowed in added("app_allowed") for problem in allowed(model, trust)]
    refused += _calendars_in_use(connection, app.id, gone)
    if refused:
        raise InvalidDocument(refused)
    changes = _changes(before, model)
    if before is None and applied is Applied.CHANGED:
        changes = ["restored after deletion"]
    if applied is not Applied.UNCHANGED:
        audit.write(
            connection,
            small_app_id=app.id,
            actor=actor,
            verb="app.create" if applied is Applied.CREATED else "app.change",
            objects={app.name: {"changes": changes} if changes else None},
        )
    return AppliedApp(app, applied, tuple(changes))


def _calendars_in_use(
    connection: sa.Connection, small_app_id: int, gone: Collection[str]
) -> Iterator[Problem]:
    """Yield a problem for each of these calendars that an action of the small app leaves out."""
    naming = sa.type_coerce(actions.c.plan, sa.Text).contains(NAMING)
    query = sa.select(actions.c.name, actions.c.plan).where(
        actions.c.small_app_id == small_app_id, NOT_DELETED, naming
    )
    for row in connection.execute(query.order_by(actions.c.name)) if gone else ():
        # A broken plan is replaced by its document's, which fails for a calendar that is gone.
        plan = NOTHING_PLANNED if isinstance(row.plan, UnreadablePlan) else row.plan
        for name in sorted(plan.calendars & {*gone}):
            remedy = f"the action {row.name!r} leaves it out; keep it, or change the action first"
            yield Problem("calendars", name, remedy)


def _changes(before: Mapping[str, Any] | None, model: SmallAppModel) -> list[str]:
    if before is None:
        return []
    fields = type(model).model_fields.items()
    named = {key for key, field in fields if field.default_factory is dict}
    return changes_between({"name": model.name} | dict(before), stored_small_app(model), named)


def changes_between(
    old: Mapping[str, Any], new: Mapping[str, Any], named: Collection[str] = ()
) -> list[str]:
    """Return one sentence for each difference of `new` from `old`; empty if they are equal.

    What is beneath the keys `named` is reported by its name.
    """
    changes = []
    for key in _differing(old, new):
        if key in named:
            its, now = old.get(key) or {}, new.get(key) or {}
            one = key.removesuffix("s")
            changes += [f'{one} "{name}" {_fate(its, now, name)}' for name in _differing(its, now)]
        else:
            changes.append(f"{key} {_fate(old, new, key)}")
    return changes


def _differing(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    return sorted(key for key in {*old, *new} if old.get(key) != new.get(key))


def _fate(old: Mapping[str, Any], new: Mapping[str, Any], key: str) -> str:
    if old.get(key) is None:
        return "added"
    return "removed" if new.get(key) is None else "changed"
